# SPDX-License-Identifier: Apache-2.0
"""Rows: the store itself, filled by a program of the tests."""
import json
import time

from measure import run, said


def collect(bench):
    """What 10,000 images take, half of which have a tag, and what would go."""
    data = bench.fresh("many") / "data"
    bench.filler(data, "images", "10000")
    for n in range(20):  # with layers of files, and trees
        spec = bench.spec([f"RUN cp -r /etc /srv/{n}"], bench.base)
        run(bench.hearth, "bake", spec, "--data", data, *(["--tag", f"real:{n}"] if n % 2 else []))
    samples = bench.turns(max(3, bench.args.runs // 3), hearth=lambda: run(
        bench.hearth, "gc", "--all", "--dry-run", "--data", data))
    bench.row("gc --dry-run of 10,000 images", samples, ("1,000 ms", lambda m: m["hearth"] <= 1000))
    samples = bench.turns(max(3, bench.args.runs // 3), hearth=lambda: run(bench.hearth, "du", "--data", data))
    bench.row("du of 10,000 images", samples, ("1,000 ms", lambda m: m["hearth"] <= 1000))
    bench.row("gc of 5,000 of them", {"hearth": [run(bench.hearth, "gc", "--all", "--data", data)]},
              ("(no aim)", lambda m: True))


def worn(bench, title, *kept):
    """A store is filled and collected ten times, beside one that is new."""
    data = bench.fresh("rounds") / "data"
    for seed in range(1, 11):
        bench.filler(data, "fill", "256", str(seed), *kept)
        run(bench.hearth, "gc", "--data", data)
    new = bench.turns(3, hearth=lambda: float(bench.filler(data, "fill", "128", str(time.time_ns() % 10**9))),
                      fresh=lambda: float(bench.filler(bench.fresh("filled") / "data", "fill", "128", "11")))
    bench.row(f"writes after {title}, 128 MiB", {"hearth": new["hearth"], "a new store": new["fresh"]},
              ("2 x a new store", lambda m: m["hearth"] <= 2 * m["a new store"]))
    disk, live = map(int, bench.filler(data, "account").split())
    bench.row(f"the file after {title}", {"hearth": [disk / 2**20], "in use": [live / 2**20]},
              ("1.3 x in use", lambda m: m["hearth"] <= 1.3 * m["in use"]), "MiB")


def rounds(bench):
    worn(bench, "ten rounds")


def survivors(bench):
    """Each second blob of each round stays, so that what is free lies in between."""
    worn(bench, "ten rounds, half kept", "keep")


def fsck(bench):
    """Every chunk of a store of blobs is hashed again, from memory, beside a program that does nothing else."""
    data, mib = bench.fresh("fsck") / "data", 1024
    bench.filler(data, "fill", str(mib), "1")

    def rate(*command):
        return mib * 2**20 / 1e3 / run(*command)

    samples = bench.turns(max(3, bench.args.runs // 3), hearth=lambda: rate(bench.hearth, "fsck", "--data", data),
                          **{"openssl sha256": lambda: rate("openssl", "dgst", "-sha256", data / "blobs/data.mdb")})
    bench.row("fsck of 1 GiB", samples, ("1,000 MB/s", lambda m: m["hearth"] >= 1000), "MB/s")


def fsck_baked(bench):
    """A store of layers that bakes made: chunks, the tars in them and their trees, beside who reads the same files once."""
    data = bench.fresh("baked") / "data"
    spec = bench.spec(["RUN seq 1 26000000 > /text", "RUN head -c 200000000 /dev/urandom > /random"], bench.base)
    run(bench.hearth, "bake", spec, "--data", data)
    check = [bench.hearth, "fsck", "--json", "--data", data]
    whole = json.loads(said(*map(str, check)))["verifiedBytes"]
    files = [path for name in ("text", "random") for path in (data / "trees").glob(f"*/{name}")]
    size = sum(path.stat().st_size for path in files)
    samples = bench.turns(max(3, bench.args.runs // 3), hearth=lambda: whole / 1e3 / run(*check),
                          **{"openssl sha256": lambda: size / 1e3 / run("openssl", "dgst", "-sha256", *files),
                             "cat": lambda: size / 1e3 / run("sh", "-c", 'cat "$@" | cat >/dev/null', "sh", *files)})
    bench.row("fsck of a baked store", samples, ("1,000 MB/s", lambda m: m["hearth"] >= 1000), "MB/s")
