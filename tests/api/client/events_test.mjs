/* SPDX-License-Identifier: Apache-2.0 */
import assert from "node:assert/strict";
import test from "node:test";
import { parseEvents } from "../../../api/client/event_stream.js";
import * as hearth from "../../../api/client/index.js";
import { fail, inTurn, serve } from "./daemon.mjs";

function event(id, type = "image.ready") {
	return `id: ${id}\nevent: ${type}\ndata: ${JSON.stringify({ id: String(id), type, agentId: "agt_1" })}\n\n`;
}

/* A stream of these texts, which ends, breaks, or stays open. */
function stream(...texts) {
	return open(texts, (call, response) => response.end());
}

function broken(...texts) {
	return open(texts, (call, response) => response.write(": bye\n", () => call.socket.destroy()));
}

function endless(...texts) {
	return open(texts, () => {});
}

function open(texts, after) {
	return (call, response) => {
		response.writeHead(200, { "content-type": "text/event-stream" });
		for (const text of texts)
			response.write(text);
		after(call, response);
	};
}

async function take(events, count) {
	const taken = [];

	for await (const event of events) {
		taken.push(event);
		if (taken.length === count)
			break;
	}
	return taken;
}

async function parse(...pieces) {
	const events = [];

	for await (const event of parseEvents(pieces.map((piece) => Buffer.from(piece, "latin1"))))
		events.push(event);
	return events;
}

test("a stream is read as the standard says", async () => {
	assert.deepEqual(await parse("id: 1\nevent: a\ndata: x\n\n"), [{ id: "1", type: "a", data: "x" }]);
	assert.deepEqual(await parse("data:x\ndata:  y\ndata\n\n"), [{ data: "x\n y\n" }]);
	assert.deepEqual(await parse(": comment\n:\n\n"), [{}]);
	assert.deepEqual(await parse("data: x\r\n\r\ndata: y\r\rdata: z\n\n"), [{ data: "x" }, { data: "y" }, { data: "z" }]);
	assert.deepEqual(await parse("data: x\r", "\n\r", "\ndata: y\n\n"), [{ data: "x" }, { data: "y" }]);
	assert.deepEqual(await parse("da", "ta: \xc3", "\xa4\n", "\n"), [{ data: "ä" }]);
	assert.deepEqual(await parse("retry: 10\nretry: x\nunknown: y\nid: a\0b\n\n"), [{ retryMs: 10 }]);
	assert.deepEqual(await parse("data: never ended\n"), []);
	assert.deepEqual(await parse("id\ndata: a:b\n\n"), [{ id: "", data: "a:b" }]);
});

test("an event has a ceiling, in one line or in many", async () => {
	await assert.rejects(parse(...Array(5).fill("x".repeat(1 << 20))), hearth.TooLarge);
	await assert.rejects(parse(...Array(5).fill(`data: ${"x".repeat(1 << 20)}\n`)), hearth.TooLarge);
});

for (const transport of ["unix", "fetch"]) {
	test(`${transport}: a stream that ends or breaks goes on behind its last event`, async (t) => {
		const { client, calls } = await serve(t, {
			"events.stream": inTurn(stream(event(1), event(2)), broken(event(3)), endless(event(4), event(5))),
		}, { transport });
		const taken = await take(client.events({ agentId: "agt_1" }), 5);

		assert.deepEqual(taken.map(({ id }) => id), ["1", "2", "3", "4", "5"]);
		assert.deepEqual(taken[0], { id: "1", type: "image.ready", agentId: "agt_1" });
		assert.deepEqual(calls.map(({ headers }) => headers["last-event-id"]), [undefined, "2", "3"]);
		assert.deepEqual(calls.map(({ query }) => query), Array(3).fill({ agentId: "agt_1" }));
	});

	test(`${transport}: who stops listening ends the connection`, async (t) => {
		let closed;
		const gone = new Promise((resolve) => (closed = resolve));
		const { client } = await serve(t, {
			"events.stream": (call, response) => {
				response.on("close", closed);
				endless(event(1))(call, response);
			},
		}, { transport });

		await take(client.events(), 1);
		await gone;
	});

	test(`${transport}: an aborted signal ends the events without an error`, async (t) => {
		const { client } = await serve(t, { "events.stream": endless(event(1)) }, { transport });
		const abort = new AbortController();
		const taken = [];

		for await (const { id } of client.events.stream({}, { signal: abort.signal })) {
			taken.push(id);
			abort.abort();
		}
		assert.deepEqual(taken, ["1"]);
		assert.deepEqual(await take(client.events({}, { signal: abort.signal })), []);
	});
}

test("an aborted signal ends a pause, too", async (t) => {
	const abort = new AbortController();
	const { client } = await serve(t, {
		"events.stream": (call, response) => {
			response.on("finish", () => abort.abort());
			stream(`retry: 1000000\n\n`)(call, response);
		},
	});

	assert.deepEqual(await take(client.events({}, { signal: abort.signal })), []);
});

test("one can begin behind an event, and is told of a gap", async (t) => {
	const { client, calls } = await serve(t, { "events.stream": endless('event: gap\ndata: {"oldest": "40"}\n\n', event(41)) });
	const [gap, next] = await take(client.events({ after: "7" }), 2);

	assert.deepEqual([gap.type, gap.oldest, next.id], ["gap", "40", "41"]);
	assert.equal(calls[0].headers["last-event-id"], "7");
});

test("a daemon that is not there yet is waited for, a refusal is not", async (t) => {
	const busy = (call, response) => fail(response, 503, { code: "Unavailable", message: "starting" }, { "retry-after": "0" });
	const refuse = (call, response) => fail(response, 401, { code: "Unauthorized", message: "unknown token" });
	const { client, calls } = await serve(t, { "events.stream": inTurn(busy, busy, endless(event(1)), refuse) });

	assert.equal((await take(client.events(), 1))[0].id, "1");
	assert.equal(calls.length, 3);
	await assert.rejects(take(client.events(), 1), hearth.Unauthorized);
});

test("silence is a cut", async (t) => {
	const { client } = await serve(t, {
		"events.stream": (call, response) => endless(event(Number(call.headers["last-event-id"] ?? 0) + 1))(call, response),
	});

	assert.deepEqual((await take(client.events({}, { silenceMs: 50 }), 2)).map(({ id }) => id), ["1", "2"]);
});

test("data that is not JSON is an error, once", async (t) => {
	const { client } = await serve(t, { "events.stream": endless("id: 1\ndata: {\n\n") });

	await assert.rejects(take(client.events(), 1), hearth.Internal);
});

test("logs come as they are written, or whole", async (t) => {
	const { client, calls } = await serve(t, {
		"bakes.logs": open([Buffer.from("a\xc3", "latin1"), Buffer.from("\xa4\n", "latin1"), "end\n"], (call, response) => response.end()),
	});
	const pieces = [];

	for await (const piece of client.bakes.logs({ id: "bak_1", follow: true }))
		pieces.push(piece);
	assert.equal(pieces.join(""), "aä\nend\n");
	assert.equal(await client.bakes.logs({ id: "bak_1", step: 2 }).text(), "aä\nend\n");
	assert.deepEqual(calls.map(({ query }) => query), [{ id: "bak_1", follow: "true" }, { id: "bak_1", step: "2" }]);
});

test("logs that break off say so", async (t) => {
	const { client } = await serve(t, { "bakes.logs": broken("half") });

	await assert.rejects(client.bakes.logs({ id: "bak_1" }).text(), hearth.Unavailable);
});
