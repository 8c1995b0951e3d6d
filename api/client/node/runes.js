/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runes.js - file names as characters, as bake/rune.c reads them.
 *
 * Names and patterns are kept as strings of bytes here ("latin1"), which hold
 * any name, and compare as the bytes do. What is no UTF-8 is a character of
 * its own for each byte, above all others.
 */

const RUNE_BYTE = 0x110000;

export function bytesOf(text) {
	return Buffer.from(text, "utf8").toString("latin1");
}

/* For a person to read. */
export function textOf(bytes) {
	return Buffer.from(bytes, "latin1").toString("utf8");
}

function sizeOf(first) {
	if (first < 0x80)
		return 1;
	if (first >= 0xc2 && first < 0xe0)
		return 2;
	if (first >= 0xe0 && first < 0xf0)
		return 3;
	return first >= 0xf0 && first < 0xf5 ? 4 : 0;
}

function isValid(rune, size) {
	if (size === 3)
		return rune >= 0x800 && (rune < 0xd800 || rune > 0xdfff);
	return size !== 4 || (rune >= 0x10000 && rune <= 0x10ffff);
}

/* The character at `at`, and where the next one is. */
function take(bytes, at) {
	const first = bytes.charCodeAt(at);
	const size = sizeOf(first);
	let rune = size === 1 ? first : first & (0x7f >> size);
	let valid = size > 0 && at + size <= bytes.length;

	for (let i = 1; valid && i < size; i++) {
		const byte = bytes.charCodeAt(at + i);

		valid = (byte & 0xc0) === 0x80;
		rune = (rune << 6) | (byte & 0x3f);
	}
	return valid && isValid(rune, size) ? { rune, next: at + size } : { rune: RUNE_BYTE + first, next: at + 1 };
}

export function runesOf(bytes) {
	const runes = [];

	for (let at = 0; at < bytes.length; ) {
		const { rune, next } = take(bytes, at);

		runes.push(rune);
		at = next;
	}
	return runes;
}
