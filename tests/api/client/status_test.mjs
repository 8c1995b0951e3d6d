/* SPDX-License-Identifier: Apache-2.0 */
import assert from "node:assert/strict";
import test from "node:test";
import { createClient, definePlane, sleep } from "../../../api/client/index.js";
import { json, serve } from "./daemon.mjs";

/* A route over states, of which each answer that may wait takes the next one. */
function statesOf(...states) {
	return ({ query, headers }, response) => {
		const etag = () => `"${JSON.stringify(states[0]).length}-${states[0].status}"`;

		if (headers["if-none-match"] === etag() && query.wait && states.length > 1)
			states.shift();
		if (headers["if-none-match"] === etag())
			return response.writeHead(304, { etag: etag() }).end();
		return json(response, 200, states[0], { etag: etag() });
	};
}

const baking = { status: "baking", phase: "running" };
const ready = { status: "ready", digest: "sha256:1" };

test("without wait it is one read", async (t) => {
	const { client, calls } = await serve(t, { "agents.imageStatus": statesOf(baking) });

	assert.deepEqual(await client.agents.imageStatus({ id: "agt_1", version: 2 }), baking);
	assert.deepEqual(calls.map(({ verb, query }) => [verb, query]), [["GET", { id: "agt_1", version: "2" }]]);
	assert.equal(calls[0].headers["if-none-match"], undefined);
});

test("with wait it comes back when the state is another", async (t) => {
	const { client, calls } = await serve(t, { "agents.imageStatus": statesOf(baking, ready) });

	assert.deepEqual(await client.agents.imageStatus({ id: "agt_1", wait: 20 }), ready);
	assert.deepEqual(calls.map(({ query }) => query), [{ id: "agt_1" }, { id: "agt_1", wait: "20" }]);
});

test("a state in which nothing is under way is not waited on, unless it is named", async (t) => {
	const { client, calls } = await serve(t, { "agents.imageStatus": statesOf(ready, { ...ready, rebake: { status: "baking" } }) });
	const first = await client.agents.imageStatus({ id: "a", wait: 20 });

	assert.deepEqual(first, ready);
	assert.equal(calls.length, 1);
	const second = await client.agents.imageStatus({ id: "a", wait: 20, since: first });

	assert.equal(second.rebake.status, "baking");
	assert.equal(calls.length, 2);
});

test("a state that stays is given back as it is", async (t) => {
	const { client, calls } = await serve(t, { "agents.imageStatus": statesOf(baking) });
	const first = await client.agents.imageStatus({ id: "a" });

	assert.equal(await client.agents.imageStatus({ id: "a", since: first }), first);
	assert.equal(await client.agents.imageStatus({ id: "a", since: first, wait: 5 }), first);
	assert.deepEqual(calls.map(({ query }) => query.wait), [undefined, undefined, "5"]);
	assert.deepEqual(Object.keys(first), ["status", "phase"]);
	assert.equal(new Set(calls.map(({ socket }) => socket)).size, 1);
});

test("a wait above a minute is several requests", async (t) => {
	const { client, calls } = await serve(t, { "agents.imageStatus": statesOf(baking, baking, ready) });

	assert.deepEqual(await client.agents.imageStatus({ id: "a", wait: 600 }), ready);
	assert.deepEqual(calls.map(({ query }) => query.wait), [undefined, "60", "60"]);
});

test("the loop of the documentation runs as it is written", async (t) => {
	const states = ["baking", "baking", "ready"];
	const { url } = await serve(t, {
		"agents.sync": ({ body }, response) => json(response, 200, { id: "agt_1", slug: JSON.parse(body).slug, version: 1 }),
		"agents.imageStatus": (call, response) => json(response, 200, { status: states.shift() }),
	});
	const client = createClient({ url, token: "hth_test" });
	const { id: agentId } = await client.agents.sync(definePlane({ agent: { slug: "repo-bot" } }));

	let { status } = await client.agents.imageStatus({ id: agentId })   // a read; never builds
	while (status === "baking") { await sleep(5); ({ status } = await client.agents.imageStatus({ id: agentId })) }
	assert.equal(status, "ready");
	assert.equal(states.length, 0);
});
