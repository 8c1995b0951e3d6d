#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Clients of a registry that push, mount, pull and delete all at once, and say what they were answered wrong.

	registry_clients.py upstream PORT     a slow registry of blobs, for a mirror; each has its own number as a tag
	registry_clients.py soak URL LOG      until LOG.stop is there; wrong answers are printed
	registry_clients.py check URL LOG     what LOG has as answered is still so
	registry_clients.py empty URL LOG     delete all of it
	registry_clients.py mirrored URL LOG  print the bytes of the blobs that were read through the mirror

TOKEN is in the environment. Under soak with KILLED=1 the server may go and come back at any moment: then it is nobody's
fault that an answer does not come, and what was begun is taken up again. With MIRRORED=NAME blobs are also read through
the mirror, below that name. LOG has one JSON object a line, of what was asked and what was answered.

Layers are few, and the same in all repositories, so that what one image loses another one is just about to name.
"""
import hashlib
import http.client
import http.server
import json
import os
import random
import sys
import threading
import time
from urllib.parse import urlsplit

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar"
REPOSITORIES = ("soak/a", "soak/b", "soak/deep/er/c", "other")
LAYERS = 24
MIRRORED_BLOBS = 40
KILLED = os.environ.get("KILLED") == "1"


def digest_of(body):
    return f"sha256:{hashlib.sha256(body).hexdigest()}"


def layer(number):
    """Of 1 KiB to 2 MiB."""
    source = random.Random(number)
    return source.randbytes(1024 << (number % 12))


class Wrong(Exception):
    """An answer that nobody may get."""


class Gone(Exception):
    """No answer: the server was killed, or has not come back."""


class Connection:
    """To the server that is there now."""

    def __init__(self, url):
        self.host = urlsplit(url).netloc
        self.kept = None

    def ask(self, verb, path, body=b"", **headers):
        """Status, headers and body."""
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            self.kept = self.kept or http.client.HTTPConnection(self.host, timeout=120)
            self.kept.request(verb, path, body, {"Authorization": f"Bearer {os.environ['TOKEN']}",
                                                  "Accept": f"{MANIFEST}, {INDEX}", **headers})
            answer = self.kept.getresponse()
            return answer.status, answer.headers, answer.read()
        except (OSError, http.client.HTTPException) as why:
            self.kept = None
            if not KILLED:
                raise Wrong(f"{verb} {path}: no answer: {why!r}") from why
            time.sleep(0.02)
            raise Gone() from why

    def expect(self, statuses, verb, path, body=b"", **headers):
        status, fields, said = self.ask(verb, path, body, **headers)
        if status not in statuses:
            raise Wrong(f"{verb} {path}: {status} instead of {statuses}: {said[:500]!r}")
        return status, fields, said


class Images:
    """What was put, as the log has it. An image is {repository, digest, tag}; it is put once, and deleted once."""

    def __init__(self, log):
        self.lock = threading.Lock()
        self.live, self.deleted, self.children, self.blobs, self.mirrored = {}, {}, [], set(), {}
        if os.path.exists(log):
            with open(log, encoding="ascii") as lines:
                for line in lines:
                    self.note(json.loads(line))
        self.log = open(log, "a", buffering=1, encoding="ascii")  # pylint: disable=consider-using-with

    def note(self, event):
        image = event.get("image")
        if event["what"] == "put":
            self.live[image["digest"]] = image
        elif event["what"] == "deleting":
            self.live.pop(image["digest"], None)
        elif event["what"] == "deleted":
            self.deleted[image["digest"]] = image
        elif event["what"] == "child":
            self.children.append(image)
        elif event["what"] == "mirrored":
            self.mirrored[event["digest"]] = event["size"]
        else:
            self.blobs.add((event["repository"], event["digest"]))

    def say(self, **event):
        with self.lock:
            if event["what"] != "blob" or (event["repository"], event["digest"]) not in self.blobs:
                self.note(event)
                self.log.write(json.dumps(event) + "\n")

    def any(self, source):
        with self.lock:
            return source.choice(list(self.live.values())) if self.live else None

    def holder(self, digest, source):
        """A repository in which the blob was put."""
        with self.lock:
            return source.choice([held for held in self.blobs if held[1] == digest] or [(None, None)])[0]


class Client:
    """One that goes on until it is told to stop."""

    def __init__(self, url, images, number, seed):
        self.connection, self.images, self.number = Connection(url), images, number
        self.random, self.counter = random.Random(f"{seed}/{number}"), 0
        self.ask, self.expect = self.connection.ask, self.connection.expect

    # How a blob comes.

    def finish(self, place, digest, body=b""):
        self.expect((201,), "PUT", f"{place}{'&' if '?' in place else '?'}digest={digest}", body)

    def begin(self, repository, query=""):
        return self.expect((201, 202), "POST", f"/v2/{repository}/blobs/uploads/{query}")

    def in_one(self, repository, digest, body):
        _, fields, _ = self.begin(repository)
        self.finish(fields["Location"], digest, body)

    def in_the_post(self, repository, digest, body):
        status, fields, _ = self.expect((201, 202), "POST", f"/v2/{repository}/blobs/uploads/?digest={digest}", body)
        if status == 202:
            self.finish(fields["Location"], digest, body)

    def streamed(self, repository, digest, body):
        _, fields, _ = self.begin(repository)
        pieces = (body[at:at + 65536] for at in range(0, len(body), 65536))
        _, fields, _ = self.expect((202,), "PATCH", fields["Location"], pieces)
        self.finish(fields["Location"], digest)

    def chunked(self, repository, digest, body):
        """The last one comes with the PUT; whoever was killed goes on where it says that it is."""
        _, fields, _ = self.begin(repository)
        place, at, step = fields["Location"], 0, len(body) // 3 + 1
        while len(body) - at > step:
            try:
                _, fields, _ = self.expect((202,), "PATCH", place, body[at:at + step],
                                           Content_Range=f"{at}-{at + step - 1}")
                place, at = fields["Location"], at + step
            except Gone:
                place, at = self.resume(place)
        self.expect((201,), "PUT", f"{place}{'&' if '?' in place else '?'}digest={digest}", body[at:],
                    Content_Range=f"{at}-{len(body) - 1}")

    def resume(self, place):
        """Where its session goes on, and behind how many bytes; 0-0 is none."""
        for _ in range(2000):
            try:
                status, fields, _ = self.ask("GET", place)
            except Gone:
                continue
            if status != 204:
                raise Wrong(f"GET {place}: {status}: the session is gone with the server")
            end = int(fields["Range"].split("-")[1])
            return fields["Location"], end + 1 if end else 0
        raise Gone()

    def mounted(self, repository, digest, body):
        source = self.images.holder(digest, self.random)
        status, fields, _ = self.begin(repository, f"?mount={digest}" + (f"&from={source}" if source else ""))
        if status == 202:
            self.finish(fields["Location"], digest, body)

    def abandoned(self, repository, digest, body):
        _, fields, _ = self.begin(repository)
        self.expect((202,), "PATCH", fields["Location"], body[:len(body) // 2])
        self.expect((204,), "DELETE", fields["Location"])
        self.in_one(repository, digest, body)

    def put_blob(self, repository, body):
        """Its descriptor. Whoever is told that it is there takes that for true."""
        digest = digest_of(body)
        status, _, _ = self.expect((200, 404), "HEAD", f"/v2/{repository}/blobs/{digest}")
        if status == 404:
            way = self.random.choice((self.in_one, self.in_one, self.in_the_post, self.streamed, self.chunked, self.mounted,
                                      self.mounted, self.abandoned))
            way(repository, digest, body)
        self.images.say(what="blob", repository=repository, digest=digest)
        return {"digest": digest, "size": len(body)}

    # Images.

    def put_manifest(self, repository, document, tag=None):
        body = json.dumps(document).encode()
        digest = digest_of(body)
        self.expect((201,), "PUT", f"/v2/{repository}/manifests/{tag or digest}", body, Content_Type=document["mediaType"])
        self.images.say(what="put", image={"repository": repository, "digest": digest, "tag": tag})
        return {"mediaType": document["mediaType"], "digest": digest, "size": len(body)}

    def image(self, repository):
        self.counter += 1
        config = {"architecture": "amd64", "os": "linux", "config": {"Env": [f"N={self.number}/{self.counter}/{os.getpid()}"]}}
        layers = [layer(self.random.randrange(LAYERS)) for _ in range(self.random.randrange(1, 4))]
        return {"schemaVersion": 2, "mediaType": MANIFEST,
                "config": {"mediaType": CONFIG, **self.put_blob(repository, json.dumps(config).encode())},
                "layers": [{"mediaType": LAYER, **self.put_blob(repository, body)} for body in layers]}

    def push(self):
        repository = self.random.choice(REPOSITORIES)
        tag = f"t{self.number}-{os.getpid()}-{self.counter}"
        document = self.image(repository)
        if self.random.randrange(5):
            self.put_manifest(repository, document, tag)
        else:  # children without tags stay with their index
            inner = [self.put_child(repository, document)]
            self.put_manifest(repository, {"schemaVersion": 2, "mediaType": INDEX, "manifests": inner}, tag)

    def put_child(self, repository, document):
        """Nobody deletes it or counts on it but its index."""
        body = json.dumps(document).encode()
        digest = digest_of(body)
        self.expect((201,), "PUT", f"/v2/{repository}/manifests/{digest}", body, Content_Type=MANIFEST)
        self.images.say(what="child", image={"repository": repository, "digest": digest})
        return {"mediaType": MANIFEST, "digest": digest, "size": len(body)}

    def read(self, path, digest):
        _, _, body = self.expect((200,), "GET", path)
        if digest_of(body) != digest:
            raise Wrong(f"GET {path}: other bytes")
        return body

    def pull_whole(self, repository, reference, digest):
        document = json.loads(self.read(f"/v2/{repository}/manifests/{reference}", digest))
        for child in document.get("manifests", []):
            self.pull_whole(repository, child["digest"], child["digest"])
        for blob in document.get("layers", []) + ([document["config"]] if "config" in document else []):
            self.read(f"/v2/{repository}/blobs/{blob['digest']}", blob["digest"])

    def pull(self):
        image = self.images.any(self.random)
        if not image:
            return self.push()
        try:
            return self.pull_whole(image["repository"], image["tag"] or image["digest"], image["digest"])
        except Wrong:
            if image["digest"] in self.images.live:
                raise
            return None

    def delete(self):
        """Half of what is pushed stays for a while."""
        image = self.images.any(self.random)
        if not image or len(self.images.live) < 20:
            return self.push()
        with self.images.lock:
            if image["digest"] not in self.images.live:
                return None
            del self.images.live[image["digest"]]
        self.images.say(what="deleting", image=image)
        path = f"/v2/{image['repository']}/manifests/{image['digest']}"
        self.expect((202,), "DELETE", path)
        self.images.say(what="deleted", image=image)
        return self.expect((404,), "HEAD", path)

    def delete_blob(self):
        """In a repository of its own, so that others keep the same bytes."""
        repository, body = f"own/n{self.number}", layer(self.random.randrange(LAYERS))
        digest = self.put_blob(repository, body)["digest"]
        path = f"/v2/{repository}/blobs/{digest}"
        self.read(path, digest)
        self.expect((202, 404) if KILLED else (202,), "DELETE", path)
        self.expect((404,), "HEAD", path)

    def mirrored(self):
        body = layer(1000 + self.random.randrange(MIRRORED_BLOBS))
        self.read(f"/v2/{os.environ['MIRRORED']}/blobs/{digest_of(body)}", digest_of(body))
        self.images.say(what="mirrored", digest=digest_of(body), size=len(body))

    def run(self, log):
        jobs = [self.push, self.push, self.pull, self.pull, self.delete, self.delete_blob]
        jobs += [self.mirrored] if "MIRRORED" in os.environ else []
        while not os.path.exists(f"{log}.stop"):
            try:
                self.random.choice(jobs)()
            except Gone:
                pass
            except Exception as why:  # pylint: disable=broad-except
                print(f"client {self.number}: {type(why).__name__}: {why}", flush=True)


def soak(url, log):
    images = Images(log)
    clients = [threading.Thread(target=Client(url, images, n, os.environ.get("SEED", "0")).run, args=(log,)) for n in range(8)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()


def check(url, log):
    images = Images(log)
    client = Client(url, images, 0, 0)
    newest = int(os.environ.get("NEWEST", "0"))
    live, deleted = (list(held.values())[-newest:] for held in (images.live, images.deleted))
    for image in live:
        try:
            client.pull_whole(image["repository"], image["tag"] or image["digest"], image["digest"])
        except Wrong as why:
            if image["digest"] in Images(log).live:  # it may be deleted at this moment
                print(f"lost: {image}: {why}")
    for image in deleted:
        status, _, _ = client.ask("HEAD", f"/v2/{image['repository']}/manifests/{image['digest']}")
        if status != 404:
            print(f"back: {image}: {status}")


def empty(url, log):
    client = Client(url, Images(log), 0, 0)
    for name in sorted({repository for repository, _ in client.images.blobs}):
        _, _, said = client.expect((200, 404), "GET", f"/v2/{name}/tags/list")
        for tag in json.loads(said).get("tags") or []:
            _, fields, _ = client.expect((200,), "HEAD", f"/v2/{name}/manifests/{tag}")
            client.expect((202,), "DELETE", f"/v2/{name}/manifests/{fields['Docker-Content-Digest']}")
    for child in client.images.children:
        client.expect((202, 404), "DELETE", f"/v2/{child['repository']}/manifests/{child['digest']}")
    for name, digest in sorted(client.images.blobs):
        client.expect((202, 404), "DELETE", f"/v2/{name}/blobs/{digest}")


def mirrored(_, log):
    print(sum(Images(log).mirrored.values()))


class Upstream(http.server.BaseHTTPRequestHandler):
    """Has the blobs that mirrored() asks for, in every repository."""
    protocol_version = "HTTP/1.1"
    blobs = {}

    def do_GET(self):
        body = b"{}" if self.path == "/v2/" else self.blobs.get(self.path.rsplit("/", 1)[1], b"")
        start = int((self.headers.get("Range") or "bytes=0-").split("=")[1].split("-")[0])
        self.send_response(404 if not body else 206 if start else 200)
        self.send_header("Content-Length", str(len(body) - start))
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
        self.end_headers()
        if self.command == "GET":
            for at in range(start, len(body), 65536):
                self.wfile.write(body[at:at + 65536])
                time.sleep(0.005)

    do_HEAD = do_GET

    def log_message(self, *_):
        pass


def upstream(port):
    Upstream.blobs = {digest_of(body): body for body in (layer(1000 + n) for n in range(MIRRORED_BLOBS))}
    http.server.ThreadingHTTPServer(("127.0.0.1", int(port)), Upstream).serve_forever()


{"upstream": upstream, "soak": soak, "check": check, "empty": empty, "mirrored": mirrored}[sys.argv[1]](*sys.argv[2:])
