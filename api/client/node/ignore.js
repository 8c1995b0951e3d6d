/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ignore.js - what a .dockerignore hides, by the rules of bake/ignore_priv.h:
 * of those that match a path, or a directory on the way to it, the last one
 * decides; one with `!` in front lets it be seen again, also where its
 * directory is hidden.
 */
import { InvalidArgument, TooLarge } from "../errors.js";
import { BELOW, HIT, Pattern } from "./pattern.js";

const RULES_MAX = 10_000;

export const SEEN = 0;
export const HIDDEN_TOP = 1; /* but a rule may show something below it */
export const HIDDEN = 2; /* and so is all below it */

function trim(text) {
	return text.replace(/^[ \t-\r]+|[ \t-\r]+$/g, "");
}

/* It begins with "..", once it is clean: nothing in the context has such a path. */
function leadsOut(text) {
	let depth = 0;

	if (text.startsWith("/"))
		return false;
	for (const name of text.split("/")) {
		if (name === "..")
			depth--;
		else if (name !== "" && name !== ".")
			depth++;
		if (depth < 0)
			return true;
	}
	return false;
}

/* undefined for one that names nothing. */
function ruleOf(text, line) {
	const shows = text.startsWith("!");
	const pattern = shows ? trim(text.slice(1)) : text;

	if (pattern === "")
		throw new InvalidArgument("a pattern is missing behind !");
	if (pattern.includes("\0"))
		throw new InvalidArgument("a pattern holds a NUL byte");
	if (leadsOut(pattern))
		return undefined;
	return { shows, line, pattern: new Pattern(pattern) };
}

function readRule(text, line) {
	try {
		return ruleOf(text, line);
	} catch (error) {
		error.message = `.dockerignore line ${line}: ${error.message}`;
		throw error;
	}
}

export class Ignore {
	#rules = [];

	/* The file's bytes, as a string of them. */
	constructor(text) {
		const lines = text.replace(/^\xef\xbb\xbf/, "").split("\n");

		for (const [i, line] of lines.entries()) {
			const trimmed = line.startsWith("#") ? "" : trim(line);
			const rule = trimmed === "" ? undefined : readRule(trimmed, i + 1);

			if (rule)
				this.#rules.push(rule);
			if (this.#rules.length > RULES_MAX)
				throw new TooLarge(`.dockerignore line ${i + 1}: more than ${RULES_MAX} patterns`);
		}
	}

	/* Of a relative and clean path: { verdict, line }, the line being that of the rule which hides it. */
	judge(path) {
		let shownBelow = false;

		for (let i = this.#rules.length - 1; i >= 0; i--) {
			const { shows, line, pattern } = this.#rules[i];
			const reach = pattern.try(path);

			if (reach === BELOW)
				shownBelow ||= shows;
			if (reach === HIT)
				return shows ? { verdict: SEEN } : { verdict: shownBelow ? HIDDEN_TOP : HIDDEN, line };
		}
		return { verdict: SEEN };
	}
}
