#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a hearth left behind: leftovers.py DATA-DIRECTORY prints it and exits 1, or prints nothing and exits 0.

With --pids, only the numbers of its processes, and what they were called.

Looked for: staged files, machines, step sockets, mounts, loop devices, cgroups, a runtime's state, and any process (a zombie too) that runs our
programs on this data directory, holds a file of it, belongs to one of its machines, or lives in a mount namespace where it is mounted.
A namespace lives as long as one of these processes or mounts.
"""
import os
import sys
from pathlib import Path

SELF = {os.getpid(), os.getppid()}


def read(path):
    try:
        return path.read_bytes().decode(errors="replace")
    except OSError:
        return ""


def target(path):
    try:
        return os.readlink(path)
    except OSError:
        return ""


def touches(process, data, ours):
    """How a process has to do with the data directory or its machines, or nothing."""
    inside = data + "/"
    for name in ("exe", "cwd", "root"):
        if (target(process / name) + "/").startswith(inside):
            return name
    try:
        files = [target(file) for file in (process / "fd").iterdir()]
    except OSError:
        files = []
    if any((file + "/").startswith(inside) for file in files):
        return "open file"
    program = os.path.basename(target(process / "exe"))
    if program.startswith(("hearth", "crun", "runc")) and data in read(process / "cmdline") + read(process / "environ"):
        return "arguments"
    if ours in read(process / "cgroup") or ours in read(process / "cmdline"):
        return "machine"
    if data in read(process / "mountinfo"):
        return "mounts"
    return ""


def processes(data):
    ours = machine_prefix(data)
    for process in Path("/proc").glob("[0-9]*"):
        if int(process.name) not in SELF and (how := touches(process, data, ours)):
            yield process, how


def machine_prefix(data):
    """How the names of all machines of one data directory begin, for cgroups and runtimes."""
    try:
        status = os.stat(f"{data}/machines")
    except OSError:
        return f"hearth-none-of-{data}-"
    return f"hearth-{status.st_dev:x}-{status.st_ino:x}-"


def found(data):
    for name in ("machines", "tmp", "run/step"):
        if os.path.isdir(f"{data}/{name}"):
            yield from (f"{name}/{entry}" for entry in sorted(os.listdir(f"{data}/{name}")))
    yield from (f"mount {line}" for line in read(Path("/proc/self/mountinfo")).splitlines() if data in line)
    for backing in Path("/sys/block").glob("loop*/loop/backing_file"):
        if data in read(backing):
            yield f"loop device {backing} {read(backing)}"
    for process, how in processes(data):
        yield f"process {process.name} ({how}): {read(process / 'cmdline')[:200]!r}"
    ours = machine_prefix(data)
    for parent, names, _ in os.walk("/sys/fs/cgroup"):
        yield from (f"cgroup {parent}/{name}" for name in names if name.startswith(ours))
    for runtime in ("/run/crun", "/run/runc"):
        if os.path.isdir(runtime):
            yield from (f"{runtime}/{name}" for name in os.listdir(runtime) if name.startswith(ours))


directory = os.path.realpath(sys.argv[-1])
if sys.argv[1] == "--pids":
    for one, _ in processes(directory):
        # A runtime runs from a copy of itself in memory, so its exe says nothing.
        print(one.name, os.path.basename(read(one / "cmdline").split("\0")[0]))
    sys.exit()
everything = list(found(directory))
print(*everything, sep="\n", end="\n" if everything else "")
sys.exit(bool(everything))
