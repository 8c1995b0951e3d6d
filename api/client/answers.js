/* SPDX-License-Identifier: Apache-2.0 */
/* answers.js - what the daemon's answers are: a document, or an error of the class of its code. */
import * as errors from "./errors.js";

const ANSWER_MAX = 64 << 20; /* bytes; a page of 500 items of a list is far below */

/* For answers that are not the daemon's own, but of something on the way to it. */
const BY_STATUS = {
	400: "InvalidArgument",
	401: "Unauthorized",
	403: "Forbidden",
	404: "NotFound",
	409: "Conflict",
	410: "Gone",
	413: "TooLarge",
	429: "TooManyRequests",
	501: "NotSupported",
	502: "UpstreamFailed",
	503: "Unavailable",
	504: "TimedOut",
	507: "StoreFull",
};

/* All bytes of an answer as text. */
export async function readText(answer) {
	const decoder = new TextDecoder();
	let text = "";
	let size = 0;

	for await (const bytes of answer.body) {
		size += bytes.length;
		if (size > ANSWER_MAX)
			throw new errors.TooLarge(`the answer is larger than ${ANSWER_MAX} bytes`);
		text += decoder.decode(bytes, { stream: true });
	}
	return text + decoder.decode();
}

function parse(text) {
	try {
		return JSON.parse(text);
	} catch {
		return undefined;
	}
}

export async function readJson(answer) {
	const value = parse(await readText(answer));

	if (value === undefined)
		throw new errors.Internal("the answer is not JSON", { httpStatus: answer.status });
	return value;
}

/* Retry-After is a number of seconds, or a date. */
export function retryAfterMs(header, now = Date.now()) {
	if (!header)
		return undefined;
	const ms = /^\s*\d+\s*$/.test(header) ? Number(header) * 1000 : Date.parse(header) - now;
	return Number.isNaN(ms) ? undefined : Math.max(0, ms);
}

/* The error that an answer of 400 and above is. */
export async function readError(answer) {
	const said = parse(await readText(answer))?.error;
	const code = typeof said?.code === "string" ? said.code : BY_STATUS[answer.status] ?? "Internal";
	const Class = Object.hasOwn(errors, code) ? errors[code] : errors.HearthError;
	const after = retryAfterMs(answer.header("retry-after"));
	const members = { ...said, code, httpStatus: answer.status };

	if (after !== undefined)
		members.retryAfterMs ??= after;
	return new Class(String(said?.message ?? `the answer's status is ${answer.status}`), members);
}
