/* SPDX-License-Identifier: Apache-2.0 */
/* What the package exports, and what the daemon's arguments and answers hold. */

/* The spec of an agent */

export interface Egress {
	mode?: "open" | "allow" | "deny";
	allow?: readonly string[];
	deny?: readonly string[];
}

export interface Image {
	base: string;
	steps?: readonly string[];
	platform?: string;
	/** A digest that contexts.put() has given. */
	context?: string;
	compression?: "zstd" | "gzip";
	reproducible?: boolean;
	network?: { egress?: Egress };
	resources?: Resources;
	timeoutMs?: number;
	/** Names of the daemon's configuration. */
	secrets?: readonly { id: string; required?: boolean }[];
	push?: readonly string[];
	cache?: { from?: readonly string[]; to?: readonly string[] };
	/** Five fields, in UTC. */
	rebake?: { cron: string; jitterMs?: number };
}

export interface Resources {
	cpu?: number;
	memoryMb?: number;
	pids?: number;
	diskMb?: number;
}

export interface Lifecycle {
	idleAfterMs?: number;
	onIdle?: "snapshot" | "release";
	snapshotEveryMs?: number;
	keepSnapshots?: number;
	maxSnapshotAgeMs?: number;
}

export type ToolName =
	| "read"
	| "write"
	| "edit"
	| "glob"
	| "grep"
	| "bash"
	| "process_start"
	| "process_list"
	| "process_logs"
	| "process_kill"
	| "preview"
	| "deploy"
	| "fetch";

export interface ToolPolicy {
	preset?: "read-only";
	allow?: readonly ToolName[];
	deny?: readonly ToolName[];
}

export interface SandboxSpec {
	provider?: "container" | "docker" | "local" | "modal";
	image?: Image;
	resources?: Resources;
	network?: { egress?: Egress };
	lifecycle?: Lifecycle;
	scope?: "tree" | "session";
	serializeTools?: boolean;
	tools?: ToolPolicy;
	runtime?: string;
}

export interface Subagent {
	kind: "derived";
	name: string;
	/** "parent", or the name of an earlier one. */
	extends: string;
	description?: string;
	overrides?: {
		model?: Model | string;
		system?: string;
		sandbox?: Pick<SandboxSpec, "tools" | "scope" | "serializeTools">;
		[member: string]: unknown;
	};
	[member: string]: unknown;
}

export interface Model {
	provider?: string;
	model?: string;
	[member: string]: unknown;
}

export interface AgentSpec {
	slug: string;
	model?: Model | string;
	system?: string;
	sandbox?: SandboxSpec;
	subagents?: readonly Subagent[];
	/** Kept and versioned; returned as a warning. */
	[member: string]: unknown;
}

export interface Plane {
	readonly agent: AgentSpec;
}

/** A frozen copy, which agents.sync() takes. */
export function definePlane(plane: Plane): Plane;

/* Answers. Instants are RFC 3339 in UTC. */

export interface Page<Item> {
	items: Item[];
	/** The cursor of what follows; null at the end. */
	next: string | null;
}

export interface PageQuery {
	limit?: number;
	cursor?: string | null;
}

export type Status = "none" | "baking" | "ready" | "failed";

export interface Synced {
	id: string;
	slug: string;
	version: number;
	/** False where the latest version already was this one. */
	appended: boolean;
	status: Status;
	warnings: string[];
}

/** One version of an agent. */
export interface Agent {
	id: string;
	slug: string;
	version: number;
	latest: number;
	createdAt: string;
	appendedAt: string;
	/** Of the spec's canonical content. */
	digest: string;
	spec: AgentSpec;
}

export interface AgentSummary {
	id: string;
	slug: string;
	version: number;
	createdAt: string;
	updatedAt: string;
	/** Where the list was asked for it. */
	imageStatus?: ImageStatus;
}

export interface Failure {
	code: string;
	message: string;
	step?: number;
	line?: number;
	exitCode?: number;
	logTail: string;
	/** Nobody tries it anew by himself. */
	terminal: boolean;
}

/** Where an image goes, as `push` of its spec has it. */
export interface Push {
	reference: string;
	/** `pushing` between attempts, too; `replaced` where another bake's image goes there instead. */
	status: "pushing" | "pushed" | "failed" | "replaced";
	digest: string;
	bakeId: string;
	at: string;
	attempt?: number;
	retryAt?: string;
	/** Of the last attempt. */
	error?: Failure;
}

export interface ImageStatus {
	agentId: string;
	slug: string;
	version: number;
	status: Status;
	phase?: "queued" | "pulling" | "running" | "exporting" | "waiting";
	step?: { n: number; of: number; text: string; cached: boolean };
	digest?: string;
	sizeBytes?: number;
	startedAt?: string;
	finishedAt?: string;
	attempt?: number;
	retryAt?: string;
	error?: Failure;
	/** While it is "baking" it has what a bake has: where it is, and when it is tried again. */
	rebake?: {
		bakeId: string;
		status: "baking" | "unchanged" | "ready" | "failed";
		at: string;
		phase?: "running" | "pulling" | "exporting" | "waiting";
		step?: { n: number; of: number; text: string; cached: boolean };
		attempt?: number;
		retryAt?: string;
		error?: Failure;
	};
	/** What rollback() puts back. */
	previous?: { digest: string; sizeBytes: number; [member: string]: unknown };
	/** A status is `ready` whatever becomes of them. */
	pushes?: Push[];
	/** Of the answer; no member of it when it is listed or copied. */
	readonly etag?: string;
}

export interface Bake {
	id: string;
	agentId: string;
	slug: string;
	version: number;
	rebake: boolean;
	fromStep?: number;
	state: "queued" | "running" | "waiting" | "ready" | "unchanged" | "failed" | "cancelled";
	attempt?: number;
	createdAt: string;
	startedAt?: string;
	finishedAt?: string;
	retryAt?: string;
	digest?: string;
	sizeBytes?: number;
	baseDigest?: string;
	steps?: number;
	cachedSteps?: number;
	/** By bakes.get() alone, while the version's status tells of them. */
	pushes?: Push[];
	error?: Failure;
}

export interface AgentVersion {
	version: number;
	appendedAt: string;
	digest: string;
}

export interface Session {
	id: string;
	agentId: string;
	slug: string;
	version: number;
	/** Its own id where it has no parent. */
	rootId: string;
	parentId?: string;
	subagent?: string;
	state: "open" | "ended";
	createdAt: string;
	endedAt?: string;
	[member: string]: unknown;
}

export interface Token {
	id: string;
	name: string;
	scopes: string[];
	createdAt: string;
}

export interface MirrorUpstream {
	host: string;
	place: string;
	health: "unasked" | "healthy" | "limited" | "failing";
	/** For so long it is left alone. */
	retryMs?: number;
	error?: string;
	quotaLimit?: number;
	quotaRemaining?: number;
	hits: number;
	misses: number;
	fetchedBytes: number;
	servedBytes: number;
	savedBytes: number;
	heldBytes: number;
	[member: string]: unknown;
}

export interface MirrorStatus {
	upstreams: MirrorUpstream[];
	fills: number;
}

export interface MirrorWarmed {
	reference: string;
	digest: string;
	manifests: number;
	blobs: number;
	fetchedBlobs: number;
	fetchedBytes: number;
}

export interface ServerInfo {
	version: string;
	storeFormat: number;
	data: string;
	pid: number;
	startedAt: string;
	[member: string]: unknown;
}

export interface Tool {
	name: string;
	[member: string]: unknown;
}

export type ToolAnswer =
	| { callId: string; ok: true; result: unknown; notices: unknown[] }
	| { callId: string; ok: false; error: { code: string; message: string; [member: string]: unknown } };

export type SandboxState =
	| "creating"
	| "live"
	| "frozen"
	| "snapshotting"
	| "stopped"
	| "resuming"
	| "releasing"
	| "released"
	| "failed";

export interface Sandbox {
	id: string;
	rootSessionId: string;
	sessions: string[];
	agentId: string;
	version: number;
	imageDigest: string;
	provider: string;
	isolation: string;
	state: SandboxState;
	generation: number;
	lifecycle: Lifecycle;
	downgrades: unknown[];
	diskLimit: unknown;
	snapshots: { id: string; at: string; ageMs: number; sizeBytes: number }[];
	lastUsedAt: string;
}

export interface Event {
	/** Strictly rising; absent from a gap. */
	id?: string;
	/** "gap" where events between are no longer kept. */
	type: string;
	at?: string;
	agentId?: string;
	version?: number;
	bakeId?: string;
	sessionId?: string;
	rootId?: string;
	sandboxId?: string;
	sharedWith?: unknown;
	data?: unknown;
	[member: string]: unknown;
}

/* The client */

export interface CallOptions {
	signal?: AbortSignal;
	/** Of the call with all its tries; for uploads and logs the longest time in which nothing moves. */
	timeoutMs?: number;
}

export interface SyncOptions extends CallOptions {
	/** The agent that it is, which may get another slug by it; else the one with the spec's slug. */
	id?: string;
}

export interface StreamOptions {
	/** Ends the events, without an error. */
	signal?: AbortSignal;
	/** After which a stream that says nothing is made again. */
	silenceMs?: number;
}

export interface ClientOptions {
	/** http://, https:// or, in Node, unix:/path; else HEARTH_URL, else http://127.0.0.1:7460. */
	url?: string | URL;
	/** Else HEARTH_TOKEN. */
	token?: string;
	/** Of a call; 60 s. */
	timeoutMs?: number;
	/** How often a read is sent again when the daemon cannot answer just now; 4. */
	retries?: number;
	/** The certificates to trust instead of the system's, as PEM; in Node. */
	ca?: string | Uint8Array;
	/** What sends requests, in place of node:http. */
	fetch?: typeof globalThis.fetch;
}

export interface Logs extends AsyncIterable<string> {
	text(): Promise<string>;
}

/** An agent's id or its slug. */
export interface AgentQuery {
	id: string;
	version?: number;
}

export interface EventQuery {
	/** An event's id: what came behind it. */
	after?: string;
	/** An id or a slug. */
	agentId?: string;
	sessionId?: string;
	type?: string;
	[filter: string]: string | number | boolean | undefined;
}

export interface Events {
	(query?: EventQuery, options?: StreamOptions): AsyncGenerator<Event, void, void>;
	stream(query?: EventQuery, options?: StreamOptions): AsyncGenerator<Event, void, void>;
}

export interface Client {
	readonly agents: {
		/** Returns at once; the image is baked behind it. */
		sync(plane: Plane | AgentSpec, options?: SyncOptions): Promise<Synced>;
		get(query: AgentQuery, options?: CallOptions): Promise<Agent>;
		/** With imageStatus each has the state of its image, too. */
		list(query?: PageQuery & { imageStatus?: boolean }, options?: CallOptions): Promise<Page<AgentSummary>>;
		versions(query: PageQuery & { id: string }, options?: CallOptions): Promise<Page<AgentVersion>>;
		/**
		 * A read, which never builds. With `wait` (seconds) it answers as soon as the state is another than
		 * `since`, an earlier answer, or than the one that is found first, if something is under way there.
		 */
		imageStatus(query: AgentQuery & { wait?: number; since?: ImageStatus }, options?: CallOptions): Promise<ImageStatus>;
		/** Bake the latest version's image anew, or join who does. */
		rebake(query: { id: string; fromStep?: number }, options?: CallOptions): Promise<{ bakeId: string; joined: boolean }>;
		/** Put the image before the last rebake back. */
		rollback(query: { id: string }, options?: CallOptions): Promise<ImageStatus>;
	};
	readonly bakes: {
		get(query: { id: string }, options?: CallOptions): Promise<Bake>;
		list(query?: PageQuery & { agentId?: string }, options?: CallOptions): Promise<Page<Bake>>;
		/** With `follow`, until the bake ends. */
		logs(query: { id: string; step?: number; follow?: boolean }, options?: CallOptions): Logs;
		cancel(query: { id: string }, options?: CallOptions): Promise<Bake>;
	};
	readonly sessions: {
		/** AgentNotReady until the version's image is. */
		create(
			query: { agent: string; version?: number; parent?: string; subagent?: string },
			options?: CallOptions,
		): Promise<Session>;
		get(query: { id: string }, options?: CallOptions): Promise<Session>;
		list(query?: PageQuery & { agentId?: string }, options?: CallOptions): Promise<Page<Session>>;
		end(query: { id: string }, options?: CallOptions): Promise<Session>;
	};
	readonly tools: {
		list(query?: { sessionId?: string }, options?: CallOptions): Promise<{ items: Tool[] }>;
		/** What goes wrong inside the machine is an answer, since a model reads it. */
		call(
			query: { sessionId: string; tool: string; arguments?: unknown; callId?: string; timeoutMs?: number },
			options?: CallOptions,
		): Promise<ToolAnswer>;
	};
	readonly sandboxes: {
		list(query?: PageQuery & { sessionId?: string }, options?: CallOptions): Promise<Page<Sandbox>>;
		get(query: { id: string }, options?: CallOptions): Promise<Sandbox>;
		snapshot(query: { id: string }, options?: CallOptions): Promise<unknown>;
		resume(query: { id: string }, options?: CallOptions): Promise<unknown>;
		/** Also revokes its preview grants. */
		release(query: { id: string }, options?: CallOptions): Promise<{ released: true; grantsRevoked: number }>;
	};
	readonly contexts: {
		/** What COPY reads: in Node a directory, without what its .dockerignore hides; else a tar. */
		put(
			source: string | URL | Uint8Array | Blob | ReadableStream<Uint8Array> | AsyncIterable<Uint8Array>,
			options?: CallOptions,
		): Promise<{ digest: string; sizeBytes?: number }>;
	};
	/** For who is admin. */
	readonly tokens: {
		/** `token` is said this once. */
		create(query: { name?: string; scopes: readonly string[] }, options?: CallOptions): Promise<Token & { token: string }>;
		list(query?: PageQuery, options?: CallOptions): Promise<Page<Token>>;
		revoke(query: { id: string }, options?: CallOptions): Promise<{ revoked: true }>;
	};
	/** The registries that the daemon stands before. */
	readonly mirror: {
		status(query?: undefined, options?: CallOptions): Promise<MirrorStatus>;
		/** Fetch an image whole before anybody asks for it. */
		warm(query: { reference: string; platform?: string }, options?: CallOptions): Promise<MirrorWarmed>;
	};
	readonly server: {
		info(query?: undefined, options?: CallOptions): Promise<ServerInfo>;
	};
	/** Until the signal is aborted; cuts are mended. */
	readonly events: Events;
}

export function createClient(options?: ClientOptions): Client;

/** Rejects with the signal's reason when that is aborted first. */
export function sleep(ms: number, options?: { signal?: AbortSignal }): Promise<void>;

/* Errors */

export class HearthError extends Error {
	readonly code: string;
	/** Undefined where no answer came. */
	readonly httpStatus?: number;
	/** Where the daemon says when to come again. */
	readonly retryAfterMs?: number;
	readonly cause?: unknown;
	[member: string]: unknown;
}

export class InvalidArgument extends HearthError {
	readonly path?: string;
	readonly expected?: string;
}
export class Unauthorized extends HearthError {}
export class Forbidden extends HearthError {}
/** A tool that the agent may not call. */
export class PermissionDenied extends HearthError {}
export class NotFound extends HearthError {}
export class UnknownMethod extends HearthError {}
export class UnknownTool extends HearthError {}
export class AgentNotReady extends HearthError {
	readonly status: "baking" | "failed";
}
export class Conflict extends HearthError {}
export class Gone extends HearthError {}
export class TooLarge extends HearthError {}
export class StepRefused extends HearthError {
	readonly step?: number;
	readonly line?: number;
}
export class StepFailed extends HearthError {
	readonly step?: number;
	readonly exitCode?: number;
}
export class Corrupt extends HearthError {}
export class TooManyRequests extends HearthError {}
export class Internal extends HearthError {}
export class NotSupported extends HearthError {}
export class UpstreamFailed extends HearthError {}
export class Unavailable extends HearthError {}
export class ProviderUnavailable extends HearthError {}
export class TimedOut extends HearthError {}
export class StoreFull extends HearthError {}
export class Cancelled extends HearthError {}
