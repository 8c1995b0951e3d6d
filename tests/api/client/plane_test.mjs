/* SPDX-License-Identifier: Apache-2.0 */
import assert from "node:assert/strict";
import test from "node:test";
import { InvalidArgument, definePlane } from "../../../api/client/index.js";

test("a plane is a copy that nothing changes any more", () => {
	const steps = ["RUN true"];
	const plane = definePlane({ agent: { slug: "a", sandbox: { image: { base: "b", steps, timeoutMs: undefined } } } });

	steps.push("RUN false");
	assert.deepEqual(plane, { agent: { slug: "a", sandbox: { image: { base: "b", steps: ["RUN true"] } } } });
	assert.throws(() => plane.agent.sandbox.image.steps.push("RUN false"), TypeError);
	assert.throws(() => {
		plane.agent.slug = "b";
	}, TypeError);
});

test("what JSON would change on the way is refused by its path", () => {
	const circle = {};

	circle.circle = circle;
	for (const [value, path] of [
		[NaN, "agent.a[1].b"],
		[1n, "agent.a[1].b"],
		[() => 1, "agent.a[1].b"],
		[new Date(0), "agent.a[1].b"],
		[new Map(), "agent.a[1].b"],
		[circle, /^agent\.a\[1\]\.b(\.circle)+$/],
	]) {
		assert.throws(() => definePlane({ agent: { a: [0, { b: value }] } }), (error) => {
			assert.ok(error instanceof InvalidArgument);
			if (path instanceof RegExp)
				assert.match(error.path, path);
			else
				assert.equal(error.path, path);
			return true;
		});
	}
	for (const plane of [undefined, null, {}, { agent: "a" }, { agent: [] }])
		assert.throws(() => definePlane(plane), { code: "InvalidArgument", path: "agent" });
});

test("__proto__ is a name like others", () => {
	const plane = definePlane(JSON.parse('{"agent": {"__proto__": {"polluted": true}}}'));

	assert.equal(plane.agent.polluted, undefined);
	assert.equal(JSON.stringify(plane), '{"agent":{"__proto__":{"polluted":true}}}');
});
