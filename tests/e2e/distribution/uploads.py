# SPDX-License-Identifier: Apache-2.0
"""Uploads: all forms, resumed, cancelled, out of order, and of other bytes than was said."""
import threading

from distribution import content
from distribution.registry import MOUNTED, NO_MOUNT, Checks, expect, same
from distribution.wire import Wire

checks = Checks()
check = checks.check


def thirds(data):
    """Offsets and the parts there."""
    step = len(data) // 3 + 1
    return [(at, data[at:at + step]) for at in range(0, len(data), step)]


def single(r, data, said):
    return r.ask("POST", f"{r.name}/blobs/uploads/?digest={r.digest(said)}", data,
                 ("Content-Type", "application/octet-stream"))


def post_and_put(r, data, said):
    return r.end(r.start(), data, of=said)


def one_chunk(r, data, said):
    return r.end(r.place(expect(r.chunk(r.start(), data, 0), 202)), of=said)


def three_chunks(r, data, said):
    place = r.start()
    for at, part in thirds(data):
        answer = expect(r.chunk(place, part, at), 202)
        same("Range", answer.header("Range"), f"0-{at + len(part) - 1}")
        place = r.place(answer)
        held, place = r.status(place)
        same("what the session holds", held, at + len(part))
    return r.end(place, of=said)


def last_in_put(r, data, said):
    place = r.start()
    *first, (at, last) = thirds(data)
    for start, part in first:
        place = r.place(expect(r.chunk(place, part, start), 202))
    return r.end(place, last, ("Content-Range", f"{at}-{len(data) - 1}"), of=said)


def streamed(r, data, said):
    return r.end(r.place(expect(r.chunk(r.start(), data), 202)), of=said)


def streamed_in_pieces(r, data, said):
    """As Transfer-Encoding: chunked, so that no length is known before the end."""
    pieces = [part for _, part in thirds(data)]
    return r.end(r.place(expect(r.chunk(r.start(), pieces, chunked=True), 202)), of=said)


def put_in_pieces(r, data, said):
    pieces = [part for _, part in thirds(data)]
    return r.end(r.start(), pieces, of=said, chunked=True)


FORMS = {"a single POST": single, "POST and PUT": post_and_put, "one chunk": one_chunk, "three chunks": three_chunks,
         "the last chunk in the PUT": last_in_put, "a stream": streamed, "a stream of no known length": streamed_in_pieces,
         "a PUT of no known length": put_in_pieces}


def uploads(r, form):
    for size in (1000, 3 << 20):
        data = content.noise(size)
        r.is_pushed(form(r, data, data), data)


def uploads_wrong(r, form):
    said, data = content.noise(1000), content.noise(1000)
    for sent in (data, said + b"x", said[:-1]):
        answer = form(r, sent, said)
        if form is single and answer.status == NO_MOUNT:  # a registry may go on with a PUT here
            answer = r.end(r.place(answer), sent, of=said)
        expect(answer, 400, code="DIGEST_INVALID")
        r.lacks_blob(said)
        r.lacks_blob(sent)


for sentence, how in FORMS.items():
    check(f"an upload by {sentence} is a blob", how)(uploads)
for sentence, how in FORMS.items():
    check(f"wrong bytes by {sentence} are none", how)(uploads_wrong)


@check("the empty blob may come in many forms")
def _(r):
    for form in (single, post_and_put, streamed, streamed_in_pieces, put_in_pieces):
        r.is_pushed(form(r, b"", b""), b"")
        expect(r.blob(b"", "DELETE"), 202)


@check("a session starts with nothing in it")
def _(r):
    answer = expect(r.ask("POST", f"{r.name}/blobs/uploads/"), 202)
    same("Content-Length", answer.header("Content-Length"), "0")
    held, place = r.status(r.place(answer))
    same("what it holds", held <= 1, True)
    least = answer.header("OCI-Chunk-Min-Length")
    same("its least chunk is a number", least is None or least.isdigit(), True)
    expect(r.ask("DELETE", place), 204)


@check("chunks without a Content-Range follow each other")
def _(r):
    data, place = content.noise(3000), r.start()
    for at, part in thirds(data):
        answer = expect(r.chunk(place, part), 202)
        same("Range", answer.header("Range"), f"0-{at + len(part) - 1}")
        place = r.place(answer)
    r.is_pushed(r.end(place, of=data), data)


@check("a Content-Range with its unit is understood")
def _(r):
    data = content.noise(100)
    answer = r.ask("PATCH", r.start(), data, ("Content-Range", "bytes 0-99/100"))
    r.is_pushed(r.end(r.place(expect(answer, 202)), of=data), data)


@check("a chunk that does not fit is 416, and nothing of it is kept")
def _(r):
    data, place = content.noise(3000), r.start()
    for at, part in thirds(data):
        for wrong in {at + len(part), at + 1, max(0, at - 1), 0} - {at}:
            expect(r.chunk(place, part, wrong), 416)
            held, place = r.status(place)
            same("what the session holds", held, max(at, 1))
        place = r.place(expect(r.chunk(place, part, at), 202))
    r.is_pushed(r.end(place, of=data), data)


@check("nor of a last one in the PUT")
def _(r):
    data, place = content.noise(3000), r.start()
    (start, first), *_, (at, last) = thirds(data)
    place = r.place(expect(r.chunk(place, first, start), 202))
    for wrong in (at, 0):
        expect(r.end(place, last, ("Content-Range", f"{wrong}-{wrong + len(last) - 1}"), of=data), 416)
        held, place = r.status(place)
        same("what the session holds", held, len(first))
    rest = data[len(first):]
    r.is_pushed(r.end(place, rest, ("Content-Range", f"{len(first)}-{len(data) - 1}"), of=data), data)


@check("a PUT that begins out of order leaves the session as it was")
def _(r):
    data, place = content.noise(1000), r.start()
    expect(r.end(place, data[500:], ("Content-Range", "500-999"), of=data), 416)
    r.is_pushed(r.end(r.status(place)[1], data), data)


@check("a Content-Range of another length is refused")
def _(r):
    data, place = content.noise(100), r.start()
    for said in ("0-98", "0-100", "0-0", "0-18446744073709551615"):
        expect(r.ask("PATCH", place, data, ("Content-Range", said)), 400, 416)
        held, place = r.status(place)
        same("what the session holds", held <= 1, True)
    r.is_pushed(r.end(place, data), data)


@check("a Content-Range that is none is refused")
def _(r):
    data, place = content.noise(100), r.start()
    for said in ("99-0", "x", "0", "-", "0-", "-99", "bytes", "bytes */100", "0-99-100", "0x0-0x63", "99999999999999999999-0"):
        expect(r.ask("PATCH", place, data, ("Content-Range", said)), 400, 416)
        held, place = r.status(place)
        same("what the session holds", held <= 1, True)
    r.is_pushed(r.end(place, data), data)


@check("an upload that was cut goes on where it was")
def _(r):
    data, place = content.noise(1 << 20), r.start()
    place = r.place(expect(r.chunk(place, data[:1000], 0), 202))
    request = r.wire.head("PATCH", f"/v2/{place}", f"Content-Length: {len(data) - 1000}", "Content-Type: application/octet-stream")
    with r.wire.dial() as connection:
        connection.sendall(request + data[1000:500000])
    held, place = r.status(place)
    same("that it holds what was acknowledged", 1000 <= held <= 500000, True)
    r.is_pushed(r.end_rest(place, data), data)


@check("a cancelled upload is gone")
def _(r):
    data, place = content.noise(), r.start()
    place = r.place(expect(r.chunk(place, data, 0), 202))
    expect(r.ask("DELETE", place), 204)
    for answer in (r.ask("GET", place), r.chunk(place, data), r.end(place, of=data), r.ask("DELETE", place)):
        expect(answer, 404, code="BLOB_UPLOAD_UNKNOWN")
    r.lacks_blob(data)


@check("a finished one, too")
def _(r):
    data, place = content.noise(), r.start()
    expect(r.end(place, data), 201)
    for answer in (r.ask("GET", place), r.chunk(place, data), r.ask("DELETE", place)):
        expect(answer, 404, code="BLOB_UPLOAD_UNKNOWN")
    r.has_blob(data)


@check("a session that nobody started is not there")
def _(r):
    data = content.noise()
    for session in ("0", "00000000-0000-0000-0000-000000000000", "x" * 300, "..", "%2e%2e", "a%2fb", "%00", "a" * 64):
        place = f"{r.name}/blobs/uploads/{session}"
        for answer in (r.ask("GET", place), r.chunk(place, data), r.end(place, data), r.ask("DELETE", place)):
            expect(answer, 400, 404)


@check("a session is of its repository alone")
def _(r):
    data, place = content.noise(), r.start()
    r.push(data[:8], r.other)
    elsewhere = place.replace(r.name, r.other)
    for answer in (r.ask("GET", elsewhere), r.chunk(elsewhere, data), r.end(elsewhere, data), r.ask("DELETE", elsewhere)):
        expect(answer, 400, 404)
    r.is_pushed(r.end(place, data), data)


@check("an upload that names no digest, or none that is one, is refused")
def _(r):
    for query in ("", "?digest=", "?digest=sha256:x", "?digest=sha256", f"?digest={'0' * 64}", "?digest=%20"):
        place = r.start()
        joint = query.replace("?", "&") if "?" in place else query
        expect(r.ask("PUT", place + joint, b"x"), 400, code=("DIGEST_INVALID", "BLOB_UPLOAD_INVALID"))
    place = r.start()
    expect(r.ask("PUT", place + ("&" if "?" in place else "?") + "digest=%00", b"x"), 400)  # of an URL, or of a digest
    for digest in ("sha256:x", "x", f"{r.digest(b'x')}0"):
        expect(r.ask("POST", f"{r.name}/blobs/uploads/?digest={digest}", b"x"), 400, code="DIGEST_INVALID")


@check("the digest need not be said when a session starts")
def _(r):
    data = content.noise(3000)
    answer = expect(r.ask("POST", f"{r.name}/blobs/uploads/"), 202)
    place = r.place(expect(r.chunk(r.place(answer), data[:1000], 0), 202))
    r.is_pushed(r.end(place, data[1000:], ("Content-Range", "1000-2999"), of=data), data)


@check("its algorithm may be")
def _(r):
    data = content.noise()
    answer = r.ask("POST", f"{r.name}/blobs/uploads/?digest-algorithm={r.algorithm}")
    r.is_pushed(r.end(r.place(expect(answer, 202)), data), data)
    expect(r.ask("POST", f"{r.name}/blobs/uploads/?digest-algorithm=crc32"), 400)


@check("what is there may be pushed again")
def _(r):
    data = content.noise()
    for form in FORMS.values():
        r.is_pushed(form(r, data, data), data)


@check("two sessions may end as one blob")
def _(r):
    data = content.noise(1 << 20)
    places = [r.start() for _ in range(4)]
    answers = []

    def end(place):
        wire = Wire(f"http://{r.wire.address[0]}:{r.wire.address[1]}", r.wire.complaints, r.wire.authorization)
        answers.append(wire.ask("PUT", f"/v2/{place}{'&' if '?' in place else '?'}digest={r.digest(data)}", data))
        wire.close()

    threads = [threading.Thread(target=end, args=(place,)) for place in places]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    same("their answers", [answer.status for answer in answers], [201] * len(places))
    r.has_blob(data)


@check("a mount from another repository is a blob")
def _(r):
    data = content.noise()
    r.push(data, r.other)
    r.is_pushed(expect(r.mount(data, r.other), MOUNTED), data)
    again = content.noise()
    r.push(again, r.other)
    r.is_pushed(expect(r.mount(again, r.other, origin="registry.example"), MOUNTED), again)


@check("a mount from wherever it may be is one, too")
def _(r):
    data = content.noise()
    r.push(data, r.other)
    r.is_pushed(expect(r.mount(data), MOUNTED), data)


@check("a mount of what is not there becomes an upload")
def _(r):
    r.push(content.noise(), r.other)
    for source in (r.other, None, r.fresh(), r.name):
        data = content.noise()
        answer = expect(r.mount(data, source), NO_MOUNT)
        r.is_pushed(r.end(r.place(answer), data), data)


@check("and so does a mount that makes no sense")
def _(r):
    for query in ("mount=sha256:x", "mount={digest}&from=A", "mount=", "mount={digest}&from=..%2f..", "from=" + r.other):
        data = content.noise()
        answer = expect(r.ask("POST", f"{r.name}/blobs/uploads/?{query.format(digest=r.digest(data))}"), NO_MOUNT)
        r.is_pushed(r.end(r.place(answer), data), data)
