#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write an image, good or bad, into an OCI layout.

	image.py LAYOUT:TAG [--os OS] [--arch ARCH] [--env K=V]... [--config FILE] [--created TEXT] LAYER...

A LAYER is a file (a tar, plain, gzip or zstd) or one of:

	tiny            busybox, its links, and what a small root needs
	entry:KIND      one hostile or odd entry, see ENTRIES
	bomb:MIB        a file of so many MiB of zeros, in a few KiB

A FILE is JSON whose members replace those of the image's `config`.
"""
import argparse
import gzip
import hashlib
import io
import json
import os
import shutil
import subprocess
import tarfile
from pathlib import Path

ESCAPED = os.environ.get("ESCAPED", "escaped")  # what no layer may write outside
MEDIA = "application/vnd.oci.image.layer.v1.tar"
BUSYBOX = "/bin/busybox"


def info(name, kind=tarfile.REGTYPE, mode=0o644, link="", size=0):
    """A tar header of root's, with a fixed time."""
    entry = tarfile.TarInfo(name)
    entry.type, entry.mode, entry.linkname, entry.size, entry.mtime = kind, mode, link, size, 1700000000
    return entry


def directory(name, mode=0o755):
    return info(name, tarfile.DIRTYPE, mode), b""


def text(name, content, mode=0o644):
    data = content if isinstance(content, bytes) else content.encode()
    return info(name, mode=mode, size=len(data)), data


def link(name, target):
    return info(name, tarfile.SYMTYPE, 0o777, target), b""


def hard(name, target):
    return info(name, tarfile.LNKTYPE, link=target), b""


def tiny():
    """The smallest root in which a shell feels at home."""
    program = shutil.which("busybox") or BUSYBOX
    names = subprocess.run([program, "--list"], check=True, capture_output=True, text=True).stdout.split()
    yield from (directory(d) for d in ("bin", "etc", "root", "home", "opt", "srv", "usr", "usr/bin", "var", "proc", "sys", "dev", "run"))
    yield directory("tmp", 0o1777)
    yield text("etc/passwd", "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\napp:x:1000:1000::/home:/bin/sh\n")
    yield text("etc/group", "root:x:0:\nnogroup:x:65534:\napp:x:1000:\n")
    yield text("etc/hosts", "127.0.0.1 localhost\n")
    yield text("etc/resolv.conf", "")
    yield text("etc/hostname", "tiny\n")
    yield text("bin/busybox", Path(program).read_bytes(), 0o755)
    yield from (link(f"bin/{name}", "busybox") for name in names if name != "busybox")


def large_xattr():
    """A file with an xattr that ext4 does not hold."""
    entry, data = text("noted", "x")
    entry.pax_headers = {"SCHILY.xattr.user.big": "x" * 5000}
    return entry, data


ENTRIES = {  # each is what a layer must not do, or may do only in the way that its case says
    "dotdot": [text(f"../{ESCAPED}", "x")],
    "dotdot-deep": [directory("a"), text(f"a/../../{ESCAPED}", "x")],
    "absolute": [text(f"/{ESCAPED}", "x")],
    "through-symlink": [link("evil", "../../../.."), text(f"evil/{ESCAPED}", "x")],
    "through-absolute-symlink": [link("evil", "/tmp"), text(f"evil/{ESCAPED}", "x")],
    "hardlink-out": [hard("passwd", "../../../../etc/passwd")],
    "hardlink-absolute": [hard("shadow", "/etc/shadow")],
    "hardlink-through-symlink": [link("evil", "../../../.."), hard("passwd", "evil/etc/passwd")],
    "whiteout-dotdot": [text(".wh...", "")],
    "whiteout-dot": [text(".wh..", "")],
    "whiteout-empty": [text(".wh.", "")],
    "whiteout-out": [text(f"../.wh.{ESCAPED}", "")],
    "whiteout-through-symlink": [link("evil", "../../../.."), text(f"evil/.wh.{ESCAPED}", "")],
    "opaque-through-symlink": [link("evil", "../../../.."), text("evil/.wh..wh..opq", "")],
    "dev-symlink": [link("dev", "/tmp")],
    "sys-symlink": [link("sys", "/tmp")],
    "proc-symlink": [link("proc", "/tmp")],
    **{f"no-{name}": [text(f".wh.{name}", "")] for name in ("dev", "proc", "sys", "etc")},
    "large-xattr": [large_xattr()],
    "closed-root": [directory("./", 0o555)],
    "benign-symlink": [link("etc/up", "../../../../../../etc/passwd")],
}


def pack(entries):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for entry, data in entries:
            tar.addfile(entry, io.BytesIO(data))
    return out.getvalue()


class Zeros(io.RawIOBase):
    """So many zeros, and no memory."""

    def __init__(self, size):
        super().__init__()
        self.left = size

    def readable(self):
        return True

    def readinto(self, buffer):
        count = min(len(buffer), self.left)
        buffer[:count] = bytes(count)
        self.left -= count
        return count


def bomb(mib):
    """(compressed bytes, diff id) of a layer that is nothing but large."""
    out, plain = io.BytesIO(), hashlib.sha256()

    class Tee:
        """Compresses and hashes what tarfile writes."""

        def __init__(self):
            self.gzip = gzip.GzipFile(fileobj=out, mode="wb", compresslevel=9, mtime=0)

        def write(self, data):
            plain.update(data)
            return self.gzip.write(data)

    tee = Tee()
    with tarfile.open(fileobj=tee, mode="w|", format=tarfile.PAX_FORMAT) as tar:
        tar.addfile(info("zeros", size=mib << 20), io.BufferedReader(Zeros(mib << 20), 1 << 20))
    tee.gzip.close()
    return out.getvalue(), plain.hexdigest()


def layer(name):
    """(bytes as stored, hex of the diff id, media type)."""
    if name.startswith("bomb:"):
        return *bomb(int(name[5:])), MEDIA + "+gzip"
    if name == "tiny" or name.startswith("entry:"):
        plain = pack(tiny() if name == "tiny" else ENTRIES[name[6:]])
        return gzip.compress(plain, 6, mtime=0), hashlib.sha256(plain).hexdigest(), MEDIA + "+gzip"
    stored = Path(name).read_bytes()
    if stored[:2] == b"\x1f\x8b":
        return stored, hashlib.sha256(gzip.decompress(stored)).hexdigest(), MEDIA + "+gzip"
    if stored[:4] == b"\x28\xb5\x2f\xfd":
        plain = subprocess.run(["zstd", "-dc", name], check=True, capture_output=True).stdout
        return stored, hashlib.sha256(plain).hexdigest(), MEDIA + "+zstd"
    return stored, hashlib.sha256(stored).hexdigest(), MEDIA


def put(root, content):
    """Store a blob; its descriptor without a type."""
    name = hashlib.sha256(content).hexdigest()
    path = root / "blobs/sha256" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return {"digest": "sha256:" + name, "size": len(content)}


def dump(value):
    return json.dumps(value, separators=(",", ":")).encode()


def main():
    machine = {"x86_64": "amd64", "aarch64": "arm64"}[subprocess.check_output(["uname", "-m"], text=True).strip()]
    parser = argparse.ArgumentParser()
    parser.add_argument("image")
    parser.add_argument("layers", nargs="*")
    parser.add_argument("--os", default="linux")
    parser.add_argument("--arch", default=machine)
    parser.add_argument("--env", action="append", default=[])
    parser.add_argument("--config")
    parser.add_argument("--created", default="2026-01-01T00:00:00Z")
    args = parser.parse_args()
    root, tag = args.image.rsplit(":", 1)
    root = Path(root)
    root.mkdir(parents=True, exist_ok=True)
    (root / "oci-layout").write_text('{"imageLayoutVersion":"1.0.0"}')
    layers = [layer(name) for name in args.layers]
    config = {
        "created": args.created, "architecture": args.arch, "os": args.os,
        "config": {"Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", *args.env]},
        "rootfs": {"type": "layers", "diff_ids": ["sha256:" + diff for _, diff, _ in layers]},
        "history": [{"created": args.created, "created_by": name} for name in args.layers],
    }
    if args.config:
        config["config"] |= json.loads(Path(args.config).read_text())
    manifest = {
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": {"mediaType": "application/vnd.oci.image.config.v1+json", **put(root, dump(config))},
        "layers": [{"mediaType": media, **put(root, stored)} for stored, _, media in layers],
    }
    entry = {"mediaType": manifest["mediaType"], **put(root, dump(manifest)),
             "platform": {"os": args.os, "architecture": args.arch},
             "annotations": {"org.opencontainers.image.ref.name": tag}}
    index = root / "index.json"
    old = json.loads(index.read_text())["manifests"] if index.exists() else []
    keep = [m for m in old if m["annotations"]["org.opencontainers.image.ref.name"] != tag]
    index.write_bytes(dump({"schemaVersion": 2, "manifests": [*keep, entry]}))
    print(entry["digest"])


main()
