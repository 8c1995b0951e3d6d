# SPDX-License-Identifier: Apache-2.0
"""Rows: files that go into layers."""
import json
import os

from measure import lean, run

WRITE = ("perl -e 'open R, \"<\", \"/dev/urandom\"; mkdir \"/srv/$ARGV[0]\"; for (1..10000) { read R, $b, 5120; "
         "open F, \">\", \"/srv/$ARGV[0]/$_\"; print F $b x 4; close F }'")


def bare_write(bench):
    """The same command under crun on an unpacked base, and a syncfs."""
    bench.made += 1
    bundle = bench.bundle
    config = json.loads((bundle / "config.json").read_text())
    config["process"]["args"] = ["/bin/sh", "-c", f"{WRITE} {bench.made}"]
    config["process"]["terminal"] = False
    (bundle / "config.json").write_text(json.dumps(config))
    return run("unshare", "-m", "sh", "-c",
               "umount /sys/fs/cgroup/unified 2>/dev/null; crun run --bundle \"$1\" \"$2\" && sync -f \"$1\"",
               "-", bundle, f"hearth-bench-{os.getpid()}-{bench.made}")


def write(bench):
    bench.bundle = bench.fresh("bundle") / "b"
    run("umoci", "unpack", "--image", f"{bench.layout}:bookworm-slim", bench.bundle)
    specs = iter([bench.spec([f"RUN {WRITE} h{n}"]) for n in range(bench.args.runs)])
    sides = bench.turns(max(3, bench.args.runs // 3), hearth=lambda: run(bench.hearth, "bake", next(specs), env=bench.env),
                        **{"crun, then syncfs": lambda: bare_write(bench)})
    bench.row("RUN writes 10,000 files, 200 MB", sides,
              ("1.5 x crun", lambda m: m["hearth"] <= 1.5 * m["crun, then syncfs"]))


def copy(bench):
    """COPY of files that nobody has seen, and of the last ones once more."""
    file = bench.fresh("file") / "Dockerfile"
    file.write_text(f"FROM {bench.image}\nCOPY . /srv/context\n")
    spec = bench.spec(["COPY . /srv/context"])
    few = max(3, bench.args.runs // 3)
    trees = {side: [bench.tree(20, 500, 20480) for _ in range(few)] for side in ("hearth", "buildkit")}
    left = {side: iter(trees[side]) for side in trees}
    sides = {"hearth": lambda: run(bench.hearth, "bake", spec, "--context", next(left["hearth"]), env=bench.env)}
    if bench.docker:
        sides["buildkit"] = lambda: bench.docker_build(file=file, context=next(left["buildkit"]))
    bench.row("COPY of 10,000 files, 200 MB", bench.turns(few, **sides),
              ("0.8 x BuildKit", lambda m: m["hearth"] <= 0.8 * m.get("buildkit", 1e9)))
    again = [bench.hearth, "bake", spec, "--context", str(trees["hearth"][-1])]
    sides = {"hearth": lambda: lean(again, bench.env)}
    if bench.docker:
        sides["buildkit"] = lambda: bench.docker_build(file=file, context=trees["buildkit"][-1])
    bench.row("the same COPY, unchanged", bench.turns(bench.args.runs, **sides), ("50 ms", lambda m: m["hearth"] <= 50))


def scan(bench):
    """Files a second of a context that is unchanged: a cached bake, less one that has nothing to scan."""
    count = 100000
    one = bench.spec(["COPY . /srv/scan"])
    top, empty = bench.tree(100, count // 100, 0), bench.fresh("empty")
    for context in (top, empty):
        run(bench.hearth, "bake", one, "--context", context, env=bench.env)

    def rate():
        full = lean([bench.hearth, "bake", one, "--context", str(top)], bench.env)
        return count / max(1e-3, full - lean([bench.hearth, "bake", one, "--context", str(empty)], bench.env))

    bench.row("files scanned, unchanged", bench.turns(bench.args.runs, hearth=rate),
              ("500 a ms", lambda m: m["hearth"] >= 500), "1/ms")


def fill(top, numbers, size):
    """Files of text that nobody has seen."""
    for n in numbers:
        (top / f"file-{n}").write_text(os.urandom(size // 2).hex())


def rebuild(bench):
    """How much of a layer the store keeps anew when one file in a hundred is another."""
    for name, size, aim in (("20 KiB", 20 * 1024, 7), ("1 MiB", 2**20, 2)):
        top, count = bench.fresh("rebuild"), 200 * 10**6 // size
        spec = bench.spec(["COPY . /srv/context"], "scratch")
        env = {"HEARTH_DATA": str(bench.fresh("rebuilt") / "data")}
        fill(top, range(count), size)
        grown, live = [], 0
        for turn in range(6):
            run(bench.hearth, "bake", spec, "--context", top, env=env)
            before, live = live, int(bench.filler(env["HEARTH_DATA"], "account").split()[1])
            grown.append(live - before)
            fill(top, range(turn, count, 100), size)
        bench.row(f"1 % new of 200 MB in files of {name}: stored", {"hearth": [100 * g / grown[0] for g in grown[1:]]},
                  (f"{aim} %", lambda m, aim=aim: m["hearth"] <= aim), "%")
