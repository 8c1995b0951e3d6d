#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Serve the bare repositories of a directory over smart HTTP on a free loopback port.

	serve-git.py DIRECTORY PORT-FILE [CERTIFICATE KEY]

With a certificate it is HTTPS. The port is written to PORT-FILE once connections are accepted. Read-only.
"""
import os
import ssl
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

BODY_MAX = 16 << 20  # what a fetch asks for; far above any clone of ours


class Handler(BaseHTTPRequestHandler):
    """Hands each request to git's own CGI program."""

    def do_GET(self):
        self.answer(b"")

    def do_POST(self):
        size = int(self.headers.get("Content-Length", "0"))
        if size > BODY_MAX or "chunked" in self.headers.get("Transfer-Encoding", ""):
            self.send_error(413)
            return
        self.answer(self.rfile.read(size))

    def answer(self, body):
        path, _, query = self.path.partition("?")
        environ = {
            "PATH": os.environ["PATH"], "GIT_PROJECT_ROOT": sys.argv[1], "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*",
            "REQUEST_METHOD": self.command, "PATH_INFO": path, "QUERY_STRING": query,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""), "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""), "REMOTE_ADDR": self.client_address[0],
        }
        done = subprocess.run(["git", "http-backend"], input=body, env=environ, capture_output=True, check=False)
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        fields = [line.split(": ", 1) for line in head.decode().split("\r\n") if ": " in line]
        status = next((int(value.split()[0]) for name, value in fields if name == "Status"), 200)
        self.send_response(status)
        for name, value in fields:
            if name != "Status":
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format, *args):
        """Say nothing: the one who clones sees what happened."""


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
if len(sys.argv) > 3:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[3], sys.argv[4])
    server.socket = context.wrap_socket(server.socket, server_side=True)
with open(sys.argv[2] + ".new", "w", encoding="ascii") as out:
    print(server.server_port, file=out)
os.rename(sys.argv[2] + ".new", sys.argv[2])
server.serve_forever()
