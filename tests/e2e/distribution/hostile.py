# SPDX-License-Identifier: Apache-2.0
"""What no client should send, and what some do: connections, heads, paths and verbs."""
import re

from distribution import content
from distribution.registry import Checks, expect, same
from distribution.wire import Wrong

checks = Checks()
check = checks.check

STATUS = re.compile(rb"HTTP/1\.[01] (\d{3}) ")


def statuses(text):
    """Of each answer in what came over a connection."""
    found, rest = [], text
    while rest:
        head, _, rest = rest.partition(b"\r\n\r\n")
        seen = STATUS.match(head)
        if not seen:
            raise Wrong(f"no answer begins with {head[:100]!r}")
        length = re.search(rb"\r\nContent-Length: (\d+)", head, re.I)
        rest = rest[int(length[1]) if length else 0:]
        found.append(int(seen[1]))
    return found


def status(text):
    """Of the first answer, or 400 where the connection was closed instead."""
    seen = STATUS.match(text)
    if text and not seen:
        raise Wrong(f"no answer begins with {text[:100]!r}")
    return int(seen[1]) if seen else 400


def serves(r):
    """After all that, it does what it did before."""
    data = content.noise()
    r.push(data)
    r.has_blob(data)


@check("a connection is kept for many requests")
def _(r):
    data = content.noise()
    r.push(data)
    image = r.image("latest")
    r.ask("GET", "")
    socket_before = r.wire.kept.sock
    for n in range(100):
        path = (f"{r.name}/manifests/latest", f"{r.name}/manifests/{image['digest']}", f"{r.name}/blobs/{r.digest(data)}",
                f"{r.name}/tags/list", f"{r.name}/manifests/none")[n % 5]
        expect(r.ask("GET", path), 404 if n % 5 == 4 else 200)
        expect(r.ask("HEAD", path), 404 if n % 5 == 4 else 200)
    same("that the connection is the same", r.wire.kept and r.wire.kept.sock, socket_before)


@check("requests may be sent before the answers have come")
def _(r):
    data = content.noise(3000)
    r.push(data)
    r.image("latest")
    paths = [f"/v2/{r.name}/blobs/{r.digest(data)}", f"/v2/{r.name}/manifests/latest", f"/v2/{r.name}/manifests/none", "/v2/"] * 8
    requests = [r.wire.head("GET", path) for path in paths[:-1]] + [r.wire.head("GET", paths[-1], "Connection: close")]
    same("their answers, in order", statuses(r.wire.raw(b"".join(requests))), [200, 200, 404, 200] * 8)


@check("old clients are answered, and those that close")
def _(r):
    request = r.wire.head("GET", "/v2/").replace(b"HTTP/1.1", b"HTTP/1.0")
    same("HTTP/1.0", statuses(r.wire.raw(request)), [200])
    same("Connection: close", statuses(r.wire.raw(r.wire.head("GET", "/v2/", "Connection: close") * 2)), [200])


@check("a body is waited for where that is asked")
def _(r):
    data = content.noise()
    path = f"/v2/{r.name}/blobs/uploads/?digest={r.digest(data)}"
    with r.wire.dial() as connection:
        connection.sendall(r.wire.head("POST", path, f"Content-Length: {len(data)}", "Expect: 100-continue", "Connection: close"))
        first = connection.recv(1 << 16)
        if not first.startswith(b"HTTP/1.1 100"):
            raise Wrong(f"it says {first[:100]!r} to Expect: 100-continue")
        connection.sendall(data)
        rest = first.partition(b"\r\n\r\n")[2] + b"".join(iter(lambda: connection.recv(1 << 16), b""))
    same("the answer", statuses(rest), [201])
    r.has_blob(data)


@check("paths that lead elsewhere lead nowhere")
def _(r):
    image = r.image("latest")
    r.push(b"{}")
    for path in (f"{r.name}/manifests/../manifests/latest", f"{r.name}/../{r.name}/manifests/latest", f"./{r.name}/manifests/latest",
                 f"/{r.name}/manifests/latest", f"{r.name}//manifests/latest", f"{r.name}/manifests//latest", f"{r.name}/manifests/",
                 f"{r.name}/manifests", f"{r.name}/blobs/", f"{r.name}/blobs", f"{r.name}", "manifests/latest", "blobs/uploads/",
                 "/manifests/latest",
                 f"{r.name}/manifests/latest/", f"{r.name}/manifests/latest/x", f"{r.name}/tags", f"{r.name}/tags/", f"{r.name}/tags/list/x",
                 f"{r.name}/referrers/", "..%2f..%2fetc%2fpasswd", "../v1/server.info", f"{r.name}/manifests/%2e%2e",
                 f"{r.name}/blobs/../../../../etc/passwd", f"{r.name}/blobs/%2e%2e%2fpasswd", "%", "%zz", "%00", "a" * 3000,
                 "/".join("a" * 1500), f"{r.name}/unknown/{image['digest']}"):
        for method in ("GET", "HEAD", "DELETE", "PUT", "POST", "PATCH"):
            answer = expect(r.ask(method, path), 400, 401, 404, 405, 414)
            if answer.status == 405 and not answer.header("Allow"):
                raise Wrong(f"{answer.asked}: 405 without Allow")
    expect(r.get("latest"), 200)


@check("verbs that mean nothing there are refused")
def _(r):
    image = r.image("latest")
    blob = r.push(content.noise())
    for path, verbs in ((f"{r.name}/manifests/latest", "POST PATCH"), (f"{r.name}/blobs/{blob['digest']}", "POST PUT PATCH"),
                        (f"{r.name}/tags/list", "POST PUT PATCH DELETE"), ("_catalog", "POST PUT PATCH DELETE"),
                        (f"{r.name}/referrers/{image['digest']}", "POST PUT PATCH DELETE"), ("", "POST PUT PATCH DELETE"),
                        (f"{r.name}/blobs/uploads/", "PUT PATCH DELETE")):
        for verb in verbs.split():
            expect(r.ask(verb, path), 404, 405, code=("UNSUPPORTED", "NAME_UNKNOWN", "BLOB_UPLOAD_UNKNOWN"))
    for verb in (b"BREW", b"TRACE", b"CONNECT", b"get", b"G\x00T"):
        request = r.wire.head("GET", f"/v2/{r.name}/manifests/latest", "Connection: close").replace(b"GET", verb, 1)
        seen = status(r.wire.raw(request))
        if seen not in (400, 404, 405, 501):
            raise Wrong(f"{verb} is answered by {seen}")
    serves(r)


@check("a head that is too long is refused")
def _(r):
    for request in (r.wire.head("GET", f"/v2/{'a' * 100000}/manifests/x", "Connection: close"),
                    r.wire.head("GET", "/v2/", f"X: {'a' * 200000}", "Connection: close"),
                    r.wire.head("GET", "/v2/", *[f"X-{n}: a" for n in range(20000)], "Connection: close"),
                    r.wire.head("GET", f"/v2/{r.name}/tags/list?last={'a' * 100000}", "Connection: close")):
        seen = status(r.wire.raw(request))
        if seen not in (400, 404, 413, 414, 431):
            raise Wrong(f"it is answered by {seen}")
    serves(r)


@check("a head that is none is refused")
def _(r):
    good = r.wire.head("POST", f"/v2/{r.name}/blobs/uploads/", "Connection: close")
    ends = b"Connection: close\r\n"
    for line in (b"Content-Length: -1", b"Content-Length: x", b"Content-Length: 1\r\nContent-Length: 2",
                 b"Content-Length: 99999999999999999999999", b"Transfer-Encoding: gzip", b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
                 b"Transfer-Encoding: chunked\r\n\r\n-1\r\n", b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n", b"no header",
                 b"X: \x00"):
        seen = status(r.wire.raw(good.replace(ends, ends + line + b"\r\n", 1)))
        if seen != 501 and not 200 <= seen < 500:
            raise Wrong(f"{line[:40]} is answered by {seen}")
    for text in (b"", b"\r\n\r\n", b"GET\r\n\r\n", b"GET /v2/\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00", b"\x00" * 5000):
        r.wire.raw(text)
    serves(r)


@check("a client that leaves disturbs nobody")
def _(r):
    data = content.noise(4 << 20)
    r.push(data)
    place = r.start()
    for request in (r.wire.head("GET", f"/v2/{r.name}/blobs/{r.digest(data)}"),
                    r.wire.head("PATCH", f"/v2/{place}", "Content-Length: 1000000") + b"x" * 1000,
                    r.wire.head("PUT", f"/v2/{r.name}/manifests/left", "Content-Length: 1000") + b"{",
                    r.wire.head("GET", f"/v2/{r.name}/manifests/left")[:-2]):
        for _ in range(5):
            with r.wire.dial() as connection:
                connection.sendall(request)
    expect(r.ask("GET", place), 204)
    expect(r.get("left"), 404)
    serves(r)


@check("a refusal of a body does not shift what follows")
def _(r):
    body = b"GET /v2/ HTTP/1.1\r\nHost: x\r\n\r\n" * 40
    bad = r.wire.head("PUT", f"/v2/{r.name}/manifests/-bad", f"Content-Length: {len(body)}")
    last = r.wire.head("GET", "/v2/", "Connection: close")
    found = statuses(r.wire.raw(bad + body, last)) or [400]
    if found not in ([400], [404], [400, 200], [404, 200]):
        raise Wrong(f"the answers are {found}")
    serves(r)
