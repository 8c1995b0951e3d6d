/* SPDX-License-Identifier: Apache-2.0 */
/*
 * caller.js - one call: where it goes, how long it may take, and when it is
 * tried again.
 *
 * A read is sent by GET, and again after TooManyRequests, Unavailable or a
 * broken connection, when the daemon says or after a growing pause. A write is
 * sent once, on a connection of its own, which the daemon cannot have just
 * closed for being idle.
 */
import { readError, readJson, readText } from "./answers.js";
import { Deadline } from "./deadline.js";
import { HearthError, InvalidArgument, TooManyRequests, Unavailable } from "./errors.js";
import { sleep } from "./sleep.js";

const DEFAULT_URL = "http://127.0.0.1:7460";
const TIMEOUT_MS = 60_000; /* of a call, with all its tries */
const RETRIES = 4;
const PAUSE_MS = 250; /* before the second try, doubling */
const PAUSE_MAX_MS = 10_000;

const environment = globalThis.process?.versions?.node ? globalThis.process.env : {};

/* Before another try; the half of it is chance, so that many clients do not come together. */
export function pauseMs(tried, random = Math.random()) {
	return Math.min(PAUSE_MS * 2 ** tried, PAUSE_MAX_MS) * (0.5 + random / 2);
}

/* Whether the same call can succeed a little later: not where the certificate is wrong, or there is no TLS. */
export function isPassing(error) {
	if (/CERT|SIGNATURE|TLS|EPROTO/.test(error?.cause?.code ?? ""))
		return false;
	return error instanceof TooManyRequests || error instanceof Unavailable;
}

function checkUrl(url) {
	const expected = "http://HOST[:PORT], https://HOST[:PORT] or unix:/PATH";

	try {
		const { protocol, username, search, hash } = new URL(url);
		const path = protocol === "unix:" && url.startsWith("unix:/");

		if ((path || protocol === "http:" || protocol === "https:") && !username && !search && !hash)
			return;
	} catch {
		/* said below */
	}
	throw new InvalidArgument(`url: expected ${expected}, not ${url}`, { path: "url", expected });
}

function checkToken(token) {
	const expected = "characters of ASCII without blanks";

	if (token !== undefined && !/^[\x21-\x7e]+$/.test(token))
		throw new InvalidArgument(`token: expected ${expected}`, { path: "token", expected });
}

function query(args) {
	const known = Object.entries(args ?? {}).filter(([, value]) => value !== undefined && value !== null);

	return known.length > 0 ? `?${new URLSearchParams(known)}` : "";
}

export class Caller {
	#options;
	#token;
	#timeoutMs;
	#retries;
	#transport;

	constructor({ url, token, timeoutMs = TIMEOUT_MS, retries = RETRIES, ca, fetch } = {}) {
		const where = String(url ?? environment.HEARTH_URL ?? DEFAULT_URL);

		checkUrl(where);
		this.#options = { url: where.replace(/\/+$/, ""), ca, fetch };
		this.#token = token ?? environment.HEARTH_TOKEN;
		checkToken(this.#token);
		this.#timeoutMs = timeoutMs;
		this.#retries = retries;
	}

	get timeoutMs() {
		return this.#timeoutMs;
	}

	/* What is only for Node is loaded there alone. */
	async #openTransport() {
		const node = globalThis.process?.versions?.node && !this.#options.fetch;
		const { openTransport } = node ? await import("./node/http.js") : await import("./fetch.js");

		return openTransport(this.#options);
	}

	#unreached(error) {
		const cause = error?.cause ?? error; /* fetch() says it there */
		const gone = cause?.code === "ECONNREFUSED" || cause?.code === "ENOENT";
		const advice = gone ? "; is hearth serve running there?" : "";

		return new Unavailable(`${this.#options.url}: ${cause?.message ?? cause}${advice}`, {}, { cause });
	}

	/* What went wrong, as the caller should see it. */
	fault(error, signal) {
		if (signal.aborted)
			return signal.reason;
		return error instanceof HearthError ? error : this.#unreached(error);
	}

	/*
	 * Send once; the answer's body is still to be read, as long as the signal
	 * is not aborted. Answers of 400 and above are thrown.
	 */
	async send(method, request, signal) {
		const headers = { accept: "application/json", ...request.headers };

		if (this.#token)
			headers.authorization = `Bearer ${this.#token}`;
		try {
			signal.throwIfAborted();
			this.#transport ??= this.#openTransport();
			const transport = await this.#transport;
			const answer = await transport.send({ ...request, path: `/v1/${method}${query(request.query)}`, headers, signal });

			if (answer.status !== 304 && (answer.status < 200 || answer.status >= 300))
				throw await readError(answer);
			return answer;
		} catch (error) {
			throw this.fault(error, signal);
		}
	}

	/* An answer is read to its end, also where it has no body: only then is its connection free. */
	async #once(method, request, signal) {
		const answer = await this.send(method, request, signal);
		const { status } = answer;

		try {
			const value = status === 304 ? await readText(answer) : await readJson(answer);

			return { status, etag: answer.header("etag"), value };
		} catch (error) {
			throw this.fault(error, signal);
		}
	}

	async #tries(method, request, deadline) {
		for (let tried = 0; ; tried++) {
			try {
				return await this.#once(method, request, deadline.signal);
			} catch (error) {
				const pause = error?.retryAfterMs ?? pauseMs(tried);

				if (request.verb !== "GET" || tried >= this.#retries || !isPassing(error) || pause >= deadline.leftMs)
					throw error;
				await sleep(pause, deadline);
			}
		}
	}

	/* status, etag and value of an answer. */
	async ask(method, request, { signal, timeoutMs = this.#timeoutMs } = {}) {
		const deadline = new Deadline(signal, timeoutMs, method);

		try {
			return await this.#tries(method, request, deadline);
		} finally {
			deadline.done();
		}
	}

	async read(method, args, options) {
		return (await this.ask(method, { verb: "GET", query: args }, options)).value;
	}

	async write(method, args, options, query) {
		const request = {
			verb: "POST",
			query,
			headers: { "content-type": "application/json" },
			body: JSON.stringify(args ?? {}),
		};

		return (await this.ask(method, request, options)).value;
	}
}
