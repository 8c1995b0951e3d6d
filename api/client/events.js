/* SPDX-License-Identifier: Apache-2.0 */
/*
 * events.js - the daemon's events, one after the other, until the signal is
 * aborted. A connection that ends, breaks or falls silent is made again, and
 * the daemon goes on behind the last event that was handed out. An event of
 * type `gap` is the daemon's word that it no longer keeps what came between.
 */
import { isPassing, pauseMs } from "./caller.js";
import { Deadline, inTime } from "./deadline.js";
import { Internal, TimedOut, UpstreamFailed } from "./errors.js";
import { parseEvents } from "./event_stream.js";
import { sleep } from "./sleep.js";

const SILENCE_MS = 45_000; /* three of the comments that the daemon sends */

function isCut(error) {
	return isPassing(error) || error instanceof TimedOut || error instanceof UpstreamFailed;
}

function documentOf({ type, id, data }) {
	try {
		return { id, type, ...JSON.parse(data) };
	} catch (error) {
		throw new Internal(`event ${id ?? type}: its data is not JSON`, {}, { cause: error });
	}
}

/* Where a stream is, and how often it was made again since it last gave something. */
class Place {
	tried = 0;
	#retryMs = 0;

	constructor(after) {
		this.after = after;
	}

	take(event) {
		this.tried = 0;
		this.after = event.id ?? this.after;
		this.#retryMs = event.retryMs ?? this.#retryMs;
	}

	pauseMs(error) {
		return Math.max(this.#retryMs, error?.retryAfterMs ?? pauseMs(this.tried++));
	}
}

/* One connection. */
async function* readEvents(caller, filter, place, { signal, silenceMs = SILENCE_MS }) {
	const deadline = new Deadline(signal, silenceMs, "events.stream");
	const headers = { accept: "text/event-stream", ...(place.after && { "last-event-id": place.after }) };

	try {
		const answer = await caller.send("events.stream", { verb: "GET", query: filter, headers }, deadline.signal);

		for await (const event of parseEvents(inTime(answer.body, deadline))) {
			place.take(event);
			if (event.data !== undefined)
				yield documentOf(event);
		}
	} catch (error) {
		throw caller.fault(error, deadline.signal);
	} finally {
		deadline.done();
	}
}

export async function* streamEvents(caller, { after, ...filter } = {}, options = {}) {
	const place = new Place(after);

	while (!options.signal?.aborted) {
		let cut;

		try {
			yield* readEvents(caller, filter, place, options);
		} catch (error) {
			if (!options.signal?.aborted && !isCut(error))
				throw error;
			cut = error;
		}
		await sleep(place.pauseMs(cut), options).catch(() => {}); /* aborted: the loop sees it */
	}
}
