# SPDX-License-Identifier: Apache-2.0
"""What is pushed: bytes, their digests, and the documents that name them."""
import hashlib
import json
import os

OCI = "application/vnd.oci."
IMAGE, INDEX = OCI + "image.manifest.v1+json", OCI + "image.index.v1+json"
CONFIG, LAYER, EMPTY = OCI + "image.config.v1+json", OCI + "image.layer.v1.tar", OCI + "empty.v1+json"
FOREIGN = OCI + "image.layer.nondistributable.v1.tar+gzip"
DOCKER = "application/vnd.docker."
DOCKER_IMAGE = DOCKER + "distribution.manifest.v2+json"
DOCKER_LIST = DOCKER + "distribution.manifest.list.v2+json"
DOCKER_FOREIGN = DOCKER + "image.rootfs.foreign.diff.tar.gzip"
SIX = [IMAGE, INDEX, DOCKER_IMAGE, DOCKER_LIST, DOCKER + "distribution.manifest.v1+prettyjws", "*/*"]


def noise(size=512):
    """Bytes that nobody has pushed before."""
    return os.urandom(size)


def digest_of(data, algorithm):
    return f"{algorithm}:{hashlib.new(algorithm, data).hexdigest()}"


def text_of(document):
    return json.dumps(document).encode()


def descriptor(data, algorithm, media=LAYER, **more):
    return {"mediaType": media, "digest": digest_of(data, algorithm), "size": len(data), **more}


def absent(algorithm, media=LAYER, **more):
    """Of something that is in no registry."""
    return descriptor(noise(), algorithm, media, **more)


def image_of(config, layers, media=IMAGE, **more):
    return {"schemaVersion": 2, "mediaType": media, "config": config, "layers": layers, **more}


def index_of(manifests, media=INDEX, **more):
    return {"schemaVersion": 2, "mediaType": media, "manifests": manifests, **more}
