# SPDX-License-Identifier: Apache-2.0
"""Rows: the daemon's front door, beside nginx that answers a fixed text."""
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


def serve(bench):
    """A method that asks for a token, and what connections cost that say nothing."""
    process, url, token = start(bench)
    method = f"{url}/v1/server.info"
    idle = resident(process)
    sides = {"hearth": lambda: wrk(method, "-H", f"Authorization: Bearer {token}")}
    nginx = start_nginx(bench, said("curl", "-sS", "-H", f"Authorization: Bearer {token}", method))
    sides["nginx"] = lambda: wrk(nginx)
    samples = bench.turns(max(3, bench.args.runs // 3), **sides)
    bench.row("requests a second, a token each", {name: [one[0] for one in side] for name, side in samples.items()},
              ("50,000 and 0.5 x nginx", lambda m: m["hearth"] >= max(50000, 0.5 * m["nginx"])), "/s")
    bench.row("their 99th percentile", {name: [one[1] for one in side] for name, side in samples.items()},
              ("5 ms", lambda m: m["hearth"] <= 5))
    bench.row("memory of a daemon at rest", {"hearth": [idle]}, ("16 MiB", lambda m: m["hearth"] <= 16), "MiB")
    before = resident(process)
    address = ("127.0.0.1", int(url.rsplit(":", 1)[1]))
    connections = [socket.create_connection(address) for _ in range(1000)]
    while "hearth_connections 100" not in said("curl", "-sS", "-H", f"Authorization: Bearer {token}", f"{url}/metrics"):
        time.sleep(0.05)
    bench.row("and 1,000 idle connections more", {"hearth": [resident(process) - before]},
              ("20 MiB", lambda m: m["hearth"] <= 20), "MiB")
    for connection in connections:
        connection.close()
