/* SPDX-License-Identifier: Apache-2.0 */
/*
 * context.js - a directory as the tar that contexts.put takes: the bytes that
 * `hearth context put` would store, but for extended attributes, which Node
 * cannot read. In memory there are a block, and the names of the directories
 * on the way.
 */
import { FILE, TAR_BLOCK, headersOf, padding } from "./tar.js";
import { walk } from "./walk.js";

const BLOCK = 128 * 1024; /* bytes */

/* Bytes of any length in, blocks out. */
class Blocks {
	#block = Buffer.allocUnsafeSlow(BLOCK);
	#used = 0;

	/* Where the next bytes go; not empty. */
	get room() {
		return this.#block.subarray(this.#used);
	}

	*took(count) {
		this.#used += count;
		if (this.#used < BLOCK)
			return;
		yield this.#block;
		this.#block = Buffer.allocUnsafeSlow(BLOCK); /* the other may not have been sent yet */
		this.#used = 0;
	}

	*add(bytes) {
		for (let at = 0; at < bytes.length; ) {
			const count = bytes.copy(this.room, 0, at);

			at += count;
			yield* this.took(count);
		}
	}

	*end() {
		if (this.#used > 0)
			yield this.#block.subarray(0, this.#used);
	}
}

async function* packFile(entry, blocks) {
	const file = await entry.open();

	try {
		const { mode, size } = file;

		yield* blocks.add(headersOf({ ...entry, mode, size }));
		for (let at = 0; at < size; ) {
			const count = await file.read(blocks.room, at);

			at += count;
			yield* blocks.took(count);
		}
		yield* blocks.add(Buffer.alloc(padding(size)));
		await file.check();
	} finally {
		await file.close();
	}
}

export async function* packContext(dir, { signal } = {}) {
	const blocks = new Blocks();

	for await (const entry of walk(dir, signal)) {
		if (entry.type === FILE)
			yield* packFile(entry, blocks);
		else
			yield* blocks.add(headersOf(entry));
	}
	yield* blocks.add(Buffer.alloc(2 * TAR_BLOCK));
	yield* blocks.end();
}
