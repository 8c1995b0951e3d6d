/* SPDX-License-Identifier: Apache-2.0 */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import test from "node:test";
import * as hearth from "../../../api/client/index.js";
import { fail, serve } from "./daemon.mjs";

const table = new URL("../../../layers/base/err.c", import.meta.url);
const types = new URL("../../../api/client/index.d.ts", import.meta.url);

test("each code of the daemon's table has a class, which its errors are of", async (t) => {
	const codes = [...(await readFile(table, "utf8")).matchAll(/\{"(\w+)", \d+, (\d+)\}/g)].filter(([, code]) => code !== "None");
	const { client } = await serve(t, {
		"agents.get": ({ query: { id } }, response) => {
			const [, code, status] = codes.find(([, name]) => name === id);

			fail(response, Number(status), { code, message: `said by ${code}` });
		},
	}, { retries: 0 });

	assert.ok(codes.length > 15);
	for (const [, code, status] of codes) {
		const error = await client.agents.get({ id: code }).catch((caught) => caught);

		assert.ok(error instanceof hearth[code], code);
		assert.ok(error instanceof hearth.HearthError && error instanceof Error);
		assert.deepEqual([error.code, error.name, error.httpStatus], [code, code, Number(status)]);
		assert.equal(error.message, `said by ${code}`);
	}
});

test("what is exported has a type, and the reverse", async () => {
	const declared = (await readFile(types, "utf8")).matchAll(/^export (?:class|function) (\w+)/gm);

	assert.deepEqual(Array.from(declared, ([, name]) => name).sort(), Object.keys(hearth).sort());
});

test("members come along, but not in place of an error's own", async (t) => {
	const { client } = await serve(t, {
		"sessions.create": (call, response) => fail(response, 409, {
			code: "AgentNotReady",
			message: "its image is baking",
			status: "baking",
			stack: "theirs",
			name: "theirs",
		}),
	});
	const error = await client.sessions.create({ agent: "repo-bot" }).catch((caught) => caught);

	assert.ok(error instanceof hearth.AgentNotReady);
	assert.equal(error.status, "baking");
	assert.equal(error.name, "AgentNotReady");
	assert.match(error.stack, /^AgentNotReady: its image is baking\n/);
});

test("a code of another age is an error all the same", async (t) => {
	const { client } = await serve(t, {
		"agents.get": (call, response) => fail(response, 418, { code: "createClient", message: "tea", leaves: 3 }),
	});
	const error = await client.agents.get({ id: "a" }).catch((caught) => caught);

	assert.equal(error.constructor, hearth.HearthError);
	assert.deepEqual([error.code, error.httpStatus, error.leaves], ["createClient", 418, 3]);
});

test("an answer that is not the daemon's has the class of its status", async (t) => {
	const { client } = await serve(t, {
		"agents.get": ({ query: { id } }, response) => response.writeHead(Number(id)).end("<html>"),
	}, { retries: 0 });
	const expected = { 302: "Internal", 401: "Unauthorized", 404: "NotFound", 413: "TooLarge", 502: "UpstreamFailed", 504: "TimedOut" };

	for (const [status, code] of Object.entries(expected)) {
		const error = await client.agents.get({ id: status }).catch((caught) => caught);

		assert.ok(error instanceof hearth[code], status);
		assert.match(error.message, new RegExp(status));
	}
	await assert.rejects(client.agents.get({ id: 200 }), hearth.Internal);
});
