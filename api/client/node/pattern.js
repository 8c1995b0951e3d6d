/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pattern.js - the patterns of .dockerignore, with the words and the way of
 * bake/pattern_priv.h: all places in a pattern where one can be at once while
 * a path is read, so that no way is tried twice.
 *
 * A place is a part that is still to come. Of DIRS there are two, before it and
 * inside it, since only a slash leads out; place = 2 * part + inside.
 */
import { InvalidArgument } from "../errors.js";
import { runesOf, textOf } from "./runes.js";

const RUNE = 0; /* this character */
const ANY = 1; /* ? */
const STAR = 2; /* * */
const CLASS = 3; /* [] */
const DIRS = 4; /* double star and slash: (anything and a slash), or nothing */
const ALL = 5; /* anything, slashes included */

const PATH_MAX = 4096; /* bytes */

export const MISS = 0; /* neither the path nor anything below it */
export const BELOW = 1; /* not the path, and perhaps something below it */
export const HIT = 2; /* the path, or a directory on the way to it */

const [DASH, QUESTION, SLASH, BACKSLASH, OPEN, CLOSE, CARET, ASTERISK] = runesOf("-?/\\[]^*");

/* A path or pattern below the root, as text: no "." and "..", one slash between names. */
export function clean(text) {
	const names = [];

	for (const name of text.split("/")) {
		if (name === "..")
			names.pop();
		else if (name !== "" && name !== ".")
			names.push(name);
	}
	return names.join("/");
}

function hasWildcard(runes) {
	for (let i = 0; i < runes.length; i++) {
		if (runes[i] === BACKSLASH)
			i++;
		else if (runes[i] === ASTERISK || runes[i] === QUESTION || runes[i] === OPEN)
			return true;
	}
	return false;
}

/* Reads a pattern's characters into parts. */
class Reader {
	parts = [];
	#text;
	#runes;
	#at = 0;

	constructor(text) {
		this.#text = text;
		this.#runes = runesOf(text);
		while (this.#at < this.#runes.length)
			this.#take();
	}

	#wrong() {
		return new InvalidArgument(`${textOf(this.#text)} is no pattern: a [ or a \\ in it has no end`);
	}

	#skips(rune) {
		if (this.#runes[this.#at] !== rune)
			return false;
		this.#at++;
		return true;
	}

	#next() {
		if (this.#at >= this.#runes.length)
			throw this.#wrong();
		return this.#runes[this.#at++];
	}

	#takeBound() {
		const rune = this.#next();

		if (rune === DASH || rune === CLOSE)
			throw this.#wrong();
		return rune === BACKSLASH ? this.#next() : rune;
	}

	#takeClass() {
		const negated = this.#skips(CARET);
		const ranges = [];

		do {
			const low = this.#takeBound();

			ranges.push([low, this.#skips(DASH) ? this.#takeBound() : low]);
		} while (!this.#skips(CLOSE));
		this.parts.push({ kind: CLASS, negated, ranges });
	}

	/* In front of a name without a slash between, they are what the name may end: "**x" is "ax" and "a/bx". */
	#takeStars() {
		const first = this.parts.length === 0;
		const slash = this.#skips(SLASH);
		const rest = this.#runes.slice(this.#at);

		this.parts.push({ kind: rest.length === 0 || (first && !slash && !hasWildcard(rest)) ? ALL : DIRS });
	}

	#take() {
		const rune = this.#next();

		if (rune === ASTERISK && this.#skips(ASTERISK))
			this.#takeStars();
		else if (rune === ASTERISK)
			this.parts.push({ kind: STAR });
		else if (rune === QUESTION)
			this.parts.push({ kind: ANY });
		else if (rune === OPEN)
			this.#takeClass();
		else
			this.parts.push({ kind: RUNE, rune: rune === BACKSLASH ? this.#next() : rune });
	}
}

function isInClass({ ranges, negated }, rune) {
	return rune !== SLASH && ranges.some(([low, high]) => rune >= low && rune <= high) !== negated;
}

export class Pattern {
	text;
	#parts;
	#now;
	#next;

	constructor(text) {
		this.text = clean(text);
		if (this.text.length >= PATH_MAX)
			throw new InvalidArgument(`a pattern is longer than ${PATH_MAX} bytes`);
		this.#parts = new Reader(this.text).parts;
		this.#now = new Uint8Array(2 * (this.#parts.length + 1));
		this.#next = new Uint8Array(this.#now.length);
	}

	/* Be before part i, and behind it where it may be nothing. */
	#reach(places, i) {
		places[2 * i] = 1;
		while (i < this.#parts.length && [STAR, DIRS, ALL].includes(this.#parts[i].kind))
			places[2 * ++i] = 1;
	}

	/* Where one can be after a character, from one place. */
	#stepFrom(i, rune) {
		const part = this.#parts[i];
		const next = this.#next;

		if (part.kind === ALL || (part.kind === STAR && rune !== SLASH))
			this.#reach(next, i);
		else if (part.kind === DIRS)
			next[2 * i + 1] = 1;
		if (
			(part.kind === RUNE && rune === part.rune) ||
			(part.kind === ANY && rune !== SLASH) ||
			(part.kind === CLASS && isInClass(part, rune)) ||
			(part.kind === DIRS && rune === SLASH)
		)
			this.#reach(next, i + 1);
	}

	/* False when no place is left. */
	#step(rune) {
		this.#next.fill(0);
		for (let place = 0; place < 2 * this.#parts.length; place++) {
			if (this.#now[place])
				this.#stepFrom(place >> 1, rune);
		}
		[this.#now, this.#next] = [this.#next, this.#now];
		return this.#now.includes(1);
	}

	get #isDone() {
		return this.#now[2 * this.#parts.length] === 1;
	}

	/* path is relative and clean. */
	try(path) {
		let first = true;

		if (path === "" || this.text === "")
			return this.text === "" ? MISS : BELOW;
		this.#now.fill(0);
		this.#reach(this.#now, 0);
		for (const rune of runesOf(path)) {
			if (rune === SLASH && !first && this.#isDone)
				return HIT;
			if (!this.#step(rune))
				return MISS;
			first = false;
		}
		if (this.#isDone)
			return HIT;
		return this.#step(SLASH) ? BELOW : MISS;
	}
}
