# SPDX-License-Identifier: Apache-2.0
"""Rows: bakes and their steps."""
import itertools
import os
import subprocess
import sys
import time

from measure import lean, run


def noop(bench):
    sides = bench.turns(bench.args.runs, hearth=lambda: lean([bench.hearth, "bake", bench.five], bench.env), **bench.peers())
    bench.row("five steps, fully cached", sides, ("6 ms", lambda m: m["hearth"] <= 6))


def thousand(bench):
    spec = bench.spec([f"RUN : {n}" for n in range(1000)])
    run(bench.hearth, "bake", spec, env=bench.env)
    sides = bench.turns(bench.args.runs, hearth=lambda: lean([bench.hearth, "bake", spec], bench.env))
    bench.row("1,000 steps, fully cached", sides, ("30 ms", lambda m: m["hearth"] <= 30))


def uncached(bench):
    sides = bench.turns(bench.args.runs, hearth=lambda: run(bench.hearth, "bake", "--no-cache", bench.five, env=bench.env),
                        **bench.peers("--no-cache"))
    bench.row("five steps, uncached, durable", sides, ("100 ms", lambda m: m["hearth"] <= 100))


def deep(bench):
    """A step on 400 layers, beside one on two; and the bake that made them, cached."""
    steps = [f"RUN echo {n} >/srv/{n}" for n in range(399)]
    for layers in (2, 400):
        run(bench.hearth, "bake", bench.spec(steps[:layers - 1], bench.base), "--tag", f"deep:{layers}", env=bench.env)
    two, all_of_them = (bench.spec(["RUN true"], f"deep:{layers}") for layers in (2, 400))
    sides = bench.turns(bench.args.runs,
                        hearth=lambda: run(bench.hearth, "bake", "--no-cache", all_of_them, env=bench.env),
                        **{"on 2 layers": lambda: run(bench.hearth, "bake", "--no-cache", two, env=bench.env)})
    bench.row("one step on 400 layers, uncached", sides, ("(no aim)", lambda m: True))
    spec = bench.spec(steps, bench.base)
    sides = bench.turns(bench.args.runs, hearth=lambda: lean([bench.hearth, "bake", spec], bench.env))
    bench.row("399 steps with a layer each, fully cached", sides, ("30 ms", lambda m: m["hearth"] <= 30))


def together(bench, specs):
    """Milliseconds until bakes that begin at once have all ended."""
    start = time.perf_counter()
    bakes = [subprocess.Popen([bench.hearth, "bake", spec], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, env={**os.environ, **bench.env}) for spec in specs]
    codes = [bake.wait() for bake in bakes]
    if any(codes):
        sys.exit(f"bench: bakes at once: exit {codes}")
    return (time.perf_counter() - start) * 1000


def many(bench):
    """Twenty bakes of ten steps, of which five are the same in all of them, beside one of them alone."""
    busy = "i=0; while [ $i -lt 100000 ]; do i=$((i + 1)); done"
    turn = itertools.count()

    def specs(count):
        now = next(turn)
        shared = [f"RUN {busy}; echo {now} >/srv/shared-{i}" for i in range(5)]
        return [bench.spec(shared + [f"RUN {busy}; echo {now} {n} >/srv/own-{i}" for i in range(5)], bench.base)
                for n in range(count)]

    run(bench.hearth, "pull", bench.base, env=bench.env)
    sides = bench.turns(3, hearth=lambda: together(bench, specs(20)),
                        **{"one alone": lambda: together(bench, specs(1))})
    chains = (5 + 20 * 5) / 10 / 2  # 105 different steps on two cores, in bakes alone of ten steps
    bench.row("20 bakes at once that share half", sides,
              ("1.2 x the work / 2 cores", lambda m: m["hearth"] <= 1.2 * chains * m["one alone"]))
