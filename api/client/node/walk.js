/* SPDX-License-Identifier: Apache-2.0 */
/*
 * walk.js - what of a directory is in its context, in byte order of names: not
 * what its .dockerignore hides. A directory that is hidden is there once
 * something below it is shown. Sockets are left out, devices refused.
 *
 * Paths are strings of bytes (runes.js).
 */
import { constants } from "node:fs";
import { lstat, open, readdir, readlink, realpath } from "node:fs/promises";
import { InvalidArgument, TooLarge, Unavailable } from "../errors.js";
import { HIDDEN, HIDDEN_TOP, Ignore } from "./ignore.js";
import { textOf } from "./runes.js";
import { DIRECTORY, FIFO, FILE, HARD_LINK, SYMLINK } from "./tar.js";

const IGNORE_FILE = ".dockerignore";
const IGNORE_FILE_MAX = 1 << 20; /* bytes */
const NAMES_MAX = 32 << 20; /* bytes, of one directory */
const DEPTH_MAX = 256;
const ENTRIES_MAX = 5_000_000;
const { O_RDONLY, O_NOFOLLOW = 0, O_NONBLOCK = 0, O_NOCTTY = 0 } = constants;

function changed(path) {
	return new Unavailable(`${textOf(path)} changed while it was read; put it again`);
}

async function readRules(file) {
	const status = await file.stat();

	if (!status.isFile())
		throw new InvalidArgument(`${IGNORE_FILE} is no file`);
	if (status.size > IGNORE_FILE_MAX)
		throw new TooLarge(`${IGNORE_FILE} is larger than ${IGNORE_FILE_MAX} bytes`);
	return new Ignore(await file.readFile("latin1"));
}

/* What one call of readdir() has, without what the system says of "." and "..". */
async function readNames(path) {
	const names = await readdir(path, "latin1");
	const size = names.reduce((sum, name) => sum + name.length + 1, 0);

	if (size > NAMES_MAX)
		throw new TooLarge(`a directory's names: more than ${NAMES_MAX} bytes`);
	return names.sort(); /* strings of bytes: in byte order */
}

function kindOf(status) {
	if (status.isFile())
		return FILE;
	if (status.isDirectory())
		return DIRECTORY;
	if (status.isSymbolicLink())
		return SYMLINK;
	return status.isFIFO() ? FIFO : undefined;
}

/* A file as what it was when it was looked at. */
export class OpenFile {
	#path;
	#file;
	#status;

	static async open(path, where, seen) {
		const opened = new OpenFile();

		opened.#path = path;
		try {
			opened.#file = await open(where, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
		} catch (error) {
			throw error.code === "ENOENT" || error.code === "ELOOP" ? changed(path) : error;
		}
		opened.#status = await opened.#file.stat({ bigint: true });
		if (opened.#status.dev === seen.dev && opened.#status.ino === seen.ino && opened.#status.isFile())
			return opened;
		await opened.close();
		throw changed(path);
	}

	get mode() {
		return Number(this.#status.mode);
	}

	get size() {
		return Number(this.#status.size);
	}

	/* How many bytes came into `room`. */
	async read(room, at) {
		const { bytesRead } = await this.#file.read(room, 0, Math.min(room.length, this.size - at), at);

		if (bytesRead === 0)
			throw changed(this.#path);
		return bytesRead;
	}

	/* Nothing has changed since it was opened. */
	async check() {
		const now = await this.#file.stat({ bigint: true });

		if (["size", "mode", "mtimeNs", "ctimeNs"].some((member) => now[member] !== this.#status[member]))
			throw changed(this.#path);
	}

	async close() {
		await this.#file.close();
	}
}

/* A directory that is entered gives its entry, after those above it. */
function* enter(level) {
	if (level === undefined || level.entered)
		return;
	yield* enter(level.above);
	level.entered = true;
	yield level.entry;
}

/* Gives entries as tar.js wants them; files have open() besides. `root` is without symlinks. */
class Walk {
	#root;
	#ignore;
	#signal;
	#twins = new Map(); /* of files with several names: the first */
	#entries = 0;

	constructor(root, ignore, signal) {
		this.#root = root;
		this.#ignore = ignore;
		this.#signal = signal;
	}

	#where(path) {
		return Buffer.from(`${this.#root}/${path}`, "latin1");
	}

	async *directory(path, level, depth) {
		if (depth === DEPTH_MAX)
			throw new TooLarge(`directories nested deeper than ${DEPTH_MAX}, at ${textOf(path).slice(0, 100)}`);
		for (const name of await readNames(this.#where(path))) {
			const below = path === "" ? name : `${path}/${name}`;
			const { verdict } = this.#ignore.judge(below);

			this.#signal?.throwIfAborted();
			if (verdict !== HIDDEN)
				yield* this.#visit(below, verdict === HIDDEN_TOP, level, depth);
		}
	}

	async *#visit(path, hidden, level, depth) {
		const status = await this.#look(path);
		const type = kindOf(status);

		if (status.isSocket() || (hidden && type !== DIRECTORY))
			return;
		if (type === undefined)
			throw new InvalidArgument(`${textOf(path)}: COPY takes files, directories and links, this is a device`);
		const here = { above: level, entry: await this.#entryOf(path, type, status), entered: false };

		if (!hidden)
			yield* enter(here);
		if (type === DIRECTORY)
			yield* this.directory(path, here, depth + 1);
	}

	async #look(path) {
		if (++this.#entries > ENTRIES_MAX)
			throw new TooLarge(`more than ${ENTRIES_MAX} files in one context`);
		try {
			return await lstat(this.#where(path), { bigint: true });
		} catch (error) {
			throw error.code === "ENOENT" ? changed(path) : error;
		}
	}

	async #entryOf(path, type, status) {
		const entry = { type, name: path, mode: Number(status.mode) };

		if (type === SYMLINK)
			return { ...entry, mode: 0o777, link: await readlink(this.#where(path), "latin1") };
		if (type !== FILE)
			return entry;
		const twin = this.#twinOf(path, status);

		return twin === undefined
			? { ...entry, open: () => OpenFile.open(path, this.#where(path), status) }
			: { ...entry, type: HARD_LINK, link: twin };
	}

	#twinOf(path, { dev, ino, nlink }) {
		const key = `${dev}:${ino}`;
		const twin = this.#twins.get(key);

		if (nlink > 1n && twin === undefined)
			this.#twins.set(key, path);
		return twin;
	}
}

async function readIgnore(root) {
	let path;

	try {
		path = await realpath(Buffer.from(`${root}/${IGNORE_FILE}`, "latin1"), "latin1");
	} catch (error) {
		if (error.code === "ENOENT" || error.code === "ENOTDIR")
			return new Ignore("");
		throw error;
	}
	if (!path.startsWith(`${root}/`))
		throw new InvalidArgument(`${IGNORE_FILE} leads outside its directory`);
	const file = await open(Buffer.from(path, "latin1"), O_RDONLY | O_NONBLOCK | O_NOCTTY);

	try {
		return await readRules(file);
	} finally {
		await file.close();
	}
}

export async function* walk(dir, signal) {
	const root = (await realpath(dir, "latin1")).replace(/\/$/, "");

	yield* new Walk(root, await readIgnore(root), signal).directory("", undefined, 0);
}
