/* SPDX-License-Identifier: Apache-2.0 */
/*
 * daemon.mjs - what a test gives the client to talk to: a server whose routes
 * are functions (call, response), and which notes each call. It listens on a
 * unix socket, or on a port that the system chose.
 */
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import * as http from "node:http";
import * as https from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient } from "../../../api/client/index.js";

export async function scratch(t) {
	const dir = await mkdtemp(join(tmpdir(), "hearth-client-"));

	t.after(() => rm(dir, { recursive: true, force: true }));
	return dir;
}

async function readBody(request) {
	const pieces = [];

	for await (const bytes of request)
		pieces.push(bytes);
	return Buffer.concat(pieces);
}

export function json(response, status, value, headers = {}) {
	response.writeHead(status, { "content-type": "application/json", ...headers });
	response.end(JSON.stringify(value));
}

export function fail(response, status, error, headers) {
	json(response, status, { error }, headers);
}

/* Call after call, the next of these answers. */
export function inTurn(...answers) {
	return (call, response) => (answers.length > 1 ? answers.shift() : answers[0])(call, response);
}

/* transport: "unix", "tcp" or "fetch". Routes by method; one of them may want the request itself. */
export async function serve(t, routes, { transport = "unix", tls, ...options } = {}) {
	const calls = [];
	const sockets = new Set();
	const server = (tls ? https : http).createServer(tls ?? {}, async (request, response) => {
		const url = new URL(request.url, "http://hearth");
		const call = {
			verb: request.method,
			method: url.pathname.replace(/^\/v1\//, ""),
			query: Object.fromEntries(url.searchParams),
			headers: request.headers,
			socket: request.socket,
			request,
		};
		const route = routes[call.method];

		calls.push(call);
		if (!route)
			return fail(response, 404, { code: "UnknownMethod", message: call.method });
		if (!route.raw)
			call.body = (await readBody(request).catch(() => "")).toString();
		return (async () => route(call, response))().catch(() => request.destroy()); /* the client has gone */
	});

	server.keepAliveTimeout = 0; /* none */
	server.on("connection", (socket) => sockets.add(socket));
	t.after(() => {
		server.close();
		for (const socket of sockets)
			socket.destroy();
	});
	server.listen(transport === "unix" ? join(await scratch(t), "socket") : { port: 0, host: "127.0.0.1" });
	await once(server, "listening");

	const address = server.address();
	const url = transport === "unix" ? `unix:${address}` : `${tls ? "https" : "http"}://127.0.0.1:${address.port}`;
	const fetch = transport === "fetch" ? globalThis.fetch : undefined;

	return { url, calls, server, client: createClient({ url, token: "hth_test", fetch, ...options }) };
}

/* A route that reads the request's body itself. */
export function raw(route) {
	return Object.assign(route, { raw: true });
}
