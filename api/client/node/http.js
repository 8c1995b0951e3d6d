/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http.js - requests by node:http: over TCP, TLS or a unix socket, without the
 * limits on a body's time that fetch() has in Node.
 */
import { once } from "node:events";
import * as http from "node:http";
import * as https from "node:https";

const CONTINUE_MS = 1000; /* as long as curl waits for a server that does not know 100 */

function addressOf(url, ca) {
	if (url.startsWith("unix:"))
		return { scheme: http, prefix: "", address: { socketPath: url.slice("unix:".length) } };

	const { protocol, hostname, port, pathname } = new URL(url);
	const address = { hostname: hostname.replace(/^\[|\]$/g, ""), port: port || undefined };

	return protocol === "https:"
		? { scheme: https, prefix: pathname.replace(/\/$/, ""), address: { ...address, ca } }
		: { scheme: http, prefix: pathname.replace(/\/$/, ""), address };
}

/* The daemon wants the body, or has answered without it. */
function continued(request) {
	return new Promise((resolve) => {
		const timer = setTimeout(resolve, CONTINUE_MS);
		const go = () => {
			clearTimeout(timer);
			resolve();
		};

		for (const event of ["continue", "response", "close"])
			request.once(event, go);
	});
}

function piecesOf(body) {
	if (body instanceof Uint8Array)
		return [body];
	return body instanceof Blob ? body.stream() : body;
}

/* Send a body piece by piece, no faster than it is taken, until there is an answer. */
async function sendBody(request, body) {
	const over = new AbortController();

	for (const event of ["response", "close"])
		request.once(event, () => over.abort());
	await continued(request);
	if (over.signal.aborted)
		return;
	for await (const bytes of piecesOf(body)) {
		const full = !over.signal.aborted && !request.write(bytes);

		if (full)
			await once(request, "drain", over).catch(() => {});
		if (over.signal.aborted)
			return;
	}
	request.end();
}

/* The bytes of an answer. Who stops early, or came before the body was sent, ends the connection. */
async function* read(request, response) {
	let whole = false;

	try {
		yield* response;
		whole = request.writableEnded;
	} finally {
		if (!whole)
			request.destroy();
	}
}

export function openTransport({ url, ca }) {
	const { scheme, prefix, address } = addressOf(url, ca);
	const agent = new scheme.Agent({ keepAlive: true, maxFreeSockets: 16 });

	return {
		send({ verb, path, headers, body, signal }) {
			return new Promise((resolve, reject) => {
				const whole = body === undefined || typeof body === "string";
				const request = scheme.request({
					...address,
					method: verb,
					path: prefix + path,
					headers: whole ? headers : { ...headers, expect: "100-continue" },
					agent: verb === "GET" && agent,
					signal,
				});

				request.on("error", reject);
				request.on("response", (response) => {
					resolve({
						status: response.statusCode,
						header: (name) => response.headers[name] ?? null,
						body: read(request, response),
					});
				});
				if (whole)
					request.end(body);
				else
					sendBody(request, body).catch((error) => request.destroy(error));
			});
		},
	};
}
