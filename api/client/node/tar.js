/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tar.js - headers of a tar's entries, byte for byte as layers/tar_header.c and
 * bake/tarball_pack.c write them: POSIX.1-2017 ustar, with a pax header in front
 * of what does not fit. Owners and times are 0.
 */

export const TAR_BLOCK = 512; /* bytes */
const NAME_SIZE = 100;
const OCTAL_MAX = 0o77777777777; /* of a size: eleven digits */

export const FILE = "0";
export const HARD_LINK = "1";
export const SYMLINK = "2";
export const DIRECTORY = "5";
export const FIFO = "6";
const PAX = "x";

function putOctal(header, at, size, value) {
	header.write(value.toString(8).padStart(size - 1, "0"), at, "latin1");
}

/* Of the header with blanks in its own field, the last of which stays. */
function putChecksum(header) {
	let sum = 0;

	header.fill(" ", 148, 156);
	for (const byte of header)
		sum += byte;
	putOctal(header, 148, 7, sum);
	header[154] = 0;
}

function headerOf({ type, name, link = "", mode, size = 0 }) {
	const header = Buffer.alloc(TAR_BLOCK);

	header.write(name.slice(0, NAME_SIZE), 0, "latin1");
	putOctal(header, 100, 8, mode & 0o7777);
	putOctal(header, 108, 8, 0);
	putOctal(header, 116, 8, 0);
	putOctal(header, 124, 12, size <= OCTAL_MAX ? size : 0);
	putOctal(header, 136, 12, 0);
	header.write(type, 156, "latin1");
	header.write(link.slice(0, NAME_SIZE), 157, "latin1");
	header.write("ustar\x0000", 257, "latin1");
	putChecksum(header);
	return header;
}

/* "LENGTH KEY=VALUE\n", where the length counts its own digits. */
function record(key, value) {
	const rest = key.length + value.length + 3;
	let length = rest + 1;

	while (length !== rest + String(length).length)
		length = rest + String(length).length;
	return `${length} ${key}=${value}\n`;
}

function paxOf({ name, link = "", size = 0 }) {
	return [
		name.length > NAME_SIZE ? record("path", name) : "",
		link.length > NAME_SIZE ? record("linkpath", link) : "",
		size > OCTAL_MAX ? record("size", String(size)) : "",
	].join("");
}

/* How many bytes are missing to the end of a block. */
export function padding(size) {
	return (TAR_BLOCK - (size % TAR_BLOCK)) % TAR_BLOCK;
}

/* All that stands in front of an entry's bytes; names and links are strings of bytes. */
export function headersOf(entry) {
	const pax = paxOf(entry);

	if (pax === "")
		return headerOf(entry);
	return Buffer.concat([
		headerOf({ type: PAX, name: "pax", mode: 0o644, size: pax.length }),
		Buffer.from(pax, "latin1"),
		Buffer.alloc(padding(pax.length)),
		headerOf(entry),
	]);
}
