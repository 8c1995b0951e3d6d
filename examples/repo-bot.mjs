/* SPDX-License-Identifier: Apache-2.0 */
/*
 * repo-bot.mjs - an agent with a machine of its own: say what it is, wait for
 * its image, open a session.
 *
 *	export HEARTH_URL=unix:/var/lib/hearth/run/hearth.sock
 *	export HEARTH_TOKEN=$(sudo cat /var/lib/hearth/admin.token)
 *	node examples/repo-bot.mjs
 *
 * Where ghcr.io or github.com are not reached, or are others, the daemon's
 * configuration says who stands in for them:
 *
 *	{"registry": {"mirrors": {"ghcr.io": ["https://registry.internal"]}},
 *	 "egress": {"hosts": {"github.com": "10.0.0.7"}}}
 */
import { createClient, definePlane, sleep } from "../api/client/index.js";

export const plane = definePlane({
  agent: {
    slug: "repo-bot",
    model: { provider: "gateway", model: "anthropic/claude-sonnet-4.6" },
    system: "You work in the checked-out repository at /workspace.",
    sandbox: {
      provider: "modal",
      image: {
        base: "ghcr.io/acme/agent-base:1.4",
        steps: [
          "RUN apt-get update && apt-get install -y git",
          "RUN git clone --depth 1 https://github.com/acme/handbook /workspace"
        ]
      },
      resources: { cpu: 2, memoryMb: 4096 },
      network: { egress: { mode: "allow", allow: ["github.com"] } },
      lifecycle: { idleAfterMs: 15 * 60 * 1000, onIdle: "snapshot", keepSnapshots: 2 }
    }
  }
})

const client = createClient()
const { id: agentId, version, appended, warnings } = await client.agents.sync(plane)
console.log(`repo-bot version ${version} ${appended ? "is new" : "was there already"}`)
warnings.forEach((warning) => console.warn(`warning: ${warning}`))

console.log("its image is baked meanwhile: hearth logs -f repo-bot")
let { status } = await client.agents.imageStatus({ id: agentId })   // a read; never builds
while (status === "baking") { await sleep(5_000); ({ status } = await client.agents.imageStatus({ id: agentId })) }

const image = await client.agents.imageStatus({ id: agentId })
if (status === "failed" && image.error) {
  console.error(`${image.error.message}\n${image.error.logTail}`)
  process.exit(1)
}
console.log(`its image is ${status}: ${image.digest}`)

const session = await client.sessions.create({ agent: "repo-bot" })
console.log(`session ${session.id} is open on version ${session.version}`)
await client.sessions.end({ id: session.id })
