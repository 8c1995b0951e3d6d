/* SPDX-License-Identifier: Apache-2.0 */
/* fetch.js - requests by fetch(), for browsers. */
import { NotSupported } from "./errors.js";

async function* piecesOf(stream) {
	const reader = stream.getReader();

	try {
		for (let next = await reader.read(); !next.done; next = await reader.read())
			yield next.value;
	} finally {
		reader.cancel().catch(() => {}); /* what broke it has been thrown already */
	}
}

function streamOf(pieces) {
	const iterator = pieces[Symbol.asyncIterator]();

	return new ReadableStream({
		async pull(controller) {
			const { done, value } = await iterator.next();

			if (done)
				controller.close();
			else
				controller.enqueue(value);
		},
		async cancel() {
			await iterator.return?.();
		},
	});
}

/* A browser sends no stream over HTTP/1.1: there it is gathered first. */
function bodyOf(body) {
	const stream = typeof body?.[Symbol.asyncIterator] === "function" ? streamOf(body) : body;

	if (!(stream instanceof ReadableStream) || globalThis.process?.versions?.node)
		return stream;
	return new Response(stream).blob();
}

export function openTransport({ url, fetch = globalThis.fetch }) {
	if (url.startsWith("unix:"))
		throw new NotSupported("a unix socket is reached from Node alone");
	return {
		async send({ verb, path, headers, body, signal }) {
			const response = await fetch(url + path, {
				method: verb,
				headers,
				body: await bodyOf(body),
				signal,
				duplex: "half",
				redirect: "error",
				credentials: "omit",
				cache: "no-store",
			});

			return {
				status: response.status,
				header: (name) => response.headers.get(name),
				body: response.body ? piecesOf(response.body) : [],
			};
		},
	};
}
