# SPDX-License-Identifier: Apache-2.0
"""Who may: by Basic, Bearer and without either; and that nobody learns what another repository holds.

These checks make their tokens by the daemon's own methods, so they are hearth's; its configuration opens open-* to all.
"""
import base64
import json
import re
from urllib.parse import urlencode

from distribution import content
from distribution.registry import NO_MOUNT, Checks, Registry, expect, same
from distribution.wire import Wire, Wrong

checks = Checks()
check = checks.check

BIT = re.compile(r'(\w+)="([^"]*)"')


def basic(user, password):
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def token_of(r, *scopes):
    answer = r.wire.ask("POST", "/v1/tokens.create", json.dumps({"name": "conformance", "scopes": scopes}).encode(),
                        [("Content-Type", "application/json")])
    return expect(answer, 200).json()["token"]


def limited(r, *scopes):
    """The same registry for a token of these scopes."""
    return as_one(r, f"Bearer {token_of(r, *scopes)}")


def as_one(r, authorization):
    address = f"http://{r.wire.address[0]}:{r.wire.address[1]}"
    other = Registry(Wire(address, r.wire.complaints, authorization), r.algorithm)
    other.name, other.other = r.name, r.other
    return other


def mine_and_theirs(r):
    """A repository of alice's with an image in it, and one of bob's."""
    number = r.fresh().rsplit("/", 1)[1]
    r.name, r.other = f"alice-{r.run}-{number}", f"bob-{r.run}-{number}"
    return r.image("latest"), r.image("latest", name=r.other)


def asked(r, name, digest="sha256:" + "0" * 64):
    """Each way to ask a repository for something, and what it is called."""
    return [("GET", f"{name}/manifests/latest"), ("HEAD", f"{name}/manifests/latest"), ("GET", f"{name}/manifests/{digest}"),
            ("GET", f"{name}/blobs/{digest}"), ("HEAD", f"{name}/blobs/{digest}"), ("GET", f"{name}/tags/list"),
            ("GET", f"{name}/referrers/{digest}")]


def written(name, digest="sha256:" + "0" * 64):
    return [("POST", f"{name}/blobs/uploads/"), ("PUT", f"{name}/manifests/latest"), ("DELETE", f"{name}/manifests/latest"),
            ("DELETE", f"{name}/manifests/{digest}"), ("DELETE", f"{name}/blobs/{digest}"),
            ("GET", f"{name}/blobs/uploads/1"), ("PATCH", f"{name}/blobs/uploads/1"), ("PUT", f"{name}/blobs/uploads/1"),
            ("DELETE", f"{name}/blobs/uploads/1")]


@check("who says nothing is told how to log in", needs="tokens")
def _(r):
    image, _ = mine_and_theirs(r)
    nobody = as_one(r, "")
    for method, path in [("GET", ""), *asked(r, r.name, image["digest"]), *written(r.name)]:
        answer = expect(nobody.ask(method, path), 401, code="UNAUTHORIZED")
        if not re.match(r"(Basic|Bearer) ", answer.header("WWW-Authenticate") or ""):
            raise Wrong(f"{answer.asked}: WWW-Authenticate {answer.header('WWW-Authenticate')}")


@check("a token is a password of any user, and a bearer's", needs="tokens")
def _(r):
    image, _ = mine_and_theirs(r)
    token = token_of(r, "pull:alice-*")
    for said in (basic("me", token), basic("", token), basic("x:y"[:1], token), f"Bearer {token}", f"bearer {token}",
                 basic("me", token).replace("Basic", "BASIC")):
        one = as_one(r, said)
        expect(one.ask("GET", ""), 200)
        same("the digest", expect(one.get("latest"), 200).header("Docker-Content-Digest"), image["digest"])


@check("and nothing else is", needs="tokens")
def _(r):
    mine_and_theirs(r)
    token = token_of(r, "pull:alice-*")
    for said in (basic("me", token[:-1]), basic("me", ""), basic(token, ""), basic(token, token + "x"), "Basic", "Basic !!!", "Bearer",
                 "Bearer ", f"Bearer {token}x", f"Digest {token}", token, "Basic " + "A" * 5000, "Basic bWU=", "Bearer hth_",
                 basic("me", "hth_" + "A" * 43)):
        one = as_one(r, said)
        for path in ("", f"{r.name}/manifests/latest"):
            expect(one.ask("GET", path), 401, code="UNAUTHORIZED")


@check("the challenge leads to a token that works", needs="tokens")
def _(r):
    image, _ = mine_and_theirs(r)
    token, nobody = token_of(r, "pull:alice-*"), as_one(r, "")
    challenge = nobody.get("latest").header("WWW-Authenticate")
    if challenge.startswith("Bearer "):
        bits = dict(BIT.findall(challenge))
        same("its scope", bits.get("scope"), f"repository:{r.name}:pull")
        realm = re.sub(r"^https?://[^/]*", "", bits["realm"])
        query = urlencode({"service": bits.get("service", ""), "scope": bits["scope"], "account": "me"})
        expect(nobody.wire.ask("GET", f"{realm}?{query}", b"", [("Authorization", basic("me", "wrong"))]), 401)
        given = expect(nobody.wire.ask("GET", f"{realm}?{query}", b"", [("Authorization", basic("me", token))]), 200).json()
        found = as_one(r, f"Bearer {given.get('token') or given['access_token']}").get("latest")
    else:
        found = as_one(r, basic("me", token)).get("latest")
    same("the digest", expect(found, 200).header("Docker-Content-Digest"), image["digest"])


@check("a token pulls what its pattern says, and no more", needs="tokens")
def _(r):
    mine, theirs = mine_and_theirs(r)
    alice = limited(r, "pull:alice-*")
    for method, path in asked(r, r.name, mine["digest"]):
        expect(alice.ask(method, path), 200, 404)
    expect(alice.get("latest"), 200)
    for method, path in asked(r, r.other, theirs["digest"]):
        expect(alice.ask(method, path), 403, code="DENIED")


@check("nor learns what is there", needs="tokens")
def _(r):
    _, theirs = mine_and_theirs(r)
    for one in (limited(r, "pull:alice-*", "push:alice-*"), as_one(r, "")):
        for here, there in zip(asked(r, r.other, theirs["digest"]), asked(r, f"bob-{r.run}-none", theirs["digest"])):
            known, unknown = one.ask(*here), one.ask(*there)
            same("the answer for what is not there", unknown.status, known.status)
            same("its words", unknown.body.decode().replace(f"bob-{r.run}-none", r.other), known.body.decode())


@check("a blob of another's repository is neither read nor mounted", needs="tokens")
def _(r):
    mine_and_theirs(r)
    secret = content.noise()
    r.push(secret, r.other)
    alice = limited(r, "pull:alice-*", "push:alice-*", "delete:alice-*")
    alice.lacks_blob(secret)
    for source in (r.other, None):
        expect(alice.mount(secret, source), NO_MOUNT)
        alice.lacks_blob(secret)
    config, layers = alice.parts()
    text = content.text_of(content.image_of(config, [*layers, r.descriptor(secret)]))
    expect(alice.put(text, "stolen"), 400, 404, code=("MANIFEST_BLOB_UNKNOWN", "BLOB_UNKNOWN"))
    expect(alice.blob(secret, "DELETE"), 404)
    alice.push(secret)
    alice.has_blob(secret)


@check("what says that it is pushed must be sent", needs="tokens")
def _(r):
    mine_and_theirs(r)
    secret = content.noise()
    r.push(secret, r.other)
    alice = limited(r, "pull:alice-*", "push:alice-*")
    expect(alice.end(alice.start(), b"", of=secret), 400, code="DIGEST_INVALID")
    expect(alice.ask("POST", f"{r.name}/blobs/uploads/?digest={r.digest(secret)}", b""), 202, 400)
    alice.lacks_blob(secret)


@check("who pulls does not push, and who pushes does not delete", needs="tokens")
def _(r):
    image, _ = mine_and_theirs(r)
    text = r.get("latest").body
    puller, pusher = limited(r, "pull:alice-*"), limited(r, "pull:alice-*", "push:alice-*")
    for method, path in written(r.name, image["digest"]):
        expect(puller.ask(method, path), 403, code="DENIED")
    expect(pusher.put(text, "again"), 201)
    for path in (f"manifests/{image['digest']}", "manifests/latest", f"blobs/{image['digest']}"):
        expect(pusher.ask("DELETE", f"{r.name}/{path}"), 403, code="DENIED")
    for method, path in written(r.other):
        expect(pusher.ask(method, path), 403, code="DENIED")
    deleter = limited(r, "pull:alice-*", "delete:alice-*")
    expect(deleter.ask("DELETE", f"{r.name}/manifests/again"), 202)


@check("a token without a pattern is for all", needs="tokens")
def _(r):
    mine_and_theirs(r)
    everyone = limited(r, "pull", "push")
    expect(everyone.get("latest", name=r.other), 200)
    expect(everyone.ask("DELETE", f"{r.other}/manifests/latest"), 403, code="DENIED")
    operator = limited(r, "operate")
    expect(operator.get("latest", name=r.other), 200)
    expect(operator.put(r.get("latest").body, "operated"), 201)


@check("the catalogue lists what may be pulled", needs="tokens")
def _(r):
    mine_and_theirs(r)
    alice = limited(r, "pull:alice-*")
    found = sum(alice.pages("_catalog", "repositories"), [])
    same("those of others", [name for name in found if not re.match(r"(alice|open)-", name)], [])
    same("mine", r.name in found, True)
    name = f"open-{r.run}-{r.fresh().rsplit('/', 1)[1]}"
    r.image("latest", name=name)
    found = sum(as_one(r, "").pages("_catalog", "repositories"), [])
    same("what nobody may not pull", [each for each in found if not each.startswith("open-")], [])
    same("what is open", name in found, True)


@check("what is open is pulled by all, and not pushed", needs="tokens")
def _(r):
    mine_and_theirs(r)
    number = r.fresh().rsplit("/", 1)[1]
    name = f"open-{r.run}-{number}"
    image = r.image("latest", name=name)
    for one in (as_one(r, ""), limited(r, "pull:alice-*")):
        for method, path in asked(r, name, image["digest"]):
            expect(one.ask(method, path), *((200, 404) if "/blobs/" in path else (200,)))
        for method, path in written(name):
            expect(one.ask(method, path), 401, 403, code=("UNAUTHORIZED", "DENIED"))


@check("and mounted by who may push", needs="tokens")
def _(r):
    mine_and_theirs(r)
    data = content.noise()
    name = f"open-{r.run}-{r.fresh().rsplit('/', 1)[1]}"
    r.push(data, name)
    alice = limited(r, "pull:alice-*", "push:alice-*")
    alice.is_pushed(alice.mount(data, name), data)


@check("who asks for another registry, which is not known, is refused", needs="tokens")
def _(r):
    r.image("latest")
    for host in ("registry.example", "127.0.0.1:1", "[::1]:80", "localhost", "a" * 300, "../..", "%00", "x@y", "a/b"):
        for path in (f"{r.name}/manifests/latest", f"{r.name}/blobs/{r.digest(b'{}')}", f"{r.name}/tags/list"):
            expect(r.ask("GET", f"{path}?ns={host}"), 400, 403, 404, code=("DENIED", "NAME_INVALID", "UNSUPPORTED", "NAME_UNKNOWN"))
    expect(r.ask("GET", f"{r.name}/manifests/latest?ns="), 200, 400)


@check("a session belongs to who may push there", needs="tokens")
def _(r):
    mine_and_theirs(r)
    place = r.start(r.other)
    alice = limited(r, "pull:alice-*", "push:alice-*")
    for answer in (alice.ask("GET", place), alice.chunk(place, b"x"), alice.end(place, b"x"), alice.ask("DELETE", place)):
        expect(answer, 403, code="DENIED")
    moved = place.replace(r.other, r.name)
    for answer in (alice.ask("GET", moved), alice.chunk(moved, b"x"), alice.end(moved, b"x"), alice.ask("DELETE", moved)):
        expect(answer, 404, code="BLOB_UPLOAD_UNKNOWN")
