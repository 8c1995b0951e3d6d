# SPDX-License-Identifier: Apache-2.0
"""Rows: images that come and go, and the memory that takes."""
import json
import os
import shutil

from ground import ROOT
from measure import Memory, lean, run, said

SYNC_US = 5000


def pull_hearth(bench, env=None):
    data = bench.fresh("pull") / "data"
    return run(bench.hearth, "pull", bench.image, env={"HEARTH_DATA": str(data), **(env or {})})


def pull_podman(bench):
    store = bench.fresh("podman")
    return run("podman", "--root", store / "root", "--runroot", store / "run", "pull", "-q", "--tls-verify=false",
               bench.image)


def pull_tar(bench):
    layers = json.loads(said("skopeo", "inspect", bench.base))["Layers"]
    blob = bench.layout / "blobs/sha256" / layers[0].split(":")[1]
    return run("sh", "-c", 'igzip -dc "$1" | tar -x -C "$2"', "-", blob, bench.fresh("tar"))


def pull(bench):
    sides = {"hearth": lambda: pull_hearth(bench)}
    if shutil.which("podman"):
        sides["podman pull"] = lambda: pull_podman(bench)
    sides["igzip | tar x"] = lambda: pull_tar(bench)
    samples = bench.turns(max(3, bench.args.runs // 3), **sides)
    bench.row("pull and unpack of a 170 MB base", samples,
              ("podman / 4, 1.6 x igzip|tar", lambda m: m["hearth"] <= 1.6 * m["igzip | tar x"]
              and 4 * m["hearth"] <= m.get("podman pull", 1e9)))


def export_image(bench, mib):
    """A layer of bytes that nothing compresses, in a layout and in a store: bytes of it, layout, environment."""
    work = bench.fresh("export")
    run("sh", "-c", f'head -c {mib}M /dev/urandom >"$0"', work / "random")
    run("tar", "-C", work, "-cf", work / "layer.tar", "random")
    run(ROOT / "tests/e2e/image.py", f"{work}/layout:latest", work / "layer.tar")
    env = {"HEARTH_DATA": str(work / "data")}
    run(bench.hearth, "import", f"oci:{work}/layout:latest", "--tag", "big:1", env=env)
    size = sum(f.stat().st_size for f in (work / "layout/blobs/sha256").iterdir())
    return size, work, env


def export(bench):
    size, work, env = export_image(bench, 900)

    def rate(*command):
        return size / 1e3 / run("sh", "-c", '"$@" && sync -f "$0"', *command, env=env)

    streamed = {"hearth": lambda: size / 1e3 / run(
        "sh", "-c", '"$0" export big:1 oci-archive:- | cat >/dev/null', bench.hearth, env=env)}
    bench.row("export to an OCI archive, streamed", bench.turns(bench.args.runs, **streamed),
              ("1,000 MB/s", lambda m: m["hearth"] >= 1000), "MB/s")
    sides = {"hearth": lambda: rate(work, bench.hearth, "export", "big:1", f"oci-archive:{work}/ours.tar"),
             "dd": lambda: rate(work, "dd", f"if={work}/random", f"of={work}/dd", "bs=1M"),
             "skopeo copy": lambda: rate(work, "sh", "-c", f"rm -f {work}/theirs.tar; skopeo --insecure-policy copy -q "
                                         f"oci:{work}/layout:latest oci-archive:{work}/theirs.tar")}
    bench.row("export to an OCI archive, durable", bench.turns(max(3, bench.args.runs // 3), **sides),
              ("skopeo's", lambda m: m["hearth"] >= m["skopeo copy"]), "MB/s")


def peak(bench, *command):
    data = bench.fresh("memory") / "data"
    watch = Memory(data)
    watch.start()
    took = run(bench.hearth, *command, env={"HEARTH_DATA": str(data)})
    return watch.stop(), took


def memory(bench):
    mib = bench.args.layer_mib
    big = bench.fresh("big")
    with open(big / "file", "wb") as out:
        for _ in range(mib // 4):
            out.write(os.urandom(1 << 20) + bytes(3 << 20))
    run("tar", "-C", big, "-cf", big / "layer.tar", "file")
    os.unlink(big / "file")
    run(ROOT / "tests/e2e/image.py", f"{big}/image:latest", big / "layer.tar")
    highest, took = peak(bench, "pull", f"oci:{big}/image:latest")
    bench.row(f"memory: pull of a {mib} MiB layer ({took / 1000:.0f} s)", {"hearth": [highest]},
              ("64 MiB", lambda m: m["hearth"] <= 64), "MiB")
    command = f"perl -e 'open R, \"<\", \"/dev/urandom\"; for (1..{mib // 4}) {{ read R, $b, 1048576; print $b x 4 }}' > /big"
    highest, took = peak(bench, "bake", bench.spec([f"RUN {command}"]))
    bench.row(f"memory: RUN that writes {mib} MiB ({took / 1000:.0f} s)", {"hearth": [highest]},
              ("64 MiB", lambda m: m["hearth"] <= 64), "MiB")
    highest, took = peak(bench, "pull", bench.image)
    bench.row("memory: pull of the base", {"hearth": [highest]}, ("64 MiB", lambda m: m["hearth"] <= 64), "MiB")


def slow(bench):
    """What is durable, once more on a disk whose every sync takes 5 ms longer."""
    shim = bench.work / "slowsync.so"
    run("gcc", "-O2", "-D_GNU_SOURCE", "-fPIC", "-shared", "-o", shim, ROOT / "tests/bench/slowsync.c")
    env = {"LD_PRELOAD": str(shim), "SLOWSYNC_US": str(SYNC_US)}
    few = max(3, bench.args.runs // 3)
    never = ("(no aim)", lambda m: True)
    bench.row("slow disk: five steps, fully cached",
              bench.turns(few, hearth=lambda: lean([bench.hearth, "bake", bench.five], {**bench.env, **env})), never)
    bench.row("slow disk: five steps, uncached", bench.turns(
        few, hearth=lambda: run(bench.hearth, "bake", "--no-cache", bench.five, env={**bench.env, **env})), never)
    bench.row("slow disk: pull and unpack of the base", bench.turns(few, hearth=lambda: pull_hearth(bench, env)), never)
