/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client.js - every method of the daemon, by its name. Arguments come first,
 * then { signal, timeoutMs }. What an argument or an answer holds, index.d.ts
 * says.
 */
import { Caller } from "./caller.js";
import { putContext } from "./contexts.js";
import { streamEvents } from "./events.js";
import { readImageStatus } from "./image_status.js";
import { openLogs } from "./logs.js";

const MACHINE_MS = 15 * 60_000; /* a machine may have to be made, and a tool takes its time */
const WARM_MS = 60 * 60_000; /* an image of many layers, from far away */

function toolTimeoutMs(args, caller) {
	return args?.timeoutMs === undefined ? MACHINE_MS : args.timeoutMs + caller.timeoutMs;
}

export function createClient(options) {
	const caller = new Caller(options);
	const read = (method) => (args, own) => caller.read(method, args, own);
	const write = (method) => (args, own) => caller.write(method, args, own);
	const slow = (method) => (args, own) => caller.write(method, args, { timeoutMs: MACHINE_MS, ...own });
	const events = (args, own) => streamEvents(caller, args, own);

	return Object.freeze({
		agents: {
			sync: (plane, { id, ...own } = {}) => caller.write("agents.sync", plane?.agent ?? plane, own, { id }),
			get: read("agents.get"),
			list: read("agents.list"),
			versions: read("agents.versions"),
			imageStatus: (args, own) => readImageStatus(caller, args, own),
			rebake: write("agents.rebake"),
			rollback: write("agents.rollback"),
		},
		bakes: {
			get: read("bakes.get"),
			list: read("bakes.list"),
			logs: (args, own) => openLogs(caller, args, own),
			cancel: write("bakes.cancel"),
		},
		sessions: {
			create: write("sessions.create"),
			get: read("sessions.get"),
			list: read("sessions.list"),
			end: write("sessions.end"),
		},
		tools: {
			list: read("tools.list"),
			call: (args, own) => caller.write("tools.call", args, { timeoutMs: toolTimeoutMs(args, caller), ...own }),
		},
		sandboxes: {
			list: read("sandboxes.list"),
			get: read("sandboxes.get"),
			snapshot: slow("sandboxes.snapshot"),
			resume: slow("sandboxes.resume"),
			release: slow("sandboxes.release"),
		},
		contexts: {
			put: (source, own) => putContext(caller, source, own),
		},
		tokens: {
			create: write("tokens.create"),
			list: read("tokens.list"),
			revoke: write("tokens.revoke"),
		},
		mirror: {
			status: read("mirror.status"),
			warm: (args, own) => caller.write("mirror.warm", args, { timeoutMs: WARM_MS, ...own }),
		},
		server: {
			info: read("server.info"),
		},
		events: Object.assign(events, { stream: events }),
	});
}
