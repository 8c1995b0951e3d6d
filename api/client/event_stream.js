/* SPDX-License-Identifier: Apache-2.0 */
/* event_stream.js - WHATWG HTML, "Server-sent events": bytes to events. */
import { TooLarge } from "./errors.js";

const EVENT_MAX = 4 << 20; /* characters */

/* LF, CR or both end a line; a CR at the end of a piece waits for what follows. */
async function* linesOf(pieces) {
	const decoder = new TextDecoder();
	let rest = "";

	for await (const bytes of pieces) {
		const lines = (rest + decoder.decode(bytes, { stream: true })).split(/\r\n|\n|\r(?!$)/);

		rest = lines.pop();
		if (rest.length > EVENT_MAX)
			throw new TooLarge(`a line of an event is longer than ${EVENT_MAX} characters`);
		yield* lines;
	}
}

function addField(event, name, value) {
	if (name === "data")
		event.data = event.data === undefined ? value : `${event.data}\n${value}`;
	else if (name === "id" && !value.includes("\0"))
		event.id = value;
	else if (name === "event")
		event.type = value;
	else if (name === "retry" && /^\d+$/.test(value))
		event.retryMs = Number(value);
	if (event.data?.length > EVENT_MAX)
		throw new TooLarge(`an event is longer than ${EVENT_MAX} characters`);
}

/* { type, id, data, retryMs } of each; what has no `data` is no event, but may move the others. */
export async function* parseEvents(pieces) {
	let event = {};

	for await (const line of linesOf(pieces)) {
		if (line === "") {
			yield event;
			event = {};
			continue;
		}
		const [, name, value] = /^([^:]*)(?:: ?)?([^]*)$/.exec(line); /* no name is a comment */

		addField(event, name, value);
	}
}
