#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""From a docker-archive make what two ages of `docker save` wrote.

	docker_save.py ARCHIVE OLD NEW

OLD has a directory a layer, with layer.tar, json and VERSION, a second layer
directory that is a link to another's, and the image's files last. NEW is an OCI
layout as well: manifest.json names blobs/sha256/<hex>.
"""
import hashlib
import io
import json
import sys
import tarfile


def add(out, name, data):
    entry = tarfile.TarInfo(name)
    entry.size = len(data)
    out.addfile(entry, io.BytesIO(data))


def link(out, name, target):
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname = tarfile.SYMTYPE, target
    out.addfile(entry)


def old(image, config, layers, out):
    names = []
    for at, data in enumerate(layers):
        name = hashlib.sha256(b"%d" % at).hexdigest()
        add(out, f"{name}/VERSION", b"1.0")
        add(out, f"{name}/json", b"{}")
        if at == 0:
            link(out, f"{name}/layer.tar", "../shared/layer.tar")
            add(out, "shared/layer.tar", data)
        else:
            add(out, f"{name}/layer.tar", data)
        names.append(f"{name}/layer.tar")
    add(out, image["Config"], config)
    add(out, "manifest.json", json.dumps([dict(image, Layers=names)]).encode())
    add(out, "repositories", b"{}")


def new(image, config, layers, out):
    add(out, "manifest.json", json.dumps([dict(image, **{
        "Config": "blobs/sha256/" + hashlib.sha256(config).hexdigest(),
        "Layers": ["blobs/sha256/" + hashlib.sha256(data).hexdigest() for data in layers]})]).encode())
    for data in [config, *layers]:
        add(out, "blobs/sha256/" + hashlib.sha256(data).hexdigest(), data)
    add(out, "oci-layout", b'{"imageLayoutVersion":"1.0.0"}')
    add(out, "index.json", b'{"schemaVersion":2,"manifests":[]}')


def main():
    with tarfile.open(sys.argv[1]) as archive:
        image = json.load(archive.extractfile("manifest.json"))[0]
        config = archive.extractfile(image["Config"]).read()
        layers = [archive.extractfile(name).read() for name in image["Layers"]]
    for make, path in ((old, sys.argv[2]), (new, sys.argv[3])):
        with tarfile.open(path, "w") as out:
            make(image, config, layers, out)


if __name__ == "__main__":
    main()
