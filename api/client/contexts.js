/* SPDX-License-Identifier: Apache-2.0 */
import { readJson } from "./answers.js";
import { Deadline } from "./deadline.js";
import { InvalidArgument, NotSupported } from "./errors.js";

const EXPECTED = "a directory's path, the bytes of a tar, or a stream of them";

/* A directory is packed here; anything else is a tar already. */
async function tarOf(source, signal) {
	if (typeof source === "string" || source instanceof URL) {
		if (!globalThis.process?.versions?.node)
			throw new NotSupported("contexts.put: a directory is packed in Node alone; give a tar");
		const { packContext } = await import("./node/context.js");

		return packContext(source, { signal });
	}
	if (source instanceof Uint8Array || source instanceof Blob || typeof source?.[Symbol.asyncIterator] === "function")
		return source;
	if (source instanceof ReadableStream)
		return source; /* which not every browser can iterate */
	throw new InvalidArgument(`contexts.put: expected ${EXPECTED}`, { expected: EXPECTED });
}

/* A tar on its way: asked for in time, and its own errors are kept from being the connection's. */
class Upload {
	fault;
	body;
	#deadline;

	constructor(tar, deadline) {
		this.#deadline = deadline;
		this.body = typeof tar[Symbol.asyncIterator] === "function" ? this.#pieces(tar) : tar;
	}

	async *#pieces(tar) {
		try {
			for await (const bytes of tar) {
				this.#deadline.extend();
				yield bytes;
			}
		} catch (error) {
			this.fault = error;
			throw error;
		}
		this.#deadline.extend();
	}

	/* Nobody asks for more: what the source has open is closed. */
	end() {
		this.body.return?.().catch(() => {});
	}
}

/* Store what COPY will read. timeoutMs is the longest time in which nothing moves. */
export async function putContext(caller, source, { signal, timeoutMs = caller.timeoutMs } = {}) {
	const deadline = new Deadline(signal, timeoutMs, "contexts.put");
	let upload;

	try {
		upload = new Upload(await tarOf(source, deadline.signal), deadline);
		const request = { verb: "POST", headers: { "content-type": "application/x-tar" }, body: upload.body };

		return await readJson(await caller.send("contexts.put", request, deadline.signal));
	} catch (error) {
		throw upload?.fault ?? caller.fault(error, deadline.signal);
	} finally {
		upload?.end();
		deadline.done();
	}
}
