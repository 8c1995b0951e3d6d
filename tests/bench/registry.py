# SPDX-License-Identifier: Apache-2.0
"""Rows: the registry, beside docker-registry and nginx with the same content."""
import hashlib
import http.client
import itertools
import json
import os
import re
import socket
import subprocess
import sys
import threading

from daemon import Served, percentiles, rates, start_nginx, wrk
from measure import free_port, run, settle

MIB = 2**20
BIG = 256 * MIB
COLD = 32 * MIB
CLIENTS = 64
READERS = 1000
UPSTREAM_MIB = 16  # a second, to one client
MANIFEST = "application/vnd.oci.image.manifest.v1+json"

DOCKER_REGISTRY = """version: 0.1
log: {{level: error, accesslog: {{disabled: true}}}}
storage: {{filesystem: {{rootdirectory: "{root}"}}, cache: {{blobdescriptor: inmemory}}, delete: {{enabled: true}}}}
http: {{addr: "127.0.0.1:{port}"}}
{more}
"""

# A registry of files: what a mirror asks, at the speed of a line, and who reads what is measured, at any.
NGINX = """worker_processes {cores};
user root;
daemon off;
error_log {work}/files.log;
pid {work}/files.pid;
events {{ worker_connections 1024; }}
http {{
	sendfile on;
	tcp_nopush on;
	keepalive_requests 1000000000;
	access_log off;
	log_format asked "$request_method $uri";
	server {{
		listen 127.0.0.1:{port};
		root {root};
		location = /v2/ {{ return 200 "{{}}"; }}
		location ~ ^/v2/.*/blobs/(sha256:[0-9a-f]+)$ {{
			access_log {work}/asked asked;
			add_header Docker-Content-Digest $1;
			limit_rate {rate}m;
		}}
	}}
}}
"""


class Registry:
    """One that is measured, and a connection to it."""

    def __init__(self, bench, port, token=""):
        self.bench, self.port, self.token = bench, port, token
        self.connection = http.client.HTTPConnection("127.0.0.1", port)

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def ask(self, verb, path, body=b"", **headers):
        headers = {**headers, **({"Authorization": f"Bearer {self.token}"} if self.token else {})}
        self.connection.request(verb, path, body, headers)
        answer = self.connection.getresponse()
        text = answer.read()
        if answer.status >= 400:
            sys.exit(f"bench: {verb} {path}: {answer.status} {text.decode()}")
        return answer, text

    def push_blob(self, repository, body):
        """Its descriptor, without a media type."""
        digest = f"sha256:{hashlib.sha256(body).hexdigest()}"
        place = self.ask("POST", f"/v2/{repository}/blobs/uploads/")[0].headers["Location"]
        place = place[len(self.url):] if place.startswith(self.url) else place
        self.ask("PUT", f"{place}{'&' if '?' in place else '?'}digest={digest}", body)
        return {"digest": digest, "size": len(body)}

    def push(self, repository, tag, *layers):
        """An image of these layers: its manifest."""
        config = self.push_blob(repository, json.dumps({"architecture": "amd64", "os": "linux"}).encode())
        manifest = {"schemaVersion": 2, "mediaType": MANIFEST,
                    "config": {"mediaType": "application/vnd.oci.image.config.v1+json", **config},
                    "layers": [{"mediaType": "application/vnd.oci.image.layer.v1.tar", **self.push_blob(repository, layer)}
                               for layer in layers]}
        self.ask("PUT", f"/v2/{repository}/manifests/{tag}", json.dumps(manifest), **{"Content-Type": MANIFEST})
        return manifest

    def wrk(self, path):
        return wrk(self.url + path, "-H", f"Accept: {MANIFEST}",
                   *(["-H", f"Authorization: Bearer {self.token}"] if self.token else []))

    def load(self, clients, count, *what):
        """Seconds, bytes, and the 99th percentile in ms, of registry_load."""
        command = [self.bench.build / "tests/bench/bench.registry_load", self.port, self.token, clients, count, *what]
        done = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            sys.exit(f"bench: {' '.join(map(str, what))} of port {self.port} fails")
        return tuple(map(float, done.stdout.split()))

    def read_rate(self, path, clients, count):
        """MB/s."""
        seconds, size, _ = self.load(clients, count, "get", path)
        return size / 1e6 / seconds

    def push_rate(self, clients, count, size=10**6):
        """Images a second, of one layer each."""
        return count / self.load(clients, count, "push", "bench/pushed", size)[0]


class Hearth(Registry):
    """A daemon; upstream is the port of the registry that it is a mirror of."""

    def __init__(self, bench, upstream=None):
        self.data = bench.fresh("registry") / "data"
        config = self.data.parent / "hearth.json"
        config.write_text(json.dumps({"mirror": {
            "upstreams": {"docker.io": {"url": f"http://127.0.0.1:{upstream}"}}, "default": "docker.io"}} if upstream else {}))
        self.daemon = Served(bench, self.data, "--config", config)
        super().__init__(bench, self.daemon.address[1], self.daemon.token)

    def disk(self):
        """Bytes of the store's files."""
        return int(self.bench.filler(self.data, "account").split()[0])


def docker_registry(bench, upstream=None):
    port = free_port()
    work = bench.fresh("docker-registry")
    (work / "registry.yml").write_text(DOCKER_REGISTRY.format(
        root=work / "files", port=port, more=f'proxy: {{remoteurl: "http://127.0.0.1:{upstream}"}}' if upstream else ""))
    bench.serve("docker-registry", "serve", work / "registry.yml")
    bench.wait("docker-registry", "curl", "-fsS", f"http://127.0.0.1:{port}/v2/")
    return Registry(bench, port)


class Files(Registry):
    """nginx with the blobs that were put in."""

    def __init__(self, bench, rate=0):
        port, self.work = free_port(), bench.fresh("nginx")
        (self.work / "nginx.conf").write_text(NGINX.format(cores=os.cpu_count(), work=self.work, port=port, rate=rate,
                                                           root=self.work / "files"))
        bench.serve("nginx", "-c", self.work / "nginx.conf")
        bench.wait("nginx", "curl", "-fsS", f"http://127.0.0.1:{port}/v2/")
        super().__init__(bench, port)

    def push_blob(self, repository, body):
        digest = f"sha256:{hashlib.sha256(body).hexdigest()}"
        blobs = self.work / "files/v2" / repository / "blobs"
        blobs.mkdir(parents=True, exist_ok=True)
        (blobs / digest).write_bytes(body)
        return {"digest": digest, "size": len(body)}

    def asked(self, path):
        """How often a GET came for it."""
        settle()
        return (self.work / "asked").read_text(encoding="ascii").splitlines().count(f"GET {path}")


def few(bench):
    return max(3, bench.args.runs // 3)


def manifests(bench):
    """A manifest by its tag and by its digest, beside a fixed answer of nginx."""
    sides = {"hearth": Hearth(bench), "docker-registry": docker_registry(bench)}
    for registry in sides.values():
        manifest = registry.push("bench/read", "1", b"layer")
    nginx = start_nginx(bench, json.dumps(manifest))
    digest = f"sha256:{hashlib.sha256(json.dumps(manifest).encode()).hexdigest()}"
    for name, reference in (("tag", "1"), ("digest", digest)):
        samples = bench.turns(few(bench), **{
            side: lambda registry=registry, reference=reference: registry.wrk(f"/v2/bench/read/manifests/{reference}")
            for side, registry in sides.items()}, nginx=lambda: wrk(nginx))
        bench.row(f"manifests by {name}", rates(samples), ("40,000", lambda m: m["hearth"] >= 40000), "/s")
        bench.row("its 99th percentile", percentiles(samples), ("5 ms", lambda m: m["hearth"] <= 5))


def blobs(bench):
    """A large blob on one connection, and small ones on several."""
    sides = {"hearth": Hearth(bench), "docker-registry": docker_registry(bench), "nginx": Files(bench)}
    bodies = {size: os.urandom(size) for size in (BIG, MIB)}
    paths = {size: [f"/v2/bench/read/blobs/{registry.push_blob('bench/read', body)['digest']}"
                    for registry in sides.values()][0] for size, body in bodies.items()}

    def turns(size, clients, count):
        return bench.turns(few(bench), **{
            side: lambda registry=registry: registry.read_rate(paths[size], clients, count)
            for side, registry in sides.items()})

    turns(BIG, 1, 1)
    bench.row("a blob of 256 MiB, one connection", turns(BIG, 1, 4), ("2,000", lambda m: m["hearth"] >= 2000), "MB/s")
    for clients in (4, 16):
        bench.row(f"blobs of 1 MiB, {clients} connections", turns(MIB, clients, 2000),
                  ("2 x docker-registry", lambda m: m["hearth"] >= 2 * m["docker-registry"]), "MB/s")


def pushes(bench):
    """Images of a layer of 1 MB that nobody has seen, as containerd sends them; each is durable before its answer."""
    sides = {"hearth": Hearth(bench), "docker-registry": docker_registry(bench)}
    for clients, count in ((1, 60), (4, 120)):
        samples = bench.turns(few(bench), **{side: lambda registry=registry: registry.push_rate(clients, count)
                                             for side, registry in sides.items()})
        bench.row(f"pushes of 1 MB, {clients} at once", samples,
                  ("4 x docker-registry", lambda m: m["hearth"] >= 4 * m["docker-registry"]), "/s")


def cold(bench):
    """Clients that all ask at once for a blob that only the upstream has, and what the upstream is asked for it."""
    upstream = Files(bench, UPSTREAM_MIB)
    mirrors = {"hearth": Hearth(bench, upstream.port), "docker-registry": docker_registry(bench, upstream.port)}
    asked = {side: [] for side in mirrors}

    def fetch(side):
        path = f"/v2/library/cold/blobs/{upstream.push_blob('library/cold', os.urandom(COLD))['digest']}"
        took = mirrors[side].load(CLIENTS, CLIENTS, "get", f"{path}?ns=docker.io")[0] * 1000
        asked[side].append(upstream.asked(path))
        return took

    def alone():
        path = f"/v2/library/cold/blobs/{upstream.push_blob('library/cold', os.urandom(COLD))['digest']}"
        return upstream.load(1, 1, "get", path)[0] * 1000

    samples = bench.turns(few(bench), hearth=lambda: fetch("hearth"), **{
        "one at the upstream": alone, "docker-registry": lambda: fetch("docker-registry")})
    bench.row(f"{CLIENTS} cold clients of one 32 MiB blob", samples,
              ("1.3 x one at the upstream", lambda m: m["hearth"] <= 1.3 * m["one at the upstream"]))
    bench.row("GETs that the upstream sees", asked, ("1", lambda m: set(asked["hearth"]) == {1}), "")


class Resident(threading.Thread):
    """The most that a daemon keeps resident, without the pages of data.mdb."""

    def __init__(self, daemon):
        super().__init__(daemon=True)
        self.resident, self.peak, self.done = daemon.resident, 0, threading.Event()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.done.set()
        self.join()

    def run(self):
        while not self.done.wait(0.05):
            self.peak = max(self.peak, self.resident())


def registry_memory(bench):
    """What the daemon keeps while it is read, pushed to and asked as a mirror."""
    upstream = Files(bench)
    hearth = Hearth(bench, upstream.port)
    manifest = hearth.push("bench/read", "1", os.urandom(COLD))
    blob = f"/v2/bench/read/blobs/{manifest['layers'][0]['digest']}"
    cold_path = f"/v2/library/cold/blobs/{upstream.push_blob('library/cold', os.urandom(COLD))['digest']}?ns=docker.io"
    loads = {"manifests": lambda: hearth.wrk("/v2/bench/read/manifests/1"),
             f"{CLIENTS} readers of 32 MiB": lambda: hearth.load(CLIENTS, 4 * CLIENTS, "get", blob),
             f"{CLIENTS} cold clients": lambda: hearth.load(CLIENTS, CLIENTS, "get", cold_path),
             "16 pushes of 1 MB": lambda: hearth.load(16, 320, "push", "bench/pushed", 10**6),
             "4 pushes of 32 MiB": lambda: hearth.load(4, 16, "push", "bench/pushed", COLD)}
    peaks = {}
    for name, load in loads.items():
        with Resident(hearth.daemon) as watch:
            load()
        peaks[name] = [watch.peak]
    bench.row("resident while it is loaded", {"hearth": [max(peak[0] for peak in peaks.values())], **peaks},
              ("64 MiB", lambda m: m["hearth"] <= 64), "MiB")


class Readers(threading.Thread):
    """Connections that read 4 KiB of a blob a second, and hardly buffer anything."""

    def __init__(self, registry, path):
        super().__init__(daemon=True)
        request = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {registry.token}\r\n\r\n".encode()
        self.done, self.all = threading.Event(), [self.connect(registry.port, request) for _ in range(READERS)]

    @staticmethod
    def connect(port, request):
        reader = socket.socket()
        reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        reader.connect(("127.0.0.1", port))
        reader.sendall(request)
        return reader

    def __enter__(self):
        for reader in self.all:
            if not re.match(rb"HTTP/1.1 200 ", reader.recv(4096)):
                sys.exit("bench: a slow reader is refused")
        self.start()
        return self

    def __exit__(self, *_):
        self.done.set()
        self.join()
        for reader in self.all:
            reader.close()

    def run(self):
        for reader in itertools.cycle(self.all):
            if self.done.wait(1 / READERS):
                break
            reader.recv(4096)


def slow_readers(bench):
    """The store is written, emptied and collected while readers take their time, and while none do."""
    hearth = Hearth(bench)
    manifest = hearth.push("bench/read", "1", os.urandom(2 * COLD))
    blob = f"/v2/bench/read/blobs/{manifest['layers'][0]['digest']}"

    def turn():
        gone = hearth.push("bench/gone", "1", *(os.urandom(4 * MIB) for _ in range(8)))
        hearth.ask("DELETE", "/v2/bench/gone/manifests/1")
        digest = f"sha256:{hashlib.sha256(json.dumps(gone).encode()).hexdigest()}"
        hearth.ask("DELETE", f"/v2/bench/gone/manifests/{digest}")
        for layer in gone["layers"]:
            hearth.ask("DELETE", f"/v2/bench/gone/blobs/{layer['digest']}")
        run(bench.hearth, "gc", "--data", hearth.data)

    def size():
        for _ in range(10):
            turn()
        return hearth.disk() / MIB

    alone, before = size(), hearth.daemon.resident()
    with Readers(hearth, blob), Resident(hearth.daemon) as watch:
        beside = size()
    bench.row("the store after 320 MiB that came and went", {"hearth": [beside], "without readers": [alone]},
              ("32 MiB more", lambda m: m["hearth"] <= m["without readers"] + 32), "MiB")
    bench.row(f"{READERS} slow readers, and that", {"hearth": [watch.peak], "before": [before]},
              ("64 MiB", lambda m: m["hearth"] <= 64), "MiB")
