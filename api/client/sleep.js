/* SPDX-License-Identifier: Apache-2.0 */

export const TIMER_MAX_MS = 2 ** 31 - 1; /* a longer one would ring at once */

/* Resolve after ms milliseconds; reject with the signal's reason when that is aborted first. */
export function sleep(ms, { signal } = {}) {
	return new Promise((resolve, reject) => {
		const stop = () => {
			clearTimeout(timer);
			reject(signal.reason);
		};
		const timer = setTimeout(() => {
			signal?.removeEventListener("abort", stop);
			resolve();
		}, Math.min(ms, TIMER_MAX_MS));

		if (signal?.aborted)
			stop();
		else
			signal?.addEventListener("abort", stop, { once: true });
	});
}
