/* SPDX-License-Identifier: Apache-2.0 */

const WAIT_MAX_S = 60; /* of one request */

function isUnderWay(state) {
	return state.status === "baking" || state.rebake?.status === "baking";
}

/* The state, with its ETag beside the members that the daemon gave; `known` where it is still that. */
async function readState(caller, query, known, options) {
	const headers = known?.etag ? { "if-none-match": known.etag } : {};
	const timeoutMs = (options?.timeoutMs ?? caller.timeoutMs) + (query.wait ?? 0) * 1000;
	const { status, etag, value } = await caller.ask(
		"agents.imageStatus",
		{ verb: "GET", query, headers },
		{ ...options, timeoutMs },
	);

	return status === 304 ? known : Object.defineProperty(value, "etag", { value: etag ?? undefined });
}

/*
 * A read, which never builds. With `wait` (seconds) it answers as soon as the
 * state is another than `since`, an earlier answer, which is given back if it
 * never was. Without `since` it is the state that is found first, and one in
 * which nothing is under way is not waited on.
 */
export async function readImageStatus(caller, { wait = 0, since, ...args } = {}, options = undefined) {
	const end = Date.now() + wait * 1000;
	const known = since ?? (await readState(caller, args, undefined, options));

	if (!known.etag || (!since && !isUnderWay(known)))
		return known;
	for (let left = wait; ; left = Math.ceil((end - Date.now()) / 1000)) {
		const query = left > 0 ? { ...args, wait: Math.min(left, WAIT_MAX_S) } : args;
		const state = left > 0 || since ? await readState(caller, query, known, options) : known;

		if (state !== known || left <= WAIT_MAX_S)
			return state;
	}
}
