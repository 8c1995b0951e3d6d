# SPDX-License-Identifier: Apache-2.0
"""Rows: the daemon's front door, beside nginx that answers the same text."""
import http.client
import itertools
import json
import os
import re
import shutil
import socket
import sys
import tempfile
import time
from pathlib import Path

from ground import FIVE
from measure import free_port, run, said

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

# Each request asks for another agent, by its id, and was made before: wrk's own garbage would cost
# more with more agents, so there are as many requests, no two equal, whatever is asked for.
ANY = """local requests = {{}}
init = function()
	for id in io.lines("{ids}") do
		wrk.headers["X-Number"] = #requests
		requests[#requests + 1] = wrk.format("GET", "/v1/agents.imageStatus?id=" .. id)
	end
end
request = function() return requests[math.random(#requests)] end
"""

# Each request syncs a new agent.
SYNC = """local threads, number = 0, 0
setup = function(thread)
	threads = threads + 1
	thread:set("id", threads)
end
request = function()
	number = number + 1
	local slug = string.format("s%d-%d-%d", os.time(), id, number)
	return wrk.format("POST", "/v1/agents.sync", nil, '{"slug":"' .. slug .. '","system":"' .. slug .. '"}')
end
"""

# A bake that takes a core and says so now and then.
BUSY = "RUN i=0; while :; do i=$((i + 1)); [ $((i % 100000)) -gt 0 ] || echo $i; done"


class Served:
    """A daemon, and a connection to it."""

    def __init__(self, bench, data, *options):
        port = free_port()
        self.url, self.address = f"http://127.0.0.1:{port}", ("127.0.0.1", port)
        self.process = bench.serve(bench.hearth, "serve", "--data", data, "--listen", f"127.0.0.1:{port}",
                                   "--grace", "0", *options)
        bench.wait("hearth serve", "curl", "-fsS", f"{self.url}/readyz")
        self.token = (data / "admin.token").read_text().strip()
        self.connection = http.client.HTTPConnection(*self.address)

    @property
    def bearer(self):
        return f"Authorization: Bearer {self.token}"

    def ask(self, verb, path, body=None, **headers):
        """The answer and its text, which is not read as JSON before somebody wants that."""
        headers = {"Authorization": f"Bearer {self.token}", **headers}
        self.connection.request(verb, path, json.dumps(body) if body is not None else None, headers)
        answer = self.connection.getresponse()
        text = answer.read().decode()
        if answer.status >= 400:
            sys.exit(f"bench: {verb} {path}: {text}")
        return answer, text

    def status(self, agent, **headers):
        return self.ask("GET", f"/v1/agents.imageStatus?id={agent}&wait=30", **headers)

    def await_state(self, agent, wanted):
        """Ask until the status is such a one, being told of each change."""
        answer, text = self.status(agent)
        while not wanted(json.loads(text)):
            said_last = answer.headers["ETag"]
            answer, changed = self.status(agent, **{"If-None-Match": said_last})
            text = changed or text

    def wrk(self, path="", script=None, seconds=3):
        return wrk(self.url + path, "-H", self.bearer, *(["-s", script] if script else []), seconds=seconds)

    def resident(self):
        """MiB that are resident, without the pages of data.mdb."""
        total, counted = 0, True
        for line in Path(f"/proc/{self.process.pid}/smaps").read_text(encoding="ascii").splitlines():
            if line[0] in "0123456789abcdef":
                counted = not line.endswith("data.mdb")
            elif counted and line.startswith("Rss:"):
                total += int(line.split()[1])
        return total / 1024

    def gauge(self, name):
        return int(re.search(rf"^{name} (\d+)$", self.ask("GET", "/metrics")[1], re.M)[1])

    def crowd(self, text, gauge):
        """What 1,000 connections cost that say this, once the gauge has counted them."""
        before = self.resident()
        connections = [socket.create_connection(self.address) for _ in range(1000)]
        for connection in connections:
            connection.sendall(text.encode())
        while self.gauge(gauge) < 1000:
            time.sleep(0.05)
        cost = self.resident() - before
        for connection in connections:
            connection.close()
        return cost


def wrk(url, *options, seconds=3):
    """Requests a second over 16 kept connections, and the 99th percentile in ms."""
    text = said("wrk", "-t2", "-c16", f"-d{seconds}s", "--latency", *options, url)
    if "Non-2xx" in text:
        sys.exit(f"bench: {url} refuses:\n{text}")
    p99, unit = re.search(r"99%\s+([\d.]+)(us|ms|s)", text).groups()
    return float(re.search(r"Requests/sec:\s+([\d.]+)", text)[1]), float(p99) * {"us": 0.001, "ms": 1, "s": 1000}[unit]


def start_nginx(bench, text):
    port = free_port()
    config = bench.work / "nginx.conf"
    config.write_text(NGINX.format(cores=os.cpu_count(), work=bench.work, port=port, text=text.replace('"', '\\"')))
    bench.serve("nginx", "-c", config)
    bench.wait("nginx", "curl", "-fsS", f"http://127.0.0.1:{port}/")
    return f"http://127.0.0.1:{port}/"


def filled(bench, count):
    """A store of so many agents, written in memory, where a commit costs least; and a file of their ids."""
    work = bench.fresh("agents")
    with tempfile.TemporaryDirectory(dir="/dev/shm") as memory:
        (work / "ids").write_text(said(bench.build / "tests/bench/bench.many_agents", f"{memory}/data", count))
        shutil.copytree(f"{memory}/data", work / "data")
    return work / "data", work / "ids"


def rates(samples):
    return {name: [one[0] for one in side] for name, side in samples.items()}


def percentiles(samples):
    return {name: [one[1] for one in side] for name, side in samples.items()}


def serve(bench):
    """What a poller asks, with a token, and what connections cost that wait."""
    daemon = Served(bench, filled(bench, 1000)[0])
    asked = "/v1/agents.imageStatus?id=agent-999"
    answer, text = daemon.ask("GET", asked)
    idle = [daemon.resident()]
    nginx = start_nginx(bench, text)
    samples = bench.turns(max(3, bench.args.runs // 3), hearth=lambda: daemon.wrk(asked), nginx=lambda: wrk(nginx))
    bench.row("agents.imageStatus", rates(samples),
              ("50,000 and 0.5 x nginx", lambda m: m["hearth"] >= max(50000, 0.5 * m["nginx"])), "/s")
    bench.row("its 99th percentile", percentiles(samples), ("5 ms", lambda m: m["hearth"] <= 5))
    bench.row("memory with 1,000 agents", {"hearth": idle, "after all that": [daemon.resident()]},
              ("16 MiB", lambda m: max(m.values()) <= 16), "MiB")
    bench.row("1,000 idle connections", {"hearth": [daemon.crowd("", "hearth_connections")]},
              ("20 MiB", lambda m: m["hearth"] <= 20), "MiB")
    poll = (f"GET {asked}&wait=60 HTTP/1.1\r\nHost: localhost\r\n{daemon.bearer}\r\n"
            f"If-None-Match: {answer.headers['ETag']}\r\n\r\n")
    bench.row("1,000 long polls", {"hearth": [daemon.crowd(poll, "hearth_requests_waiting")]},
              ("20 MiB", lambda m: m["hearth"] <= 20), "MiB")
    script = bench.work / "sync.lua"
    script.write_text(SYNC)
    bench.row("agents.sync by 16 clients, durable",
              rates(bench.turns(max(3, bench.args.runs // 3), hearth=lambda: daemon.wrk(script=script))),
              ("(no aim)", lambda m: True), "/s")


def agents(bench):
    """One of 100,000 agents is asked for, and any of them, beside one and any of 1,000."""
    one, each = {}, {}
    for name, count in (("hearth", 100000), ("1,000 agents", 1000)):
        data, ids = filled(bench, count)
        ids.write_text(ids.read_text() * (100000 // count))
        script = data.parent / "any.lua"
        script.write_text(ANY.format(ids=ids))
        daemon, asked = Served(bench, data), f"/v1/agents.imageStatus?id=agent-{count // 2}"
        one[name] = lambda daemon=daemon, asked=asked: daemon.wrk(asked)
        each[name] = lambda daemon=daemon, script=script: daemon.wrk(script=script)
    turns = max(3, bench.args.runs // 3)
    bench.row("imageStatus of one of 100,000 agents", rates(bench.turns(turns, **one)),
              ("0.9 x one of 1,000", lambda m: m["hearth"] >= 0.9 * m["1,000 agents"]), "/s")
    bench.row("of any of them, which no cache holds", rates(bench.turns(turns, **each)),
              ("0.9 x any of 1,000", lambda m: m["hearth"] >= 0.9 * m["1,000 agents"]), "/s")


def agent(slug, steps):
    return {"slug": slug, "model": "m", "system": slug, "sandbox": {"image": {"base": "bench:1", "steps": steps}}}


def behind(bench):
    """A bake goes on in one core while pollers ask, and what is cached is ready at once."""
    data = bench.fresh("behind") / "data"
    run(bench.hearth, "import", bench.base, "--tag", "bench:1", "--data", data)
    daemon, number = Served(bench, data), itertools.count()

    def ready():
        slug = f"agent-{next(number)}"
        start = time.perf_counter()
        daemon.ask("POST", "/v1/agents.sync", agent(slug, FIVE))
        daemon.await_state(slug, lambda status: status["status"] == "ready")
        return (time.perf_counter() - start) * 1000

    ready()
    bench.row("sync of a cached image, until it is ready", bench.turns(bench.args.runs, hearth=ready),
              ("20 ms", lambda m: m["hearth"] <= 20))
    nginx = start_nginx(bench, daemon.status("agent-0")[1])
    daemon.ask("POST", "/v1/agents.sync", agent("busy", [BUSY]))
    daemon.await_state("busy", lambda status: status.get("phase") == "running")
    asked = "/v1/agents.imageStatus?id=agent-0"
    samples = bench.turns(max(3, bench.args.runs // 3), hearth=lambda: daemon.wrk(asked), nginx=lambda: wrk(nginx))
    bench.row("agents.imageStatus while a bake runs", rates(samples), ("(no aim)", lambda m: True), "/s")
    bench.row("its 99th percentile", percentiles(samples), ("5 ms", lambda m: m["hearth"] <= 5))
