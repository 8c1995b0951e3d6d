# SPDX-License-Identifier: Apache-2.0
"""HTTP as it is sent and received: every header and byte, and what no answer of a registry may ever be."""
import http.client
import json
import re
import socket
import sys
from urllib.parse import urlsplit

PATIENCE = 120  # seconds, for anything
CODE = re.compile(r"[A-Z]+(_[A-Z]+)*")


class Wrong(Exception):
    """What a registry did, in words."""


class Answer:
    def __init__(self, asked, status, headers, body):
        self.asked, self.status, self.headers, self.body = asked, status, headers, body

    def header(self, name):
        """Its value, or None; what comes twice is wrong."""
        values = [value for key, value in self.headers if key.lower() == name.lower()]
        if len(values) > 1:
            raise Wrong(f"{self.asked}: {name} {len(values)} times")
        return values[0] if values else None

    def json(self):
        try:
            return json.loads(self.body)
        except ValueError as bad:
            raise Wrong(f"{self.asked}: no JSON: {self.body[:200]!r}") from bad

    @property
    def codes(self):
        """Of the error body, or none where it is another one."""
        try:
            return [error["code"] for error in json.loads(self.body)["errors"]]
        except (ValueError, KeyError, TypeError):
            return []

    def __str__(self):
        return f"{self.asked}: {self.status} {self.body[:200]!r}"


ENCODED = "no answer is encoded"
PLACE = "every Location is a path of this registry"
ERRORS = "every refusal has the error body"
BROKEN = "no request is answered by a status of 500 and above"
SILENT = "an answer to HEAD has no body"
RULES = [ENCODED, PLACE, ERRORS, BROKEN, SILENT]


class Complaints:
    """What was seen of what no answer may be, by rule; judged when all else is done."""

    def __init__(self):
        self.seen = {rule: [] for rule in RULES}

    def look(self, method, answer):
        if answer.header("Content-Encoding"):
            self.seen[ENCODED].append(str(answer))
        place = answer.header("Location")
        if place is not None and not place.startswith("/v2/"):
            self.seen[PLACE].append(f"{answer.asked}: {place}")
        if answer.status >= 500:
            self.seen[BROKEN].append(str(answer))
        if method == "HEAD":
            if answer.body:
                self.seen[SILENT].append(str(answer))
        elif answer.status >= 400:
            kind = (answer.header("Content-Type") or "").split(";")[0]
            if kind != "application/json" or not answer.codes or not all(map(CODE.fullmatch, answer.codes)):
                self.seen[ERRORS].append(str(answer))


class Wire:
    """A connection that is opened again when the other side has closed it."""

    def __init__(self, url, complaints, authorization=None):
        self.address = (urlsplit(url).hostname, urlsplit(url).port or 80)
        self.complaints, self.authorization = complaints, authorization
        self.kept = None

    def close(self):
        if self.kept:
            self.kept.close()
        self.kept = None

    def ask(self, method, path, body=b"", headers=(), *, chunked=False, authorization=None):
        """The answer; headers are pairs, and sent as they are. An authorization of "" is none."""
        headers = [*headers]
        given = self.authorization if authorization is None else authorization
        if given:
            headers.append(("Authorization", given))
        for last in (False, True):
            try:
                return self.ask_once(method, path, body, headers, chunked)
            except ConnectionRefusedError:
                sys.exit(f"{method} {path[:200]}: nobody listens any more")
            except (http.client.RemoteDisconnected, ConnectionError) as gone:
                fresh = self.kept is None
                self.close()
                if last or fresh:
                    raise Wrong(f"{method} {path[:200]}: the connection broke: {gone!r}") from gone
            except (http.client.HTTPException, OSError) as bad:
                self.close()
                raise Wrong(f"{method} {path[:200]}: {bad!r}") from bad

    def ask_once(self, method, path, body, headers, chunked):
        self.kept = self.kept or http.client.HTTPConnection(*self.address, timeout=PATIENCE)
        self.kept.putrequest(method, path, skip_accept_encoding=True)
        for name, value in headers:
            self.kept.putheader(name, value)
        if chunked:
            self.kept.putheader("Transfer-Encoding", "chunked")
        elif body or method in ("POST", "PUT", "PATCH"):
            self.kept.putheader("Content-Length", str(len(body)))
        try:
            self.kept.endheaders(body if chunked else body or None, encode_chunked=chunked)
        except (BrokenPipeError, ConnectionResetError):
            pass  # a refusal that came before the body was sent is still there to be read
        response = self.kept.getresponse()
        text = response.read()
        answer = Answer(f"{method} {path[:200]}", response.status, response.getheaders(), text)
        if response.will_close:
            self.close()
        self.complaints.look(method, answer)
        return answer

    def dial(self):
        """A socket, for what http.client does not send."""
        return socket.create_connection(self.address, PATIENCE)

    def raw(self, *requests):
        """What comes back until the other side closes, for whole requests as bytes."""
        found = b""
        with self.dial() as connection:
            try:
                for request in requests:
                    connection.sendall(request)
                connection.shutdown(socket.SHUT_WR)
            except OSError:
                pass  # what was said before that may still be read
            try:
                while more := connection.recv(1 << 16):
                    found += more
            except ConnectionError:
                pass
            except TimeoutError as late:
                raise Wrong(f"{requests[0][:60]!r}: no answer, and no end, for {PATIENCE} s") from late
        return found

    def head(self, method, path, *lines):
        """A request without a body, as bytes."""
        known = [f"Authorization: {self.authorization}"] if self.authorization else []
        text = [f"{method} {path} HTTP/1.1", f"Host: {self.address[0]}:{self.address[1]}", *known, *lines]
        return "\r\n".join([*text, "", ""]).encode("latin-1")
