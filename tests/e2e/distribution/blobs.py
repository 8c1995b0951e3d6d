# SPDX-License-Identifier: Apache-2.0
"""Names, digests and blobs: who is there, which bytes, and which part of them."""
import gzip
from urllib.parse import quote

from distribution import content
from distribution.registry import Checks, expect, same
from distribution.wire import Wrong

checks = Checks()
check = checks.check

NAMES = ["a", "0", "a0", "a.b", "a_b", "a__b", "a-b", "a---b", "a/b/c/d/e", "0/1", "tags", "blobs/uploads", "manifests/x",
         "a/tags/list", "_catalog"[1:], "x" * 200, "/".join(["part"] * 40)]
NO_NAMES = ["A", "aB", "-a", "a-", "a.", ".a", "a..b", "a___b", "a._b", "a_-b", "_a", "a/-b", "a/B", "a//b", "a/.", "a/..",
            "%2e%2e", "a%20b", "a%00b", "a%c3%a9", "a@b", "a:b", "a+b", "%7ea", "a%5cb"]
TAGS = ["a", "A", "_", "0", "v1.2.3-rc_1", "a" * 128, "sha256-abc", "list", "latest"]
NO_TAGS = [".a", "-a", "a" * 129, "a%20b", "a%00", "a+b", "a%2fb", "%c3%a9", "a%25", "a!"]


def malformed(algorithm):
    length = {"sha256": 64, "sha512": 128}[algorithm]
    good = "0" * length
    return [f"{algorithm}:baddigeststring", f"{algorithm}:", f"{algorithm}:{good[:-1]}", f"{algorithm}:{good}0",
            f"{algorithm}:{'A' * length}", f"{algorithm}:{'g' * length}", f"{algorithm.upper()}:{good}", f":{good}",
            f"{algorithm}%00:{good}", f"{algorithm}:{good[:-3]}%00"]


@check("GET /v2/ says that this is a registry")
def _(r):
    answer = expect(r.ask("GET", ""), 200)
    same("the body", answer.json(), {})
    same("Docker-Distribution-Api-Version", answer.header("Docker-Distribution-Api-Version"), "registry/2.0")
    head = expect(r.ask("HEAD", ""), 200)
    same("its length by HEAD", head.header("Content-Length"), str(len(answer.body)))


@check("names of the grammar are taken")
def _(r):
    for name in NAMES:
        place = r.start(f"{r.name}/{name}")
        expect(r.ask("DELETE", place), 204)


@check("other names are refused")
def _(r):
    for name in NO_NAMES:
        expect(r.ask("POST", f"{name}/blobs/uploads/"), 400, 404, code=("NAME_INVALID", "UNSUPPORTED", "NAME_UNKNOWN"))
        expect(r.ask("GET", f"{name}/manifests/latest"), 400, 404)
        expect(r.ask("GET", f"{name}/tags/list"), 400, 404)


@check("tags of the grammar are taken")
def _(r):
    config, layers = r.parts()
    text = content.text_of(content.image_of(config, layers))
    for tag in TAGS:
        expect(r.put(text, tag), 201)
        same(f"the manifest of {tag}", expect(r.get(tag), 200).body, text)


@check("other tags are refused")
def _(r):
    config, layers = r.parts()
    text = content.text_of(content.image_of(config, layers))
    for tag in NO_TAGS:
        expect(r.put(text, tag), 400, 404)
        expect(r.get(tag), 400, 404)
        expect(r.ask("DELETE", f"{r.name}/manifests/{tag}"), 400, 404)


@check("malformed digests are refused")
def _(r):
    config, layers = r.parts()
    text = content.text_of(content.image_of(config, layers))
    for digest in malformed(r.algorithm):
        expect(r.ask("GET", f"{r.name}/blobs/{digest}"), 400, 404)
        expect(r.ask("HEAD", f"{r.name}/blobs/{digest}"), 400, 404)
        expect(r.ask("DELETE", f"{r.name}/blobs/{digest}"), 400, 404)
        expect(r.get(digest), 400, 404)
        expect(r.put(text, digest), 400, 404)


@check("a malformed digest of a manifest is 400 where it is put", "baddigeststring")
def _(r, word):
    config, layers = r.parts()
    text = content.text_of(content.image_of(config, layers))
    expect(r.put(text, f"{r.algorithm}:{word}"), 400, code=("DIGEST_INVALID", "MANIFEST_INVALID", "TAG_INVALID"))


@check("a digest of an algorithm that nobody has is no reason to break")
def _(r):
    for digest in ("md5:" + "0" * 32, "blake3:" + "a" * 64, "a+b.c-d_e:Zz=_-", "multihash+base58:QmRZxt2b1FVZPNqd8hsiykDL"):
        expect(r.ask("GET", f"{r.name}/blobs/{digest}"), 400, 404)
        expect(r.get(digest), 400, 404)
        expect(r.put(b"{}", digest), 400)
        expect(r.end(r.start(), b"x").status and r.ask("PUT", f"{r.start()}?digest={quote(digest)}", b"x"), 400)


@check("a blob that is not there is BLOB_UNKNOWN")
def _(r):
    r.push(content.noise())
    r.lacks_blob(content.noise())


@check("a blob is its bytes, by GET as by HEAD")
def _(r):
    for size in (1, 512, 5 << 20):
        data = content.noise(size)
        r.push(data)
        r.has_blob(data)


@check("the empty blob is one")
def _(r):
    r.push(b"")
    r.has_blob(b"")
    expect(r.blob(b"", "GET", ("Range", "bytes=0-")), 200, 416)


@check("the empty JSON is one")
def _(r):
    r.push(b"{}")
    r.has_blob(b"{}")


@check("a blob is what was pushed, whatever encoding is asked for")
def _(r):
    for data in (gzip.compress(b"x" * 5000), b"x" * 5000):
        r.push(data)
        for accepted in ("gzip", "zstd;q=1.0, gzip;q=0.8, deflate;q=0.5", "identity", "*"):
            found = expect(r.blob(data, "GET", ("Accept-Encoding", accepted)), 200)
            same("Content-Encoding", found.header("Content-Encoding"), None)
            same("the blob", found.body, data)


@check("and whatever type is accepted")
def _(r):
    data = content.noise()
    r.push(data)
    for accepted in (content.LAYER, content.LAYER + ", */*", "image/png", ""):
        same("the blob", expect(r.blob(data, "GET", ("Accept", accepted)), 200).body, data)


RANGES = [("500-1499", 500, 1499), ("500-", 500, 2047), ("-500", 1548, 2047), ("2000-5000", 2000, 2047), ("0-0", 0, 0),
          ("0-", 0, 2047), ("0-2047", 0, 2047), ("2047-", 2047, 2047), ("-5000", 0, 2047), ("-1", 2047, 2047)]


def partly(r, spec, first, last):
    data = content.noise(2048)
    r.push(data)
    found = expect(r.blob(data, "GET", ("Range", f"bytes={spec}")), 206)
    same("Content-Range", found.header("Content-Range"), f"bytes {first}-{last}/2048")
    same("Content-Length", found.header("Content-Length"), str(last - first + 1))
    same("the bytes", found.body, data[first:last + 1])
    same("Docker-Content-Digest, which is of all", found.header("Docker-Content-Digest"), r.digest(data))


for each in RANGES:
    check(f"Range {each[0]} of 2048 is 206", *each)(partly)


def past(r, spec):
    data = content.noise(2048)
    r.push(data)
    found = expect(r.blob(data, "GET", ("Range", f"bytes={spec}")), 416)
    same("Content-Range", found.header("Content-Range"), "bytes */2048")


for each in ("500-0", "2048-", "5000-10000", "-0", "99999999999999999999-"):
    check(f"Range {each} of 2048 is 416", each)(past)


@check("a Range that is none is not followed")
def _(r):
    data = content.noise(2048)
    r.push(data)
    for spec in ("lines=1-2", "bytes=", "bytes=x-y", "bytes=1", "bytes", "bytes=--1", "bytes=1-2-3", "=0-1", "bytes=0x1-0x2"):
        found = expect(r.blob(data, "GET", ("Range", spec)), 200, 400, 416)
        if found.status == 200:
            same("the blob", found.body, data)


@check("many ranges at once are one answer, or all of it")
def _(r):
    data = content.noise(2048)
    r.push(data)
    for spec in ("0-1,5-6", ",".join(f"{n}-{n}" for n in range(1000)), ",".join(["0-2047"] * 500)):
        found = expect(r.blob(data, "GET", ("Range", f"bytes={spec}")), 200, 206, 400, 416)
        if found.status == 200:
            same("the blob", found.body, data)
        if len(found.body) > 4 * len(data) and found.status == 206:
            raise Wrong(f"{found.asked}: a small request for {len(found.body)} bytes")


@check("HEAD knows no Range")
def _(r):
    data = content.noise(2048)
    r.push(data)
    found = expect(r.blob(data, "HEAD", ("Range", "bytes=0-9")), 200)
    same("its length", found.header("Content-Length"), "2048")


@check("a Range of another version gives all of this one")
def _(r):
    data = content.noise(2048)
    r.push(data)
    found = expect(r.blob(data, "GET", ("Range", "bytes=0-9"), ("If-Range", '"other"')), 200)
    same("the blob", found.body, data)


@check("what is known already is not sent again")
def _(r):
    data = content.noise()
    r.push(data)
    tag = r.blob(data).header("ETag")
    if tag:
        expect(r.blob(data, "GET", ("If-None-Match", tag)), 304)
        expect(r.blob(data, "GET", ("If-None-Match", '"x"')), 200)


@check("parts of a large blob add up to it")
def _(r):
    data = content.noise((5 << 20) + 7)
    r.push(data)
    step = (1 << 20) - 1
    parts = [expect(r.blob(data, "GET", ("Range", f"bytes={at}-{at + step - 1}")), 206).body
             for at in range(0, len(data), step)]
    same("their sum", r.digest(b"".join(parts)), r.digest(data))


@check("a deleted blob is gone at once")
def _(r):
    data = content.noise()
    r.push(data)
    expect(r.blob(data, "DELETE"), 202)
    r.lacks_blob(data)
    expect(r.blob(data, "DELETE"), 404, code="BLOB_UNKNOWN")
    r.push(data)
    r.has_blob(data)


@check("and only from where it was deleted")
def _(r):
    data = content.noise()
    r.push(data)
    r.push(data, r.other)
    expect(r.blob(data, "DELETE"), 202)
    r.lacks_blob(data)
    r.has_blob(data, r.other)


@check("a blob is of its repository alone")
def _(r):
    data = content.noise()
    r.push(data, r.other)
    r.push(content.noise())
    r.lacks_blob(data)
