/* SPDX-License-Identifier: Apache-2.0 */
import { Deadline, inTime } from "./deadline.js";

async function* readPieces(caller, args, { signal, timeoutMs = caller.timeoutMs } = {}) {
	const deadline = new Deadline(signal, args?.follow ? Infinity : timeoutMs, "bakes.logs");
	const decoder = new TextDecoder();

	try {
		const request = { verb: "GET", query: args, headers: { accept: "text/plain" } };
		const answer = await caller.send("bakes.logs", request, deadline.signal);

		for await (const bytes of inTime(answer.body, deadline))
			yield decoder.decode(bytes, { stream: true });
	} catch (error) {
		throw caller.fault(error, deadline.signal);
	} finally {
		deadline.done();
	}
}

/* What a bake's steps wrote, piece by piece; text() is all of it. With `follow` it ends when the bake does. */
export function openLogs(caller, args, options) {
	return {
		[Symbol.asyncIterator]: () => readPieces(caller, args, options),
		async text() {
			let text = "";

			for await (const piece of this)
				text += piece;
			return text;
		},
	};
}
