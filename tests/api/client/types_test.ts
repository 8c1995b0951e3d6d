/* SPDX-License-Identifier: Apache-2.0 */
/* What the documentation calls, and mistakes that the types find. Checked by tsc, never run. */
import {
	AgentNotReady,
	Client,
	Event,
	HearthError,
	Status,
	createClient,
	definePlane,
} from "../../../api/client/index.js";
import { plane } from "../../../examples/repo-bot.mjs";

const client: Client = createClient({ url: "http://127.0.0.1:7460", token: "hth_" });
const { id: agentId, warnings } = await client.agents.sync(plane);
const { status } = await client.agents.imageStatus({ id: agentId });
const settled: Status = status;
const words: string[] = warnings;

await client.agents.sync(plane, { id: agentId });
words.push((await client.server.info()).version, (await client.tokens.create({ scopes: ["read"] })).token);
words.push(...(await client.agents.versions({ id: agentId })).items.map(({ digest }) => digest));
await client.agents.rebake({ id: agentId })
const { id, id: sessionId } = await client.sessions.create({ agent: agentId });
await client.sandboxes.list({ sessionId })
await client.sandboxes.get({ id })
await client.sandboxes.snapshot({ id })
await client.sandboxes.resume({ id })
await client.sandboxes.release({ id })     // also revokes its preview grants

definePlane({
	agent: {
		slug: "reviewer",
		sandbox: { tools: { preset: "read-only", deny: ["fetch"] } },
		subagents: [{
			kind: "derived", name: "review", extends: "parent",
			description: "Reads the diff and comments. Changes nothing.",
			overrides: { sandbox: { tools: { preset: "read-only" } } }
		}],
	},
});

/* @ts-expect-error: the nearest is steps */
definePlane({ agent: { slug: "a", sandbox: { image: { base: "b", step: [] } } } });
/* @ts-expect-error: an image has a base */
definePlane({ agent: { slug: "a", sandbox: { image: { steps: [] } } } });
/* @ts-expect-error: the machine is the root's */
definePlane({ agent: { slug: "a", subagents: [{ kind: "derived", name: "b", extends: "parent", overrides: { sandbox: { image: { base: "b" } } } }] } });
/* @ts-expect-error: an agent is named by id */
await client.agents.imageStatus({ slug: "repo-bot" });

for await (const event of client.events({ after: "12" }, { signal: new AbortController().signal }) as AsyncIterable<Event>)
	words.push(event.type, settled);
for await (const piece of client.bakes.logs({ id: "bak_1", follow: true }))
	words.push(piece.trim());
words.push((await client.contexts.put("/srv/app")).digest, (await client.contexts.put(new Blob(["tar"]))).digest);

try {
	await client.agents.get({ id: "a", version: 1 }, { timeoutMs: 5 });
} catch (error) {
	if (error instanceof AgentNotReady)
		words.push(error.status);
	else if (error instanceof HearthError)
		words.push(error.code, String(error.httpStatus));
}
