# SPDX-License-Identifier: Apache-2.0
"""A registry as a check sees it: requests in words, and what they must be answered."""
import itertools
import os
import re
import time
from urllib.parse import quote, urlencode

from distribution import content
from distribution.wire import Wrong

NEXT = re.compile(r'<([^>]+)>; *rel="?next"?')
MOUNTED, NO_MOUNT = 201, 202


class Checks:
    """All checks, each with its sentence; a file of them takes `check` from here."""

    def __init__(self):
        self.all = []

    def check(self, sentence, *arguments, needs=None):
        def add(function):
            self.all.append((sentence, lambda registry: function(registry, *arguments), needs))
            return function
        return add


def expect(answer, *statuses, code=None):
    """The answer, which has one of these statuses and, where it refuses, this code (or one of these)."""
    if answer.status not in statuses:
        raise Wrong(f"{answer.asked}: expected {' or '.join(map(str, statuses))}, got {answer.status} {answer.body[:200]!r}")
    codes = [code] if isinstance(code, str) else code
    if codes and answer.status >= 400 and answer.body and not set(codes) & set(answer.codes):
        raise Wrong(f"{answer.asked}: expected {' or '.join(codes)}, got {answer.codes or answer.body[:200]!r}")
    return answer


def same(what, found, wanted):
    if found != wanted:
        raise Wrong(f"{what}: expected {str(wanted)[:300]}, found {str(found)[:300]}")


class Registry:
    """One algorithm's view of it; `name` and `other` are repositories of this check alone."""

    counter = itertools.count()
    run = os.urandom(4).hex()

    def __init__(self, wire, algorithm, mirror=None, prefix="conformance"):
        """Of a mirror, which is a Wire and what it calls this registry, all is read that is not about an upload."""
        self.wire, self.algorithm, self.mirror, self.prefix = wire, algorithm, mirror, prefix
        self.name, self.other = self.fresh(), self.fresh()

    def close(self):
        self.wire.close()
        if self.mirror:
            self.mirror[0].close()

    def fresh(self):
        return f"{self.prefix}/{self.run}/{next(self.counter)}"

    def ask(self, method, path, body=b"", *headers, **more):
        if self.mirror and method in ("GET", "HEAD") and "/uploads/" not in path:
            wire, host = self.mirror
            return wire.ask(method, f"/v2/{host}/{path}", body, headers, **more)
        return self.wire.ask(method, f"/v2/{path}", body, headers, **more)

    def digest(self, data):
        return content.digest_of(data, self.algorithm)

    def descriptor(self, data, media=content.LAYER, **more):
        return content.descriptor(data, self.algorithm, media, **more)

    # Blobs.
    def blob(self, data, method="GET", *headers, name=None, **more):
        """What the registry says of these bytes."""
        return self.ask(method, f"{name or self.name}/blobs/{self.digest(data)}", b"", *headers, **more)

    def has_blob(self, data, name=None):
        """GET and HEAD agree on all of it."""
        found = expect(self.blob(data, name=name), 200)
        same("the blob", found.body, data)
        same("its length", found.header("Content-Length"), str(len(data)))
        same("its Docker-Content-Digest", found.header("Docker-Content-Digest"), self.digest(data))
        self.as_head(found, self.blob(data, "HEAD", name=name))
        return found

    def lacks_blob(self, data, name=None):
        expect(self.blob(data, name=name), 404, code="BLOB_UNKNOWN")
        expect(self.blob(data, "HEAD", name=name), 404)

    @staticmethod
    def as_head(found, head):
        expect(head, found.status)
        for name in ("Content-Length", "Content-Type", "Docker-Content-Digest"):
            same(f"{name} of HEAD", head.header(name), found.header(name))

    # Uploads.
    def start(self, name=None, **query):
        """A session's place. One for sha512 says so first."""
        if self.algorithm != "sha256" and not query:
            query = {"digest-algorithm": self.algorithm}
        path = f"{name or self.name}/blobs/uploads/" + (f"?{urlencode(query)}" if query else "")
        return self.place(expect(self.ask("POST", path), 202))

    @staticmethod
    def place(answer):
        """The path behind /v2/ of a Location."""
        found = answer.header("Location")
        if not found:
            raise Wrong(f"{answer.asked}: no Location")
        return re.sub(r"^https?://[^/]*", "", found).removeprefix("/v2/")

    def end(self, place, data=b"", *headers, of=None, **more):
        """PUT: close the session as these bytes, the last of which are data."""
        whole = data if of is None else of
        joint = "&" if "?" in place else "?"
        return self.ask("PUT", f"{place}{joint}digest={quote(self.digest(whole))}", data,
                        ("Content-Type", "application/octet-stream"), *headers, **more)

    def chunk(self, place, data, start=None, **more):
        """PATCH, with a Content-Range where it is told the start."""
        headers = [("Content-Type", "application/octet-stream")]
        if start is not None:
            headers.append(("Content-Range", f"{start}-{start + len(data) - 1}"))
        return self.ask("PATCH", place, data, *headers, **more)

    def status(self, place):
        """How many bytes a session holds, and its place. 0-0 says nothing of the first byte."""
        answer = expect(self.ask("GET", place), 204)
        found = re.fullmatch(r"0-(\d+)", answer.header("Range") or "")
        if not found:
            raise Wrong(f"{answer.asked}: Range {answer.header('Range')}")
        return int(found[1]) + 1, self.place(answer)

    def end_rest(self, place, data):
        """Go on with an upload that was cut: the registry may still be busy with what came before the cut."""
        end = time.monotonic() + 60
        while True:
            held, place = self.status(place)
            answer = self.end(place, data[held:], ("Content-Range", f"{held}-{len(data) - 1}"), of=data)
            if answer.status not in (409, 416) or time.monotonic() > end:
                return answer
            time.sleep(0.05)

    def push(self, data, name=None):
        """A blob, the simplest way that is in the specification; its descriptor."""
        answer = expect(self.end(self.start(name), data), 201)
        same("Docker-Content-Digest of an upload", answer.header("Docker-Content-Digest"), self.digest(data))
        return self.descriptor(data)

    def is_pushed(self, answer, data, name=None):
        """The answer is of a finished upload, and the blob is there."""
        expect(answer, 201)
        same("Docker-Content-Digest", answer.header("Docker-Content-Digest"), self.digest(data))
        place = self.place(answer)
        same("the blob at its Location", expect(self.ask("GET", place), 200).body, data)
        self.has_blob(data, name)

    def mount(self, data, source=None, name=None, **more):
        query = {"mount": self.digest(data), **({"from": source} if source else {}), **more}
        return self.ask("POST", f"{name or self.name}/blobs/uploads/?{urlencode(query)}")

    # Manifests.
    def put(self, text, reference=None, media=content.IMAGE, *headers, name=None, **more):
        """PUT; by its digest where no tag is said."""
        reference = reference or self.digest(text)
        return self.ask("PUT", f"{name or self.name}/manifests/{reference}", text, ("Content-Type", media), *headers, **more)

    def get(self, reference, method="GET", *headers, name=None, **more):
        """GET, of whatever type where none is said."""
        headers = headers or tuple(("Accept", kind) for kind in content.SIX)
        return self.ask(method, f"{name or self.name}/manifests/{reference}", b"", *headers, **more)

    def store(self, document, tag=None, media=content.IMAGE, name=None):
        """Put it by its digest, and under a tag; its descriptor. It is there, byte for byte."""
        text = document if isinstance(document, bytes) else content.text_of(document)
        query = f"?tag={tag}" if tag and self.algorithm != "sha256" else ""
        expect(self.put(text, self.digest(text) + query, media, name=name), 201)
        if tag and not query:
            expect(self.put(text, tag, media, name=name), 201)
        self.has_manifest(text, media, tag, name)
        return self.descriptor(text, media)

    def has_manifest(self, text, media=content.IMAGE, tag=None, name=None):
        for reference in filter(None, (self.digest(text), tag)):
            found = expect(self.get(reference, "GET", ("Accept", media), name=name), 200)
            same("the manifest", found.body, text)
            same("its Content-Type", found.header("Content-Type"), media)
            same("its Docker-Content-Digest", found.header("Docker-Content-Digest"), self.digest(text))
            same("its length", found.header("Content-Length"), str(len(text)))
            self.as_head(found, self.get(reference, "HEAD", ("Accept", media), name=name))

    def lacks_manifest(self, reference):
        expect(self.get(reference), 404, code=("MANIFEST_UNKNOWN", "NAME_UNKNOWN"))
        expect(self.get(reference, "HEAD"), 404)

    def parts(self, layers=1, name=None):
        """A config and layers, pushed."""
        config = self.push(content.text_of({"architecture": "amd64", "os": "linux", "id": content.noise(8).hex()}), name)
        return {**config, "mediaType": content.CONFIG}, [self.push(content.noise(), name) for _ in range(layers)]

    def image(self, tag=None, name=None, media=content.IMAGE, layers=1, **more):
        """A whole image; its descriptor."""
        return self.store(content.image_of(*self.parts(layers, name), media, **more), tag, media, name)

    def empty(self, name=None):
        self.push(b"{}", name)
        return self.descriptor(b"{}", content.EMPTY)

    def artifact(self, subject, kind=None, tag=None, **more):
        """Something that refers to a subject; its descriptor."""
        empty = self.empty()
        given = {"artifactType": kind} if kind else {}
        document = content.image_of(empty, [empty], subject=subject, **given, **more)
        return self.store(document, tag)

    # Lists.
    def tags(self, query=""):
        answer = expect(self.ask("GET", f"{self.name}/tags/list{query}"), 200)
        found = answer.json()
        same("name of the list", found.get("name"), self.name)
        return found["tags"], answer

    def referrers(self, digest, query="", name=None):
        answer = expect(self.ask("GET", f"{name or self.name}/referrers/{digest}{query}"), 200)
        same("its Content-Type", answer.header("Content-Type"), content.INDEX)
        found = answer.json()
        same("schemaVersion and mediaType", (found.get("schemaVersion"), found.get("mediaType")), (2, content.INDEX))
        return found["manifests"], answer

    def pages(self, path, key, most=1000):
        """Each page of a list, by its Links."""
        while path:
            most -= 1
            if not most:
                raise Wrong(f"Links of {path} never end")
            answer = expect(self.ask("GET", path), 200)
            yield answer.json()[key]
            link = NEXT.search(answer.header("Link") or "")
            path = re.sub(r"^https?://[^/]*", "", link[1]).removeprefix("/v2/") if link else None
