/* SPDX-License-Identifier: Apache-2.0 */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { EventEmitter, once } from "node:events";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import test from "node:test";
import * as hearth from "../../../api/client/index.js";
import { packContext } from "../../../api/client/node/context.js";
import { fail, json, raw, scratch, serve } from "./daemon.mjs";

const digestOf = (bytes) => `sha256:${createHash("sha256").update(bytes).digest("hex")}`;

const store = raw(async ({ request }, response) => {
	const hash = createHash("sha256");

	for await (const bytes of request)
		hash.update(bytes);
	json(response, 200, { digest: `sha256:${hash.digest("hex")}` });
});

const refuse = raw((call, response) => fail(response, 413, { code: "TooLarge", message: "no room" }));

async function* pieces(...texts) {
	for (const text of texts)
		yield Buffer.from(text);
}

for (const transport of ["unix", "tcp", "fetch"]) {
	test(`${transport}: a directory, bytes and streams are put`, async (t) => {
		const { client, calls } = await serve(t, { "contexts.put": store }, { transport });
		const dir = await scratch(t);
		const hash = createHash("sha256");

		await mkdir(join(dir, "d"));
		await writeFile(join(dir, "d", "large"), Buffer.alloc(3_000_000, "x"));
		for await (const bytes of packContext(dir))
			hash.update(bytes);
		assert.deepEqual(await client.contexts.put(dir), { digest: `sha256:${hash.digest("hex")}` });
		for (const source of [Buffer.from("a tar"), new Blob(["a ", "tar"]), Readable.from(pieces("a ", "tar")), pieces("a ", "tar"), new Blob(["a tar"]).stream()])
			assert.deepEqual(await client.contexts.put(source), { digest: digestOf("a tar") });
		assert.ok(calls.every(({ verb, headers }) => verb === "POST" && headers["content-type"] === "application/x-tar"));
	});

	test(`${transport}: what fails in the packing is not taken for the connection`, async (t) => {
		const { client } = await serve(t, { "contexts.put": store }, { transport });
		const dir = await scratch(t);

		await assert.rejects(client.contexts.put(join(dir, "nowhere")), { code: "ENOENT" });
		await writeFile(join(dir, ".dockerignore"), "[");
		await assert.rejects(client.contexts.put(dir), /^InvalidArgument: \.dockerignore line 1/);
	});

	test(`${transport}: an upload ends when its signal is aborted`, async (t) => {
		const { client } = await serve(t, { "contexts.put": raw(() => {}) }, { transport });
		const abort = new AbortController();
		const source = new EventEmitter();
		const ended = once(source, "end");
		const reason = new Error("enough");

		source[Symbol.asyncIterator] = async function* endless() {
			try {
				for (;; source.emit("more"))
					yield Buffer.alloc(1 << 16);
			} finally {
				source.emit("end");
			}
		};
		source.once("more", () => abort.abort(reason));
		await assert.rejects(client.contexts.put(source, { signal: abort.signal }), reason);
		await ended;
	});
}

test("a refusal comes before the bytes are sent", async (t) => {
	const { client, server } = await serve(t, { "contexts.put": refuse });
	let asked = 0;
	const source = (async function* endless() {
		for (;;) {
			asked++;
			yield Buffer.alloc(1 << 16);
		}
	})();

	server.on("checkContinue", (request, response) => server.emit("request", request, response));
	await assert.rejects(client.contexts.put(source), hearth.TooLarge);
	assert.equal(asked, 0);
});

test("a refusal in the middle ends the upload", async (t) => {
	const { client } = await serve(t, {
		"contexts.put": raw(({ request }, response) => {
			request.once("data", () => {
				request.resume();
				refuse({ request }, response);
			});
		}),
	});
	const source = (async function* endless() {
		for (;;)
			yield Buffer.alloc(1 << 16);
	})();

	await assert.rejects(client.contexts.put(source), hearth.TooLarge);
});

test("an upload that nobody takes is TimedOut", async (t) => {
	const { client } = await serve(t, { "contexts.put": raw(() => {}) });
	const source = (async function* endless() {
		for (;;)
			yield Buffer.alloc(1 << 20);
	})();

	await assert.rejects(client.contexts.put(source, { timeoutMs: 100 }), hearth.TimedOut);
});

test("what is no context is refused", async (t) => {
	const { client, calls } = await serve(t, {});

	for (const source of [undefined, null, 7, {}, ["a"]])
		await assert.rejects(client.contexts.put(source), hearth.InvalidArgument);
	assert.equal(calls.length, 0);
});
