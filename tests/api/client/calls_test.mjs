/* SPDX-License-Identifier: Apache-2.0 */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import { readFile, readdir } from "node:fs/promises";
import { join } from "node:path";
import test from "node:test";
import { promisify } from "node:util";
import { isPassing, pauseMs } from "../../../api/client/caller.js";
import * as hearth from "../../../api/client/index.js";
import { fail, inTurn, json, raw, scratch, serve } from "./daemon.mjs";

const run = promisify(execFile);

const echo = ({ verb, method, query, body }, response) => json(response, 200, { verb, method, query, body });
const busy = (headers) => (call, response) => fail(response, 503, { code: "Unavailable", message: "later" }, headers);
const soon = { "retry-after": "0" };
const cut = (call) => call.socket.destroy();
const silent = () => {};

/* Reads and writes, each with an argument. */
const READS = {
	agents: ["get", "list", "versions"],
	bakes: ["get", "list"],
	sessions: ["get", "list"],
	tools: ["list"],
	sandboxes: ["list", "get"],
	tokens: ["list"],
	mirror: ["status"],
	server: ["info"],
};
const WRITES = {
	agents: ["sync", "rebake", "rollback"],
	bakes: ["cancel"],
	sessions: ["create", "end"],
	tools: ["call"],
	sandboxes: ["snapshot", "resume", "release"],
	tokens: ["create", "revoke"],
	mirror: ["warm"],
};

function methodsOf(table) {
	return Object.entries(table).flatMap(([noun, verbs]) => verbs.map((verb) => [noun, verb]));
}

test("each method of the daemon's has one of the client's", async () => {
	const api = new URL("../../../api/", import.meta.url);
	const client = hearth.createClient();
	const names = [];

	for (const file of (await readdir(api)).filter((name) => /^routes_.*\.c$/.test(name)))
		names.push(...(await readFile(new URL(file, api), "utf8")).matchAll(/\.name = "(\w+)\.(\w+)"/g));
	assert.ok(names.length > 20);
	for (const [, noun, verb] of names)
		assert.equal(typeof client[noun]?.[verb], "function", `${noun}.${verb}`);
});

test("an agent that is synced by its id gets the spec's slug", async (t) => {
	const { client } = await serve(t, { "agents.sync": echo });

	assert.deepEqual(await client.agents.sync({ slug: "b" }, { id: "agt_1" }), {
		verb: "POST",
		method: "agents.sync",
		query: { id: "agt_1" },
		body: '{"slug":"b"}',
	});
});

for (const transport of ["unix", "tcp", "fetch"]) {
	test(`${transport}: reads go by GET, writes by POST, all with the token`, async (t) => {
		const routes = Object.fromEntries([...methodsOf(READS), ...methodsOf(WRITES)].map(([noun, verb]) => [`${noun}.${verb}`, echo]));
		const { client, calls } = await serve(t, routes, { transport });

		for (const [noun, verb] of methodsOf(READS)) {
			const answer = await client[noun][verb]({ id: "a&b", limit: 2, cursor: undefined });

			assert.deepEqual(answer, { verb: "GET", method: `${noun}.${verb}`, query: { id: "a&b", limit: "2" }, body: "" });
		}
		for (const [noun, verb] of methodsOf(WRITES)) {
			const answer = await client[noun][verb]({ id: "ä" });

			assert.deepEqual(answer, { verb: "POST", method: `${noun}.${verb}`, query: {}, body: '{"id":"ä"}' });
		}
		assert.equal((await client.agents.list()).verb, "GET");
		assert.ok(calls.every(({ headers }) => headers.authorization === "Bearer hth_test"));
	});

	test(`${transport}: a read that came at a bad time is sent again`, async (t) => {
		const { client, calls } = await serve(t, {
			"agents.get": inTurn(cut, busy(soon), (call, response) => fail(response, 429, { code: "TooManyRequests", retryAfterMs: 0 }), echo),
		}, { transport });

		assert.equal((await client.agents.get({ id: "a" })).verb, "GET");
		assert.equal(calls.length, 4);
	});

	test(`${transport}: a write is sent once`, async (t) => {
		const { client, calls } = await serve(t, { "agents.rebake": inTurn(busy(soon), cut, echo) }, { transport });

		await assert.rejects(client.agents.rebake({ id: "a" }), { code: "Unavailable", httpStatus: 503, retryAfterMs: 0 });
		await assert.rejects(client.agents.rebake({ id: "a" }), (error) => error.code === "Unavailable" && !error.httpStatus);
		assert.equal(calls.length, 2);
	});

	test(`${transport}: a call ends when its signal is aborted`, async (t) => {
		const { client, server } = await serve(t, { "agents.get": silent, "agents.rebake": silent }, { transport });
		const reason = new Error("enough");

		for (const method of ["get", "rebake"]) {
			const abort = new AbortController();
			const called = client.agents[method]({ id: "a" }, { signal: abort.signal });

			await once(server, "request");
			abort.abort(reason);
			await assert.rejects(called, reason);
			await assert.rejects(client.agents[method]({ id: "a" }, { signal: abort.signal }), reason);
		}
	});

	test(`${transport}: a call that takes too long is TimedOut`, async (t) => {
		const half = (call, response) => response.writeHead(200).write('{"id":');
		const { client } = await serve(t, { "agents.get": silent, "agents.rebake": silent, "sessions.get": half }, { transport });

		await assert.rejects(client.agents.get({ id: "a" }, { timeoutMs: 30 }), hearth.TimedOut);
		await assert.rejects(client.agents.rebake({ id: "a" }, { timeoutMs: 30 }), hearth.TimedOut);
		await assert.rejects(client.sessions.get({ id: "a" }, { timeoutMs: 30 }), hearth.TimedOut);
	});

	test(`${transport}: an answer that breaks off is no answer`, async (t) => {
		const half = (call, response) => {
			response.writeHead(200, { "content-length": 100 }).write('{"id":', () => call.socket.destroy());
		};
		const { client } = await serve(t, { "agents.get": half }, { transport, retries: 0 });

		await assert.rejects(client.agents.get({ id: "a" }), hearth.Unavailable);
	});
}

test("a plane is synced as its agent", async (t) => {
	const { client } = await serve(t, { "agents.sync": echo });
	const plane = hearth.definePlane({ agent: { slug: "a" } });

	assert.equal((await client.agents.sync(plane)).body, '{"slug":"a"}');
	assert.equal((await client.agents.sync(plane.agent)).body, '{"slug":"a"}');
});

test("what will not pass by itself is not tried again", async (t) => {
	const refuse = (call, response) => fail(response, 503, { code: "ProviderUnavailable", message: "no modal here" }, soon);
	const { client, calls } = await serve(t, { "sandboxes.get": refuse });

	await assert.rejects(client.sandboxes.get({ id: "a" }), hearth.ProviderUnavailable);
	assert.equal(calls.length, 1);
});

test("tries come to an end, by number and by time", async (t) => {
	const { client, calls } = await serve(t, { "agents.get": busy(soon), "agents.list": busy({ "retry-after": "120" }) }, { retries: 2 });

	await assert.rejects(client.agents.get({ id: "a" }), { code: "Unavailable", httpStatus: 503 });
	assert.equal(calls.length, 3);
	await assert.rejects(client.agents.list(), { code: "Unavailable", retryAfterMs: 120_000 });
	assert.equal(calls.length, 4);
});

test("pauses grow to a ceiling, and half of them is chance", () => {
	assert.deepEqual([0, 1, 2, 9].map((tried) => pauseMs(tried, 1)), [250, 500, 1000, 10_000]);
	assert.deepEqual([0, 9].map((tried) => pauseMs(tried, 0)), [125, 5000]);
});

test("reads share a connection, a write has its own", async (t) => {
	const { client, calls } = await serve(t, { "agents.get": echo, "agents.rebake": echo });

	for (const method of ["get", "get", "rebake", "rebake", "get"])
		await client.agents[method]({ id: "a" });
	assert.equal(new Set(calls.map(({ socket }) => socket)).size, 3);
	assert.equal(calls[0].socket, calls[4].socket);
});

test("where nobody listens, the error says what to do", async (t) => {
	const { client, url, server } = await serve(t, {}, { retries: 0 });

	server.close();
	await assert.rejects(client.agents.list(), (error) => {
		assert.ok(error instanceof hearth.Unavailable);
		assert.ok(error.message.startsWith(`${url}: `));
		assert.match(error.message, /is hearth serve running there\?$/);
		assert.equal(error.cause.syscall, "connect");
		return true;
	});
});

test("an address is http, https or unix, and nothing else", () => {
	for (const url of ["", "127.0.0.1:7460", "ftp://a", "unix:relative", "http://user@a", "http://a?b", "http://a#b"])
		assert.throws(() => hearth.createClient({ url }), { code: "InvalidArgument", path: "url" });
	for (const url of ["http://[::1]:7460", "https://hearth.example/below/", "unix:/run/hearth.sock", new URL("http://a")])
		hearth.createClient({ url });
});

test("a token is checked before it is sent", () => {
	for (const token of ["", "a b", "hth_\n", "hth_ä"])
		assert.throws(() => hearth.createClient({ token }), { code: "InvalidArgument", path: "token" });
});

test("a daemon's certificate is trusted as far as the client is told to", async (t) => {
	const dir = await scratch(t);
	const [key, cert] = ["key", "cert"].map((name) => join(dir, name));
	const request = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=hearth"];

	await run("openssl", [...request, "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", cert]);
	const tls = { key: await readFile(key), cert: await readFile(cert) };
	const { client, url } = await serve(t, { "agents.list": echo }, { transport: "tcp", tls, ca: tls.cert });

	assert.equal((await client.agents.list()).verb, "GET");
	await assert.rejects(hearth.createClient({ url }).agents.list(), (error) => {
		assert.ok(error instanceof hearth.Unavailable && !isPassing(error));
		return error.cause.code === "DEPTH_ZERO_SELF_SIGNED_CERT";
	});
	const plain = await serve(t, {}, { transport: "tcp" });

	await assert.rejects(hearth.createClient({ url: plain.url.replace("http:", "https:") }).agents.list(), (error) => !isPassing(error));
});

test("a path in front of the methods is kept, and the environment fills in", async (t) => {
	const before = { ...process.env };

	t.after(() => {
		process.env = before;
	});
	process.env.HEARTH_TOKEN = "hth_environment";
	const server = await serve(t, { "/below/v1/agents.list": ({ headers }, response) => json(response, 200, { token: headers.authorization }) }, { transport: "tcp" });

	process.env.HEARTH_URL = `${server.url}/below/`;
	assert.deepEqual(await hearth.createClient().agents.list(), { token: "Bearer hth_environment" });
});

test("sleep ends by itself or by its signal, and leaves nothing behind", async () => {
	const abort = new AbortController();
	const reason = new Error("enough");

	await hearth.sleep(1, { signal: abort.signal });
	const asleep = hearth.sleep(2 ** 40, { signal: abort.signal });

	abort.abort(reason);
	await assert.rejects(asleep, reason);
	await assert.rejects(hearth.sleep(0, { signal: abort.signal }), reason);
});

test("a huge answer is refused before it fills the memory", async (t) => {
	const block = Buffer.alloc(1 << 20, " ");
	const flood = raw(({ socket }, response) => {
		const pour = () => {
			while (!socket.destroyed && response.write(block));
		};

		response.writeHead(200).on("drain", pour);
		pour();
	});
	const { client } = await serve(t, { "agents.list": flood });

	await assert.rejects(client.agents.list(), hearth.TooLarge);
});
