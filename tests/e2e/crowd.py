#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A thousand clients of a daemon at once: crowd.py URL TOKEN KIND; exits 0 if nobody else noticed.

All connect, say what their KIND says and stay; meanwhile others read and write; then all leave, every second one
without a goodbye, and the daemon must have let go of each.
"""
import http.client
import json
import re
import resource
import socket
import struct
import sys
import time
from urllib.parse import urlsplit

CLIENTS = 1000
PATIENCE = 60  # seconds, for anything

SAID = {
    "idle": "",
    "slow": "GET /v1/server.info HTTP/1.1\r\nHost: localhost\r\nX: ",
    "poll": "GET /v1/agents.imageStatus?id=none&wait=60 HTTP/1.1\r\n{head}If-None-Match: *\r\n\r\n",
    "stream": "GET /v1/events.stream?after=0 HTTP/1.1\r\n{head}\r\n",
    "search": "GET /v1/events.stream?after=0&type=sandbox.oom HTTP/1.1\r\n{head}\r\n",
    "upload": "POST /v1/contexts.put HTTP/1.1\r\n{head}Content-Length: 100000\r\n\r\nabc",
    "body": "POST /v1/agents.sync HTTP/1.1\r\n{head}Content-Length: 100000\r\n\r\n{{",
}


class Daemon:
    def __init__(self, url, token):
        self.address = (urlsplit(url).hostname, urlsplit(url).port)
        self.token = token
        self.kept = http.client.HTTPConnection(*self.address, timeout=PATIENCE)

    def ask(self, path, body=None):
        headers = {"Authorization": f"Bearer {self.token}"}
        self.kept.request("POST" if body else "GET", path, json.dumps(body) if body else None, headers)
        answer = self.kept.getresponse()
        text = answer.read().decode()
        if answer.status != 200:
            sys.exit(f"{path}: {answer.status} {text}")
        return text

    def connections(self):
        return int(re.search(r"^hearth_connections (\d+)$", self.ask("/metrics"), re.M)[1])

    def await_connections(self, fits):
        end = time.monotonic() + PATIENCE
        while not fits(self.connections()):
            if time.monotonic() > end:
                sys.exit(f"the daemon counts {self.connections()} connections")
            time.sleep(0.05)

    def dial(self, text):
        connection = socket.create_connection(self.address, PATIENCE)
        connection.sendall(text.encode())
        return connection


def leave(connection, silently):
    if silently:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def main(url, token, kind):
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    daemon = Daemon(url, token)
    before = daemon.connections()
    text = SAID[kind].format(head=f"Host: localhost\r\nAuthorization: Bearer {token}\r\n")
    clients = [daemon.dial(text) for _ in range(CLIENTS)]
    daemon.await_connections(lambda count: count >= before + CLIENTS)
    for _ in range(50):
        daemon.ask("/v1/agents.get?id=none")
        daemon.ask("/v1/sessions.create", {"agent": "none"})
    for i, client in enumerate(clients):
        leave(client, i % 2 == 1)
    daemon.await_connections(lambda count: count <= before)


main(*sys.argv[1:])
