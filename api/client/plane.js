/* SPDX-License-Identifier: Apache-2.0 */
import { InvalidArgument } from "./errors.js";

const DEPTH_MAX = 64; /* of values in values */

function refuse(path, expected) {
	throw new InvalidArgument(`${path}: expected ${expected}`, { path, expected });
}

function isPlain(value) {
	const prototype = Object.getPrototypeOf(value);

	return prototype === null || prototype === Object.prototype || Array.isArray(value);
}

function copyItems(items, path, depth) {
	return Array.from(items, (item, i) => copyValue(item, `${path}[${i}]`, depth));
}

function copyMembers(value, path, depth) {
	const known = Object.entries(value).filter(([, member]) => member !== undefined);

	return Object.fromEntries(known.map(([name, member]) => [name, copyValue(member, `${path}.${name}`, depth)]));
}

/* A frozen copy; what JSON would change on the way is refused. */
function copyValue(value, path, depth) {
	if (value === null || typeof value === "string" || typeof value === "boolean")
		return value;
	if (typeof value === "number")
		return Number.isFinite(value) ? value : refuse(path, "a finite number");
	if (typeof value !== "object" || !isPlain(value))
		return refuse(path, "what JSON can hold");
	if (depth === DEPTH_MAX)
		return refuse(path, `no more than ${DEPTH_MAX} values within each other`);
	return Object.freeze((Array.isArray(value) ? copyItems : copyMembers)(value, path, depth + 1));
}

/*
 * What a program says of its agent, for agents.sync(). It cannot be changed
 * any more, so what is synced is what was written.
 */
export function definePlane(plane) {
	if (typeof plane?.agent !== "object" || plane.agent === null || Array.isArray(plane.agent))
		refuse("agent", "an object");
	return Object.freeze({ ...plane, agent: copyValue(plane.agent, "agent", 0) });
}
