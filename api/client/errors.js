/* SPDX-License-Identifier: Apache-2.0 */
/*
 * errors.js - a class for each code that the daemon answers with.
 *
 * An error has `code`, the class's name; `message`, in words for a person;
 * `httpStatus`, unless no answer came; and the members that its code brings:
 * `status` of AgentNotReady, `path` and `expected` of InvalidArgument, `step`
 * and `exitCode` of StepFailed, `retryAfterMs` where the daemon says when to
 * come again.
 *
 * What fails without an answer has the class that the same thing would have
 * with one: Unavailable where nobody is there or a connection breaks, with the
 * system's error as `cause`; TimedOut where a call's time is over.
 */

export class HearthError extends Error {
	constructor(message, members = {}, options = undefined) {
		super(message, options);
		for (const [name, value] of Object.entries(members)) {
			if (!OWN.has(name))
				this[name] = value;
		}
		this.code = members.code ?? this.constructor.name;
		Object.defineProperty(this, "name", { value: this.code, configurable: true });
	}
}

const OWN = new Set(["code", "message", "name", "stack", "cause", "__proto__"]);

export class InvalidArgument extends HearthError {}
export class Unauthorized extends HearthError {}
export class Forbidden extends HearthError {}
export class PermissionDenied extends HearthError {}
export class NotFound extends HearthError {}
export class UnknownMethod extends HearthError {}
export class UnknownTool extends HearthError {}
export class AgentNotReady extends HearthError {}
export class Conflict extends HearthError {}
export class Gone extends HearthError {}
export class TooLarge extends HearthError {}
export class StepRefused extends HearthError {}
export class StepFailed extends HearthError {}
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
