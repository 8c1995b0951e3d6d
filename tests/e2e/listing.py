#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A tree as text, one line a name: listing.py ROOT [--without NAME]... [--times-before SECONDS]

Path, type, mode, owner, device, link target, xattrs, the first name of the same inode, and the hash of the content.
Times are not in it, but for those of files that are older than what is told.
"""
import argparse
import hashlib
import os
import stat

KINDS = {stat.S_IFREG: "file", stat.S_IFDIR: "dir", stat.S_IFLNK: "link", stat.S_IFIFO: "fifo", stat.S_IFCHR: "char",
         stat.S_IFBLK: "block", stat.S_IFSOCK: "socket"}
IGNORED = (b"trusted.overlay.", b"user.overlay.", b"security.selinux")


def xattrs(path):
    names = sorted(os.listxattr(path, follow_symlinks=False))
    return {name: os.getxattr(path, name, follow_symlinks=False).hex() for name in names
            if not os.fsencode(name).startswith(IGNORED)}


def content(path, status):
    if stat.S_ISLNK(status.st_mode):
        return "-> " + repr(os.readlink(path))
    if stat.S_ISREG(status.st_mode):
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    if stat.S_ISCHR(status.st_mode) or stat.S_ISBLK(status.st_mode):
        return f"{os.major(status.st_rdev)}:{os.minor(status.st_rdev)}"
    return ""


def walk(root):
    yield root
    for parent, dirs, files in os.walk(root):
        dirs.sort()
        yield from (os.path.join(parent, name) for name in sorted(dirs + files))


parser = argparse.ArgumentParser()
parser.add_argument("root")
parser.add_argument("--without", action="append", default=[])
parser.add_argument("--times-before", type=int, default=0)
args = parser.parse_args()
top = os.fsencode(args.root)
first = {}
for path in sorted(walk(top)):
    status = os.lstat(path)
    name = path[len(top):].decode(errors="backslashreplace") or "/"
    if name.lstrip("/") in args.without:
        continue
    old = stat.S_ISREG(status.st_mode) and status.st_mtime < args.times_before
    same = first.setdefault((status.st_dev, status.st_ino), name)
    print(name, KINDS[stat.S_IFMT(status.st_mode)], oct(stat.S_IMODE(status.st_mode)),
          f"{status.st_uid}:{status.st_gid}", xattrs(path) or "", "" if same == name else f"= {same}", content(path, status),
          *([int(status.st_mtime)] if old else []))
