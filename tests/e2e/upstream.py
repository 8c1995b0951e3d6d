#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A registry that does what its repositories are called.

	upstream.py DIRECTORY SIZE [CERT KEY]     it serves on a free port, which DIRECTORY/port says

Each repository has one image, of a manifest by the tag "1" and a blob of SIZE
bytes, which is its own. Its name says how that comes:

	paced-*   the blob comes over SECONDS (a file, DIRECTORY/seconds)
	held-*    its second half comes once DIRECTORY/go is there
	cut-*     each answer ends after a third of what it should bring, while that is much
	flip-*    a byte is wrong
	reset-*   the first connection is reset in the middle
	away-*    it is redirected to another port, which wants no Authorization
	chunks-*  it comes in chunks, and nothing says how long it is
	chunks-flip-*  and a byte of it is wrong

A line for each request goes to DIRECTORY/requests.
"""
import hashlib
import http.server
import json
import os
import random
import socket
import ssl
import struct
import sys
import threading
import time

directory, size = sys.argv[1], int(sys.argv[2])
TYPE = "application/vnd.oci.image.manifest.v1+json"
PIECE = 256 * 1024
lock = threading.Lock()
seen = set()
images = {}


def digest(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def make(name):
    blob = random.Random(name).randbytes(size)
    manifest = json.dumps({"schemaVersion": 2, "mediaType": TYPE,
                           "config": {"mediaType": "application/vnd.oci.empty.v1+json", "digest": digest(blob), "size": size},
                           "layers": []}).encode()
    return blob, manifest


def image(name):
    with lock:
        if name not in images:
            images[name] = make(name)
        return images[name]


def first(name):
    with lock:
        new = name not in seen
        seen.add(name)
        return new


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def note(self):
        with lock, open(f"{directory}/requests", "a") as out:
            print(self.command, self.path, self.headers.get("Range", "-"), "auth" if self.headers["Authorization"] else "anonymous", file=out)

    def say(self, status, headers, body=b""):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def send_slowly(self, body):
        seconds = float(open(f"{directory}/seconds").read())
        begin = time.monotonic()
        for at in range(0, len(body), PIECE):
            self.wfile.write(body[at:at + PIECE])
            left = begin + seconds * (at + PIECE) / len(body) - time.monotonic()
            if left > 0:
                time.sleep(left)

    def send_held(self, body):
        self.wfile.write(body[:len(body) // 2])
        self.wfile.flush()
        while not os.path.exists(f"{directory}/go"):
            time.sleep(0.01)
        self.wfile.write(body[len(body) // 2:])

    def send_chunks(self, name, body):
        if name.startswith("chunks-flip"):
            body = body[:-1] + bytes([body[-1] ^ 1])
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for at in range(0, len(body) if self.command != "HEAD" else 0, PIECE):
            piece = body[at:at + PIECE]
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        if self.command != "HEAD":
            self.wfile.write(b"0\r\n\r\n")

    def send_blob(self, name, body):
        kind = name.split("-")[0]
        if kind == "flip":
            body = body[:len(body) // 2] + b"!" + body[len(body) // 2 + 1:]
        if kind == "paced":
            self.send_slowly(body)
        elif kind == "held":
            self.send_held(body)
        elif kind == "cut" and len(body) > size // 4:
            self.wfile.write(body[:len(body) // 3])
            self.close_connection = True
        elif kind == "reset" and first(name):
            self.wfile.write(body[:len(body) // 3])
            self.wfile.flush()
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
            self.close_connection = True
        else:
            self.wfile.write(body)

    def answer_blob(self, name, blob):
        begin, status = 0, 200
        if name.startswith("away") and self.server is registry:
            return self.say(307, {"Location": f"http://127.0.0.1:{storage.server_port}{self.path}"})
        if self.headers["Authorization"] and self.server is storage:
            return self.say(400, {}, b"only one auth mechanism allowed")
        if name.startswith("chunks"):
            return self.send_chunks(name, blob)
        if self.headers["Range"]:
            begin, status = int(self.headers["Range"].removeprefix("bytes=").split("-")[0]), 206
        self.send_response(status)
        if status == 206:
            self.send_header("Content-Range", f"bytes {begin}-{len(blob) - 1}/{len(blob)}")
        self.send_header("Content-Length", str(len(blob) - begin))
        self.end_headers()
        if self.command != "HEAD":
            self.send_blob(name, blob[begin:])

    def do_GET(self):
        self.note()
        parts = self.path.split("?")[0].split("/")
        if len(parts) < 5:
            return self.say(200, {}, b"{}")
        name, kind, reference = "/".join(parts[2:-2]), parts[-2], parts[-1]
        blob, manifest = image(name)
        if kind == "manifests" and reference in ("1", digest(manifest)):
            return self.say(200, {"Content-Type": TYPE, "Docker-Content-Digest": digest(manifest)}, manifest)
        if kind == "blobs" and reference == digest(blob):
            return self.answer_blob(name, blob)
        return self.say(404, {}, b"<html>none</html>")

    do_HEAD = do_GET


registry = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
storage = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
if len(sys.argv) > 3:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*sys.argv[3:])
    registry.socket = context.wrap_socket(registry.socket, server_side=True)
threading.Thread(target=storage.serve_forever, daemon=True).start()
open(f"{directory}/requests", "w").close()
with open(f"{directory}/port.new", "w") as port:
    port.write(str(registry.server_port))
os.rename(f"{directory}/port.new", f"{directory}/port")
registry.serve_forever()
