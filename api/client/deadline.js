/* SPDX-License-Identifier: Apache-2.0 */
import { TimedOut } from "./errors.js";
import { TIMER_MAX_MS } from "./sleep.js";

/* A body, whose pieces must come in time; what is done with them may take longer. */
export async function* inTime(pieces, deadline) {
	deadline.extend();
	for await (const bytes of pieces) {
		deadline.pause();
		yield bytes;
		deadline.extend();
	}
}

/*
 * A signal that is aborted when the caller's is, or when a time is over. It
 * listens to the caller's until done().
 */
export class Deadline {
	#controller = new AbortController();
	#given;
	#ms;
	#what;
	#timer;
	#ends;

	constructor(signal, ms, what) {
		this.#given = signal;
		this.#ms = ms;
		this.#what = what;
		if (signal?.aborted)
			this.#stop();
		else
			signal?.addEventListener("abort", this.#stop, { once: true });
		this.extend();
	}

	get signal() {
		return this.#controller.signal;
	}

	get leftMs() {
		return this.#ends - Date.now();
	}

	#stop = () => {
		clearTimeout(this.#timer);
		this.#controller.abort(this.#given.reason);
	};

	#ring = () => {
		this.#controller.abort(new TimedOut(`${this.#what}: nothing came within ${this.#ms} ms`));
	};

	/* The time begins anew. */
	extend() {
		this.pause();
		this.#ends = Date.now() + this.#ms;
		if (!this.signal.aborted && this.#ms <= TIMER_MAX_MS)
			this.#timer = setTimeout(this.#ring, this.#ms);
	}

	/* Until extend() the time does not run. */
	pause() {
		clearTimeout(this.#timer);
	}

	done() {
		this.pause();
		this.#given?.removeEventListener("abort", this.#stop);
	}
}
