# SPDX-License-Identifier: Apache-2.0
"""Manifests: kept byte for byte, whatever is in them, and refused where they are none."""
import base64
import json

from distribution import content
from distribution.registry import Checks, Registry, expect, same
from distribution.wire import Wrong

checks = Checks()
check = checks.check

MOST = 4 << 20
INVALID = ("MANIFEST_INVALID", "UNSUPPORTED", "DIGEST_INVALID", "SIZE_INVALID", "MANIFEST_UNVERIFIED")
UNKNOWN = ("MANIFEST_BLOB_UNKNOWN", "BLOB_UNKNOWN")


@check("an image is found by tag and digest, byte for byte")
def _(r):
    r.image("latest")
    r.image()


@check("one of Docker is, too")
def _(r):
    image = r.image("image", media=content.DOCKER_IMAGE)
    r.store(content.index_of([image], content.DOCKER_LIST), "list", content.DOCKER_LIST)


@check("a manifest's blanks and the order of its keys are kept")
def _(r):
    config, layers = r.parts()
    document = content.image_of(config, layers, annotations={"é": "\u2028 \\ / \" \U0001f525"})
    for text in (json.dumps(document, indent=3), json.dumps(document, indent="\t", sort_keys=True, ensure_ascii=False),
                 "\n \r\n" + json.dumps(dict(reversed(document.items())), separators=(" ,", ":  ")) + "\n\n"):
        r.store(text.encode())


@check("a put says where, and by which digest")
def _(r):
    config, layers = r.parts()
    text = content.text_of(content.image_of(config, layers))
    answer = expect(r.put(text), 201)
    same("Docker-Content-Digest", answer.header("Docker-Content-Digest"), r.digest(text))
    same("the manifest at its Location", expect(r.ask("GET", r.place(answer)), 200).body, text)
    same("the manifest at a tag's Location", expect(r.ask("GET", r.place(expect(r.put(text, "x"), 201))), 200).body, text)


@check("a tag moves, and what it named stays")
def _(r):
    old, new = r.image("moving"), r.image("moving")
    for reference, wanted in (("moving", new), (new["digest"], new), (old["digest"], old)):
        same(f"the digest of {reference}", expect(r.get(reference), 200).header("Docker-Content-Digest"), wanted["digest"])


@check("a manifest of 3.9 MB is taken")
def _(r):
    r.image("large", annotations={f"large-{n}": "A" * 10000 for n in range(390)})


@check("one above the limit is 413")
def _(r):
    config, layers = r.parts()
    bare = len(content.text_of(content.image_of(config, layers, annotations={"large": ""})))
    for chunked in (False, True):
        for size, status in ((MOST, 201), (MOST + 1, 413)):
            text = content.text_of(content.image_of(config, layers, annotations={"large": "A" * (size - bare)}))
            expect(r.put(text, f"size-{size}", chunked=chunked), status)
    for size in (MOST + (1 << 20), 20 << 20):
        text = content.text_of(content.image_of(config, layers, annotations={"large": "A" * size}))
        expect(r.put(text, "large"), 413)
        r.wire.close()
    r.lacks_manifest("large")


@check("fields that nobody knows are kept")
def _(r):
    config, layers = r.parts()
    known = {**config, "org.example.more": [1, {"x": None}]}
    image = r.store(content.image_of(known, layers, **{"org.example.custom": {"a": [1.5e3, True]}}), "custom")
    r.store(content.index_of([image], **{"org.example.custom": "x"}), "index", content.INDEX)


@check("a descriptor may hold its data")
def _(r):
    config, layers = r.parts(2)
    data = content.noise(20)
    r.push(data)
    layers.append({**r.descriptor(data), "data": base64.b64encode(data).decode()})
    r.store(content.image_of(config, layers), "data")


@check("an index leads to images")
def _(r):
    images = [r.image() for _ in range(2)]
    for image, machine in zip(images, ("amd64", "arm64")):
        image["platform"] = {"os": "linux", "architecture": machine}
    r.store(content.index_of(images), "index", content.INDEX)


@check("and to other indexes")
def _(r):
    inner = [r.store(content.index_of([r.image()]), None, content.INDEX) for _ in range(2)]
    r.store(content.index_of(inner), "nested", content.INDEX)


@check("an empty index is one")
def _(r):
    r.store(content.index_of([]), "empty", content.INDEX)


@check("an image may have no layers")
def _(r):
    r.image("bare", layers=0)


@check("many layers, and the same one twice, are taken")
def _(r):
    config, layers = r.parts(3)
    r.store(content.image_of(config, layers * 40), "many")


@check("layers that may not be distributed may be absent")
def _(r):
    config, layers = r.parts()
    for media in (content.FOREIGN, content.DOCKER_FOREIGN, content.OCI + "image.layer.nondistributable.v1.tar+zstd"):
        foreign = content.absent(r.algorithm, media, urls=["https://store.example/layer"])
        r.store(content.image_of(config, [foreign, *layers]), "foreign")


@check("others may not")
def _(r):
    config, layers = r.parts()
    for document in (content.image_of(config, [*layers, content.absent(r.algorithm)]),
                     content.image_of(content.absent(r.algorithm, content.CONFIG), layers)):
        text = content.text_of(document)
        expect(r.put(text), 400, 404, code=UNKNOWN)
        expect(r.put(text, "absent"), 400, 404, code=UNKNOWN)
        r.lacks_manifest(r.digest(text))
    r.lacks_manifest("absent")


@check("nor may those that only another repository has")
def _(r):
    config, layers = r.parts(name=r.other)
    r.push(content.noise())
    text = content.text_of(content.image_of(config, layers))
    expect(r.put(text, "stolen"), 400, 404, code=UNKNOWN)
    r.lacks_manifest("stolen")


@check("what a manifest names may have digests of either algorithm")
def _(r):
    other = Registry(r.wire, "sha512" if r.algorithm == "sha256" else "sha256")
    config, layers = other.parts(name=r.name)
    r.store(content.image_of(config, [*layers, r.push(content.noise())]), "mixed")
    r.store(content.index_of([other.image(name=r.name), r.image()]), "index", content.INDEX)


@check("artifacts are manifests")
def _(r):
    empty, blob = r.empty(), r.push(content.noise())
    for config, layers in ((empty, [{**blob, "mediaType": "application/octet-stream"}]), (empty, [empty]),
                           ({**blob, "mediaType": "application/vnd.example.config.v1+json"}, [])):
        r.store(content.image_of(config, layers, artifactType="application/vnd.example.v1"), "artifact")
    image = r.image()
    r.store(content.index_of([image], artifactType="application/vnd.example.v1"), "index", content.INDEX)


@check("a manifest without a mediaType is what its Content-Type says")
def _(r):
    config, layers = r.parts()
    document = content.image_of(config, layers)
    del document["mediaType"]
    image = r.store(document, "image")
    listing = content.index_of([image])
    del listing["mediaType"]
    r.store(listing, "index", content.INDEX)


@check("parameters of a Content-Type are not given back")
def _(r):
    config, layers = r.parts()
    text = content.text_of(content.image_of(config, layers))
    expect(r.put(text, "charset", f"{content.IMAGE}; charset=utf-8"), 201)
    same("Content-Type", r.get("charset").header("Content-Type"), content.IMAGE)


@check("a manifest of another type than its Content-Type is not stored")
def _(r):
    config, layers = r.parts()
    text = content.text_of(content.image_of(config, layers))
    for media in (content.INDEX, content.DOCKER_IMAGE, "text/html"):
        expect(r.put(text, "other", media), 400, 415, code=INVALID)
    r.lacks_manifest("other")


NO_MANIFESTS = [b"", b"{", b"[]", b"null", b"1", b'"x"', b"{}x", b"\xff\xfe{}", b"\x00", b"[" * 100000, b'{"a":' * 100000,
                b'{"schemaVersion":1,"mediaType":"%s","config":null,"layers":[]}' % content.IMAGE.encode(),
                b'{"schemaVersion":2,"mediaType":"%s","config":"x","layers":{}}' % content.IMAGE.encode(),
                b'{"schemaVersion":2,"mediaType":"%s","layers":[{"digest":"x","size":-1}]}' % content.IMAGE.encode(),
                b'{"schemaVersion":2,"mediaType":"%s","manifests":[1]}' % content.INDEX.encode(),
                b'{"schemaVersion":2,"mediaType":"%s","manifests":[{"digest":"sha256:..","size":1e400}]}' % content.INDEX.encode()]


@check("what is no manifest is refused")
def _(r):
    r.push(content.noise())
    for text in NO_MANIFESTS:
        media = content.INDEX if b"manifests" in text else content.IMAGE
        expect(r.put(text, "bad", media), 400, code=INVALID)
        expect(r.put(text, None, media), 400, code=INVALID)
    r.lacks_manifest("bad")


@check("Docker's first manifests are refused")
def _(r):
    text = content.text_of({"schemaVersion": 1, "name": r.name, "tag": "old", "architecture": "amd64", "fsLayers": [],
                            "history": [], "signatures": []})
    for media in ("manifest.v1+json", "manifest.v1+prettyjws"):
        expect(r.put(text, "old", content.DOCKER + "distribution." + media), 400, 415, code=INVALID)


@check("a digest that is not the manifest's is refused")
def _(r):
    config, layers = r.parts()
    text = content.text_of(content.image_of(config, layers))
    expect(r.put(text + b"\n", r.digest(text)), 400, code="DIGEST_INVALID")
    r.lacks_manifest(r.digest(text))


@check("one that is put by its digest takes tags along")
def _(r):
    config, layers = r.parts()
    text = content.text_of(content.image_of(config, layers))
    tags = [f"tag-{n}" for n in range(12)]
    answer = expect(r.put(text, f"{r.digest(text)}?{'&'.join(f'tag={tag}' for tag in tags)}"), 201)
    same("OCI-Tag", sorted(tag.strip() for tag in (answer.header("OCI-Tag") or "").split(",")), sorted(tags))
    for tag in tags:
        r.has_manifest(text, content.IMAGE, tag)


@check("but not one that is none")
def _(r):
    config, layers = r.parts()
    text = content.text_of(content.image_of(config, layers))
    for tag in ("-a", "a%2fb", "x" * 129, ""):
        expect(r.put(text, f"{r.digest(text)}?tag=good&tag={tag}"), 400)
    r.lacks_manifest("good")


@check("nor more of them than a request may have")
def _(r):
    config, layers = r.parts()
    text = content.text_of(content.image_of(config, layers))
    expect(r.put(text, f"{r.digest(text)}?{'&'.join(f'tag=tag-{n}' for n in range(100))}"), 413, 414, 431)
    r.lacks_manifest("tag-0")


@check("the stored type is served, whatever is accepted")
def _(r):
    r.image("image")
    wanted = r.get("image").body
    kinds = ["", "*/*", "image/png", content.DOCKER_IMAGE, f"{content.IMAGE};q=0", ", ".join(content.SIX), "x" * 2000]
    for accepted in kinds:
        for method in ("GET", "HEAD"):
            answer = expect(r.get("image", method, ("Accept", accepted)), 200)
            same("Content-Type", answer.header("Content-Type"), content.IMAGE)
            same("the manifest", answer.body, wanted if method == "GET" else b"")
    answer = expect(r.get("image", "GET", *(("Accept", kind) for kind in content.SIX)), 200)
    same("the manifest for six lines of Accept", answer.body, wanted)


@check("a manifest is not encoded, either")
def _(r):
    r.image("plain", annotations={"large": "A" * 100000})
    wanted = r.get("plain").body
    same("the manifest", expect(r.get("plain", "GET", ("Accept-Encoding", "gzip, zstd, br"), ("TE", "gzip")), 200).body, wanted)


@check("an unknown tag, digest and repository are 404")
def _(r):
    r.image("known")
    r.lacks_manifest("unknown")
    r.lacks_manifest(r.digest(content.noise()))
    expect(r.get("latest", name=r.fresh()), 404, code=("NAME_UNKNOWN", "MANIFEST_UNKNOWN"))


@check("a manifest is of its repository alone")
def _(r):
    image = r.image("latest")
    r.image("latest", name=r.other)
    expect(r.get(image["digest"], name=r.other), 404, code="MANIFEST_UNKNOWN")


@check("a blob is no manifest")
def _(r):
    data = content.noise()
    r.push(data)
    r.lacks_manifest(r.digest(data))


@check("a manifest that is known already is not sent again")
def _(r):
    r.image("latest")
    tag = r.get("latest").header("ETag")
    if tag:
        expect(r.get("latest", "GET", ("If-None-Match", tag)), 304)
        r.image("latest")
        expect(r.get("latest", "GET", ("If-None-Match", tag)), 200)


@check("a deleted tag is gone at once, and its manifest stays")
def _(r):
    image = r.image("going")
    r.image("staying")
    expect(r.ask("DELETE", f"{r.name}/manifests/going"), 202)
    r.lacks_manifest("going")
    same("the tags", r.tags()[0], ["staying"])
    expect(r.get(image["digest"]), 200)
    expect(r.ask("DELETE", f"{r.name}/manifests/going"), 404, code=("MANIFEST_UNKNOWN", "TAG_INVALID"))


@check("a deleted manifest is gone at once, with its tags")
def _(r):
    image = r.image("one")
    text = r.get("one").body
    expect(r.put(text, f"{image['digest']}?tag=two"), 201)
    other = r.image("three")
    expect(r.ask("DELETE", f"{r.name}/manifests/{image['digest']}"), 202)
    for reference in ("one", "two", image["digest"]):
        r.lacks_manifest(reference)
    same("the tags", r.tags()[0], ["three"])
    expect(r.get(other["digest"]), 200)
    expect(r.ask("DELETE", f"{r.name}/manifests/{image['digest']}"), 404, code="MANIFEST_UNKNOWN")
    r.store(text, "one")


@check("an index that goes takes nothing along")
def _(r):
    image = r.image()
    index = r.store(content.index_of([image]), "index", content.INDEX)
    expect(r.ask("DELETE", f"{r.name}/manifests/{index['digest']}"), 202)
    expect(r.get(image["digest"]), 200)


@check("what is put in many ways at once is one manifest")
def _(r):
    image = r.image("same")
    text = r.get("same").body
    for tag in ("same", "again", "same"):
        answer = expect(r.put(text, tag), 201)
        if r.algorithm == "sha256":
            same("Docker-Content-Digest", answer.header("Docker-Content-Digest"), image["digest"])
    if expect(r.get(image["digest"]), 200).body != text:
        raise Wrong("another manifest")
