#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""hearth beside its peers on this machine, in one run: medians, ratios and what was aimed for.

	bench.py [--build DIR] [--runs N] [--layer-mib N] [ROW...]

Rows: %s.
Peers that are not installed are left out. The sides of a row take turns, with a
sync between them, and nothing is deleted before the end: ext4 makes new files
slowly where many were deleted. A slow day is printed, not judged.
"""
import argparse
import json
import os
import shutil
import signal
import statistics
import sys
import time

sys.dont_write_bytecode = True  # the tree stays as it is checked out
# pylint: disable=wrong-import-position
import bakes
import daemon
import files
import registry
import stores
import transfers
from ground import ROOT, Bench
from measure import said

ROWS = {row.__name__: row for row in (
    bakes.noop, bakes.thousand, bakes.uncached, bakes.deep, bakes.many,
    files.write, files.copy, files.scan, files.rebuild,
    transfers.pull, transfers.export, transfers.memory, transfers.slow,
    stores.collect, stores.rounds, stores.survivors, stores.fsck, stores.fsck_baked,
    daemon.serve, daemon.agents, daemon.behind,
    registry.manifests, registry.blobs, registry.pushes, registry.cold, registry.registry_memory, registry.slow_readers)}


def fdatasync_ms(work):
    samples = []
    fd = os.open(work / "sync", os.O_CREAT | os.O_WRONLY, 0o600)
    for _ in range(50):
        os.pwrite(fd, os.urandom(4096), 0)
        start = time.perf_counter()
        os.fdatasync(fd)
        samples.append((time.perf_counter() - start) * 1000)
    os.close(fd)
    return statistics.median(samples)


def machine(bench):
    uname = os.uname()
    print(f"{os.cpu_count()} cores, Linux {uname.release}; fdatasync of 4 KiB: {fdatasync_ms(bench.work):.2f} ms")
    for name, command in {"hearth": [bench.hearth, "--version"], "crun": ["crun", "--version"],
                          "buildah": ["buildah", "--version"], "podman": ["podman", "--version"],
                          "docker": ["dockerd", "--version"]}.items():
        found = shutil.which(command[0])
        print(f"  {name}: {said(*command).splitlines()[0] if found else 'not installed'}")
    sys.stdout.flush()


def main():
    parser = argparse.ArgumentParser(description=__doc__ % " ".join(ROWS), formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*", metavar="ROW")
    parser.add_argument("--build", default=ROOT / "build/release")
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--layer-mib", type=int, default=4096)
    parser.add_argument("--keep", action="store_true", help="leave build/bench/run-* for a look")
    args = parser.parse_args()
    if wrong := set(args.rows) - set(ROWS):
        parser.error(f"no row {', '.join(sorted(wrong))}; there are {' '.join(ROWS)}")
    if os.getuid() != 0:
        sys.exit("bench: needs root")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    bench = Bench(args)
    try:
        machine(bench)
        for name in args.rows or ROWS:
            ROWS[name](bench)
        (ROOT / "build/bench/results.json").write_text(json.dumps(bench.rows, indent=1))
    finally:
        bench.close()


main()
