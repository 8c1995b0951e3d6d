# SPDX-License-Identifier: Apache-2.0
"""Rows: the daemon's front door, beside nginx that answers the same text."""
import http.client
import json
import os
import re
import socket
import sys
import time
from pathlib import Path

from measure import free_port, said

NGINX = """worker_processes {cores};
daemon off;
error_log {work}/nginx.log;
pid {work}/nginx.pid;
events {{ worker_connections 1024; }}
http {{
	access_log off;
	keepalive_requests 1000000000;
	server {{ listen 127.0.0.1:{port}; location / {{ return 200 "{text}"; }} }}
}}
"""


def wrk(url, *options, seconds=3):
    """Requests a second over 16 kept connections, and the 99th percentile in ms."""
    text = said("wrk", "-t2", "-c16", f"-d{seconds}s", "--latency", *options, url)
    if "Non-2xx" in text:
        sys.exit(f"bench: {url} refuses:\n{text}")
    p99, unit = re.search(r"99%\s+([\d.]+)(us|ms|s)", text).groups()
    return float(re.search(r"Requests/sec:\s+([\d.]+)", text)[1]), float(p99) * {"us": 0.001, "ms": 1, "s": 1000}[unit]


def start(bench):
    """A daemon on a store of its own: its process, URL and token."""
    data, port = bench.fresh("served") / "data", free_port()
    process = bench.serve(bench.hearth, "serve", "--data", data, "--listen", f"127.0.0.1:{port}")
    bench.wait("hearth serve", "curl", "-fsS", f"http://127.0.0.1:{port}/readyz")
    return process, f"http://127.0.0.1:{port}", (data / "admin.token").read_text().strip()


def start_nginx(bench, text):
    port = free_port()
    config = bench.work / "nginx.conf"
    config.write_text(NGINX.format(cores=os.cpu_count(), work=bench.work, port=port, text=text.replace('"', '\\"')))
    bench.serve("nginx", "-c", config)
    bench.wait("nginx", "curl", "-fsS", f"http://127.0.0.1:{port}/")
    return f"http://127.0.0.1:{port}/"


def resident(process):
    """MiB that are resident, without the pages of data.mdb."""
    total, counted = 0, True
    for line in Path(f"/proc/{process.pid}/smaps").read_text(encoding="ascii").splitlines():
        if line[0] in "0123456789abcdef":
            counted = not line.endswith("data.mdb")
        elif counted and line.startswith("Rss:"):
            total += int(line.split()[1])
    return total / 1024


def sync(url, token, count):
    """So many agents, over one connection; the last one's name."""
    connection = http.client.HTTPConnection(url.split("//")[1])
    headers = {"Authorization": f"Bearer {token}"}
    for n in range(count):
        connection.request("POST", "/v1/agents.sync", json.dumps({"slug": f"agent-{n}", "model": "m", "system": "s"}), headers)
        answer = connection.getresponse()
        said_so = answer.read()
        if answer.status != 200:
            sys.exit(f"bench: agents.sync: {said_so.decode()}")
    return f"agent-{count - 1}"


def gauge(url, token, name):
    page = said("curl", "-sS", "-H", f"Authorization: Bearer {token}", f"{url}/metrics")
    return int(re.search(rf"^{name} (\d+)$", page, re.M)[1])


def crowd(bench, url, token, text, name):
    """What 1,000 connections cost that say this, once the gauge has counted them."""
    address = ("127.0.0.1", int(url.rsplit(":", 1)[1]))
    before = resident(bench.daemon)
    connections = [socket.create_connection(address) for _ in range(1000)]
    for connection in connections:
        connection.sendall(text.encode())
    while gauge(url, token, name) < 1000:
        time.sleep(0.05)
    cost = resident(bench.daemon) - before
    for connection in connections:
        connection.close()
    return cost


def serve(bench):
    """What a poller asks, with a token, and what connections cost that wait."""
    bench.daemon, url, token = start(bench)
    agent = sync(url, token, 1000)
    asked = f"/v1/agents.imageStatus?id={agent}"
    bearer = f"Authorization: Bearer {token}"
    bench.row("memory with 1,000 agents", {"hearth": [resident(bench.daemon)]}, ("16 MiB", lambda m: m["hearth"] <= 16), "MiB")
    nginx = start_nginx(bench, said("curl", "-sS", "-H", bearer, url + asked))
    samples = bench.turns(max(3, bench.args.runs // 3), hearth=lambda: wrk(url + asked, "-H", bearer), nginx=lambda: wrk(nginx))
    bench.row("agents.imageStatus", {name: [one[0] for one in side] for name, side in samples.items()},
              ("50,000 and 0.5 x nginx", lambda m: m["hearth"] >= max(50000, 0.5 * m["nginx"])), "/s")
    bench.row("its 99th percentile", {name: [one[1] for one in side] for name, side in samples.items()},
              ("5 ms", lambda m: m["hearth"] <= 5))
    etag = re.search(r"^ETag: (\S+)", said("curl", "-sSi", "-H", bearer, url + asked), re.M)[1]
    poll = f"GET {asked}&wait=60 HTTP/1.1\r\nHost: localhost\r\n{bearer}\r\nIf-None-Match: {etag}\r\n\r\n"
    bench.row("1,000 idle connections", {"hearth": [crowd(bench, url, token, "", "hearth_connections")]},
              ("20 MiB", lambda m: m["hearth"] <= 20), "MiB")
    bench.row("1,000 long polls", {"hearth": [crowd(bench, url, token, poll, "hearth_requests_waiting")]},
              ("20 MiB", lambda m: m["hearth"] <= 20), "MiB")
