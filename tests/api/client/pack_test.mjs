/* SPDX-License-Identifier: Apache-2.0 */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { chmod, link, mkdir, open, readFile, readdir, readlink, rename, symlink, truncate, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import test from "node:test";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import * as hearth from "../../../api/client/index.js";
import { packContext } from "../../../api/client/node/context.js";
import { HIDDEN, HIDDEN_TOP, Ignore, SEEN } from "../../../api/client/node/ignore.js";
import { BELOW, HIT, MISS, Pattern } from "../../../api/client/node/pattern.js";
import { bytesOf } from "../../../api/client/node/runes.js";
import { headersOf } from "../../../api/client/node/tar.js";
import { scratch } from "./daemon.mjs";

const run = promisify(execFile);

async function casesOf(name) {
	const groups = JSON.parse(await readFile(new URL(`../../bake/${name}`, import.meta.url), "utf8"));

	return Object.values(groups).flat();
}

/* Files by name: a text, or null for a directory. */
async function fill(dir, files) {
	for (const [name, content] of Object.entries(files)) {
		await mkdir(join(dir, name, ".."), { recursive: true });
		await (content === null ? mkdir(join(dir, name), { recursive: true }) : writeFile(join(dir, name), content));
	}
	return dir;
}

async function bytesIn(dir, options) {
	const pieces = [];

	for await (const bytes of packContext(dir, options))
		pieces.push(bytes);
	return Buffer.concat(pieces);
}

/* What GNU tar lists of it. */
async function listing(t, tar, ...options) {
	const file = join(await scratch(t), "tar");

	await writeFile(file, tar);
	return (await run("tar", ["-tf", file, ...options], { env: { ...process.env, LC_ALL: "C" } })).stdout.trimEnd().split("\n");
}

/* How many files below a directory this process has open. */
async function openBelow(dir) {
	const fds = await readdir("/proc/self/fd");
	const names = await Promise.all(fds.map((fd) => readlink(`/proc/self/fd/${fd}`).catch(() => "")));

	return names.filter((name) => name.startsWith(`${dir}/`)).length;
}

test("patterns match what the table of bake/ says", async () => {
	for (const [pattern, path, expected] of await casesOf("patterns.json")) {
		const reach = new Pattern(bytesOf(pattern)).try(bytesOf(path));

		assert.equal({ [MISS]: "-", [BELOW]: "<", [HIT]: "+" }[reach], expected, `${pattern} on "${path}"`);
	}
	for (const [pattern, path, expected] of [["?", "\xff", HIT], ["\xff", "\xff", HIT], ["*\xfe", "a\xff", MISS]])
		assert.equal(new Pattern(pattern).try(path), expected);
	for (const open of ["[", "[]", "[a", "a[", "[a-", "[a-]", "[-a]", "[]a]", "[^]", "a\\", "[\\", "[a-\\"])
		assert.throws(() => new Pattern(open), /is no pattern/);
});

test("many stars take no longer", () => {
	assert.equal(new Pattern(`${"**/*a".repeat(200)}b`).try("a/aaaaaa".repeat(200)), BELOW);
});

test("rules hide what the table of bake/ says", async () => {
	for (const [file, path, expected, line] of await casesOf("ignores.json")) {
		const judged = new Ignore(bytesOf(file)).judge(bytesOf(path));

		assert.equal({ [SEEN]: "+", [HIDDEN_TOP]: "<", [HIDDEN]: "-" }[judged.verdict], expected, `${file} on ${path}`);
		assert.equal(judged.line ?? 0, line, `${file} on ${path}`);
	}
});

test("what is no rule is named with its line", () => {
	assert.throws(() => new Ignore("a\n!"), /^InvalidArgument: \.dockerignore line 2: a pattern is missing behind !$/);
	assert.throws(() => new Ignore("[x"), /^InvalidArgument: \.dockerignore line 1: \[x is no pattern/);
	assert.throws(() => new Ignore("a\0b"), /a NUL byte/);
	assert.throws(() => new Ignore("a\n".repeat(10_001)), hearth.TooLarge);
});

test("a directory is packed in byte order, as POSIX has it", async (t) => {
	const dir = await fill(await scratch(t), { b: "text", "a/x": "", "a-b": "", ä: "", "a/empty": null });
	const long = "n".repeat(80);

	await fill(dir, { [`${long}/${long}/file`]: "deep" });
	await link(join(dir, "b"), join(dir, "hard"));
	await symlink(`${long}/${long}/file`, join(dir, "soft"));
	await chmod(join(dir, "b"), 0o4750);
	const tar = await bytesIn(dir);
	const names = ["a", "a/empty", "a/x", "a-b", "b", "hard", long, `${long}/${long}`, `${long}/${long}/file`, "soft", "\\303\\244"];

	assert.deepEqual(await listing(t, tar, "--quoting-style=escape"), names);
	const lines = await listing(t, tar, "-v", "--numeric-owner", "--full-time", "--utc");

	assert.match(lines[4], /^-rwsr-x--- 0\/0 +4 1970-01-01 00:00:00 b$/);
	assert.match(lines[5], /^hrwsr-x--- 0\/0 +0 1970-01-01 00:00:00 hard link to b$/);
	assert.match(lines[9], /^lrwxrwxrwx .* soft -> n+\/n+\/file$/);
	assert.equal(tar.length % 512, 0);
	assert.deepEqual(await bytesIn(pathToFileURL(dir)), tar);
});

test("what a .dockerignore hides is not packed, and what it shows again is", async (t) => {
	const files = { "d/keep/x": "", "d/keep/y": "", "d/other/z": "", "node_modules/a": "", "e/f": "", top: "" };
	const dir = await fill(await scratch(t), { ...files, ".dockerignore": "# hidden\nd\n!d/keep/x\n**/node_modules\ne/*\n" });

	await chmod(join(dir, "node_modules"), 0); /* it is not looked at */
	assert.deepEqual(await listing(t, await bytesIn(dir)), [".dockerignore", "d", "d/keep", "d/keep/x", "e", "top"]);
});

test("a .dockerignore may be a link within, and nothing else", async (t) => {
	const dir = await fill(await scratch(t), { "rules/ignore": "*\n!kept", kept: "", other: "" });
	const outside = await fill(await scratch(t), { ignore: "*" });

	await symlink("rules/ignore", join(dir, ".dockerignore"));
	assert.deepEqual(await listing(t, await bytesIn(dir)), ["kept"]);
	await symlink(join(outside, "ignore"), join(dir, "new"));
	await rename(join(dir, "new"), join(dir, ".dockerignore"));
	await assert.rejects(bytesIn(dir), /leads outside/);
	await symlink("/dev/null", join(dir, "new"));
	await rename(join(dir, "new"), join(dir, ".dockerignore"));
	await assert.rejects(bytesIn(dir), /leads outside/);
	await assert.rejects(bytesIn(await fill(await scratch(t), { ".dockerignore": null })), /is no file/);
	const huge = await fill(await scratch(t), { ".dockerignore": "" });

	await truncate(join(huge, ".dockerignore"), (1 << 20) + 1);
	await assert.rejects(bytesIn(huge), hearth.TooLarge);
});

test("any name is a name, sockets are left out", async (t) => {
	const dir = await fill(await scratch(t), { "line\nbreak": "", a: "" });
	const server = createServer().listen(join(dir, "socket"));

	t.after(() => server.close());
	await writeFile(Buffer.from(`${dir}/\xff`, "latin1"), "");
	assert.deepEqual(await listing(t, await bytesIn(dir), "--quoting-style=escape"), ["a", "line\\nbreak", "\\377"]);
});

test("fifos are packed unread", async (t) => {
	const dir = await scratch(t);

	await run("mkfifo", [join(dir, "fifo")]);
	assert.match((await listing(t, await bytesIn(dir), "-v"))[0], /^p.* fifo$/);
});

test("a file that changes while it is read is told", async (t) => {
	const dir = await fill(await scratch(t), { file: "x".repeat(1 << 20) });
	const pieces = packContext(dir);

	await pieces.next();
	await truncate(join(dir, "file"), 1000);
	await assert.rejects(async () => {
		for await (const bytes of pieces)
			assert.ok(bytes);
	}, /^Unavailable: file changed while it was read; put it again$/);
});

test("packing ends with its signal, and closes what it had open", async (t) => {
	const dir = await fill(await scratch(t), { a: "x".repeat(1 << 20), b: "" });
	const abort = new AbortController();
	const pieces = packContext(dir, { signal: abort.signal });
	await pieces.next();
	assert.equal(await openBelow(dir), 1);
	await pieces.return();
	assert.equal(await openBelow(dir), 0);
	abort.abort(new Error("enough"));
	await assert.rejects(bytesIn(dir, { signal: abort.signal }), /enough/);
});

test("a file larger than its header can say has a pax record for it", () => {
	const small = headersOf({ type: "0", name: "a", mode: 0o644, size: 0o77777777777 });
	const large = headersOf({ type: "0", name: "a", mode: 0o644, size: 0o77777777777 + 1 });

	assert.equal(small.length, 512);
	assert.equal(large.length, 3 * 512);
	assert.equal(large.subarray(512, 530).toString(), "19 size=8589934592");
});

test("a record counts the digits of its own length", () => {
	for (let length = 101; length < 1200; length++) {
		const pax = headersOf({ type: "0", name: "n".repeat(length), mode: 0 });
		const size = parseInt(pax.subarray(124, 135).toString(), 8);
		const record = pax.subarray(512, 512 + size).toString();

		assert.equal(record, `${size} path=${"n".repeat(length)}\n`);
	}
});

test("memory does not grow with what is packed", async (t) => {
	const dir = await scratch(t);
	const file = await open(join(dir, "huge"), "w");

	await file.truncate(2 ** 29);
	await file.close();
	const program = `
		import { packContext } from ${JSON.stringify(new URL("../../../api/client/node/context.js", import.meta.url))};
		let size = 0;
		for await (const bytes of packContext(${JSON.stringify(dir)}))
			size += bytes.length;
		console.log(size, process.resourceUsage().maxRSS);
	`;
	const { stdout } = await run(process.execPath, ["--input-type=module", "-e", program]);
	const [size, peak] = stdout.split(" ").map(Number);

	assert.equal(size, 2 ** 29 + 3 * 512);
	assert.ok(peak < 192 * 1024, `${peak} KiB`);
});
