#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What looking after a store costs: du of 10,000 images, and how fast fsck reads.

	care.py [--build DIR] [--mib N] [--runs N]

Medians; aimed for: du in 1,000 ms, and 1,000 MB/s of stored bytes on two cores.
"""
import argparse
import json
import statistics
import subprocess
import tempfile
import time
from pathlib import Path


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--mib", type=int, default=1024)
    parser.add_argument("--runs", type=int, default=5)
    args = parser.parse_args()
    build = Path(args.build).resolve()
    hearth = build / "bin/hearth"
    many = build / "tests/bench/bench.many_images"

    def run(*command):
        return subprocess.run([str(c) for c in command], capture_output=True, text=True, check=True).stdout

    def took(*command):
        start = time.perf_counter()
        run(*command)
        return (time.perf_counter() - start) * 1000

    with tempfile.TemporaryDirectory(prefix="hearth-bench-") as work:
        images, filled = f"{work}/images", f"{work}/filled"
        run(many, images, "images", 10000)
        run(many, filled, "fill", args.mib, 7)
        du = [took(hearth, "du", "--json", "--data", images) for _ in range(args.runs)]
        checks = [json.loads(run(hearth, "fsck", "--quick", "--json", "--data", filled)) for _ in range(args.runs)]
        rates = [c["bytes"] / 1e3 / max(c["hashMs"], 1) for c in checks]
        print(f"du of 10,000 images      {statistics.median(du):8.0f} ms")
        print(f"fsck, {args.mib} MiB stored {statistics.median(rates):10.0f} MB/s")


main()
