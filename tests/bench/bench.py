#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""hearth beside its peers on this machine, in one run: medians, ratios and what was aimed for.

	bench.py [--build DIR] [--runs N] [--layer-mib N] [ROW...]

Rows: noop thousand uncached write copy scan pull export memory slow collect rounds. Peers that are not
installed are left out. The sides of a row take turns, with a sync between
them, and nothing is deleted before the end: ext4 makes new files slowly where
many were deleted. A slow day is printed, not judged.
"""
import argparse
import json
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROWS = ["noop", "thousand", "uncached", "write", "copy", "scan", "pull", "export", "memory", "slow", "collect", "rounds"]
FIVE = ["RUN true", "RUN echo one", "ENV A=b", "WORKDIR /srv", "RUN echo two"]
WRITE = ("perl -e 'open R, \"<\", \"/dev/urandom\"; mkdir \"/srv/$ARGV[0]\"; for (1..10000) { read R, $b, 5120; "
         "open F, \">\", \"/srv/$ARGV[0]/$_\"; print F $b x 4; close F }'")
SYNC_US = 5000


def run(*command, env=None, quiet=True, cwd=None):
    """Run to the end and return the milliseconds; a failure ends the bench with what was said."""
    out = subprocess.DEVNULL if quiet else None
    start = time.perf_counter()
    done = subprocess.run([str(c) for c in command], stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.PIPE,
                          env={**os.environ, **(env or {})}, cwd=cwd, check=False)
    took = (time.perf_counter() - start) * 1000
    if done.returncode:
        sys.exit(f"bench: {' '.join(map(str, command))}: exit {done.returncode}\n{done.stderr.decode()[-2000:]}")
    return took


def said(*command, env=None):
    return subprocess.run([str(c) for c in command], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True,
                          env={**os.environ, **(env or {})}).stdout


def lean(command, env):
    """Milliseconds of a short process, started as cheaply as this can be done."""
    null = os.open(os.devnull, os.O_RDWR)
    start = time.perf_counter()
    pid = os.posix_spawn(command[0], command, {**os.environ, **env},
                         file_actions=[(os.POSIX_SPAWN_DUP2, null, fd) for fd in (0, 1, 2)])
    status = os.waitpid(pid, 0)[1]
    took = (time.perf_counter() - start) * 1000
    os.close(null)
    if status:
        sys.exit(f"bench: {' '.join(command)} failed")
    return took


def settle():
    os.sync()


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


class Memory(threading.Thread):
    """The largest sum of what our programs keep resident, without the pages of data.mdb."""

    def __init__(self, data):
        super().__init__(daemon=True)
        self.data, self.peak, self.done = str(data), 0, threading.Event()

    def run(self):
        while not self.done.wait(0.05):
            self.peak = max(self.peak, sum(self.resident(p) for p in Path("/proc").glob("[0-9]*")))

    def resident(self, process):
        """KiB of one process of ours; an open file or its environment says whose it is."""
        try:
            if not os.path.basename(os.readlink(process / "exe")).startswith("hearth"):
                return 0
            if self.data.encode() not in (process / "environ").read_bytes():
                return 0
            total, counted = 0, True
            for line in (process / "smaps").read_text().splitlines():
                if line[0] in "0123456789abcdef":
                    counted = not line.endswith("data.mdb")
                elif counted and line.startswith("Rss:"):
                    total += int(line.split()[1])
            return total
        except (OSError, IndexError):
            return 0

    def stop(self):
        self.done.set()
        self.join()
        return self.peak / 1024


class Bench:
    """The directories, servers and peers of one run."""

    def __init__(self, args):
        self.args, self.rows, self.servers = args, [], []
        self.hearth = str(Path(args.build).resolve() / "bin/hearth")
        self.work = ROOT / "build/bench" / f"run-{os.getpid()}"
        self.work.mkdir(parents=True)
        subprocess.run(["chattr", "+T", self.work], check=False, stderr=subprocess.DEVNULL)
        self.data = self.work / "data"
        self.env = {"HEARTH_DATA": str(self.data)}
        self.made = 0

    def fresh(self, name):
        """A new directory whose neighbours were never deleted."""
        self.made += 1
        path = self.work / f"{name}-{self.made}"
        path.mkdir(mode=0o700)
        return path

    def serve(self, *command, env=None):
        with open(self.work / "servers.log", "ab") as log:
            process = subprocess.Popen([str(c) for c in command], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                       env={**os.environ, **(env or {})}, start_new_session=True)
        self.servers.append(process)
        return process

    def wait(self, what, *command):
        for _ in range(200):
            if subprocess.run([str(c) for c in command], capture_output=True, check=False).returncode == 0:
                return True
            time.sleep(0.1)
        print(f"bench: {what} did not start; see {self.work}/servers.log", file=sys.stderr)
        return False

    def close(self):
        for process in reversed(self.servers):
            process.send_signal(signal.SIGTERM)
        for process in self.servers:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        if not self.args.keep:
            shutil.rmtree(self.work, ignore_errors=True)

    # What the rows stand on.

    def start(self):
        self.layout = ROOT / "build/e2e/debian"
        run(ROOT / "scripts/debian-base.sh", self.layout)
        self.base = f"oci:{self.layout}:bookworm-slim"
        self.registry = f"127.0.0.1:{free_port()}"
        config = self.work / "registry.yml"
        config.write_text(f'version: 0.1\nlog: {{level: error, accesslog: {{disabled: true}}}}\n'
                          f'storage: {{filesystem: {{rootdirectory: "{self.work}/registry"}}}}\n'
                          f'http: {{addr: "{self.registry}"}}\n')
        self.serve("docker-registry", "serve", config)
        self.wait("docker-registry", "curl", "-fsS", f"http://{self.registry}/v2/")
        run("skopeo", "--insecure-policy", "copy", "--dest-tls-verify=false", self.base,
            f"docker://{self.registry}/debian:bookworm-slim")
        (self.work / "containers.conf").write_text(
            f'[storage]\ndriver = "overlay"\nrunroot = "{self.work}/containers-run"\ngraphroot = "{self.work}/containers"\n')
        self.containers = {"CONTAINERS_STORAGE_CONF": str(self.work / "containers.conf"), "BUILDAH_ISOLATION": "chroot"}
        self.context = self.fresh("context")
        self.file = self.context / "Dockerfile"
        self.image = f"{self.registry}/debian:bookworm-slim"
        self.file.write_text("\n".join([f"FROM {self.image}", *FIVE]) + "\n")
        self.five = self.spec(FIVE)
        self.docker = self.start_docker() if shutil.which("dockerd") else None
        self.buildah = shutil.which("buildah")
        run(self.hearth, "bake", self.five, env=self.env)

    def spec(self, steps, base=None):
        self.made += 1
        path = self.work / f"spec-{self.made}.json"
        path.write_text(json.dumps({"base": base or self.image, "steps": steps}))
        return str(path)

    def start_docker(self):
        """A dockerd of our own, with the client of the same package. BuildKit is in both."""
        socket_path = f"unix://{self.work}/docker.sock"
        client = "/usr/bin/docker" if os.path.exists("/usr/bin/docker") else "docker"
        self.serve("dockerd", "--data-root", self.work / "docker", "--exec-root", self.work / "docker-run", "-p",
                   self.work / "docker.pid", "-H", socket_path, "--iptables=false", "--bridge=none")
        command = [client, "-H", socket_path]
        if not self.wait("dockerd", *command, "version"):
            return None
        run(*command, "pull", self.image)
        return command

    def docker_build(self, *options, file=None, context=None):
        return run(*self.docker, "build", "-q", "--network=host", *options, "-f", file or self.file,
                   context or self.context, env={"DOCKER_BUILDKIT": "1"})

    def buildah_build(self, *options):
        return run("buildah", "bud", "-q", "--layers", "--network=host", "--tls-verify=false", "-t", "bench", *options,
                   "-f", self.file, self.context, env=self.containers)

    # The table.

    def row(self, name, sides, aim, unit="ms"):
        """sides: name -> samples, hearth first; aim: (text, verdict of the medians)."""
        medians = {side: statistics.median(samples) for side, samples in sides.items()}
        ours = medians["hearth"]
        verdict = "ok" if aim[1](medians) else "ABOVE"
        self.rows.append({"row": name, "unit": unit, "aim": aim[0], "verdict": verdict,
                          "medians": medians, "samples": sides})
        print(f"{name:<44} hearth {ours:8.1f} {unit}   aim {aim[0]:<28} {verdict}")
        for side, value in list(medians.items())[1:]:
            print(f"{'':<30} {side:>20} {value:8.1f} {unit}   ratio {value / ours:.2f}")
        sys.stdout.flush()

    def turns(self, runs, **sides):
        """Take turns; every side gets its samples."""
        samples = {name: [] for name in sides}
        for _ in range(runs):
            for name, side in sides.items():
                settle()
                samples[name].append(side())
        return samples

    def peers(self, *options):
        sides = {}
        if self.docker:
            sides["buildkit"] = lambda: self.docker_build(*options)
        if self.buildah:
            sides["buildah"] = lambda: self.buildah_build(*options)
        for side in sides.values():
            side()  # once for the cache
        return sides

    def noop(self):
        sides = self.turns(self.args.runs, hearth=lambda: lean([self.hearth, "bake", self.five], self.env), **self.peers())
        self.row("five steps, fully cached", sides, ("6 ms", lambda m: m["hearth"] <= 6))

    def thousand(self):
        spec = self.spec([f"RUN : {n}" for n in range(1000)])
        run(self.hearth, "bake", spec, env=self.env)
        sides = self.turns(self.args.runs, hearth=lambda: lean([self.hearth, "bake", spec], self.env))
        self.row("1,000 steps, fully cached", sides, ("30 ms", lambda m: m["hearth"] <= 30))

    def uncached(self):
        sides = self.turns(self.args.runs, hearth=lambda: run(self.hearth, "bake", "--no-cache", self.five, env=self.env),
                           **self.peers("--no-cache"))
        self.row("five steps, uncached, durable", sides, ("100 ms", lambda m: m["hearth"] <= 100))

    def bare_write(self):
        """The same command under crun on an unpacked base, and a syncfs."""
        self.made += 1
        bundle = self.bundle
        config = json.loads((bundle / "config.json").read_text())
        config["process"]["args"] = ["/bin/sh", "-c", f"{WRITE} {self.made}"]
        config["process"]["terminal"] = False
        (bundle / "config.json").write_text(json.dumps(config))
        return run("unshare", "-m", "sh", "-c",
                   "umount /sys/fs/cgroup/unified 2>/dev/null; crun run --bundle \"$1\" \"$2\" && sync -f \"$1\"",
                   "-", bundle, f"hearth-bench-{os.getpid()}-{self.made}")

    def write(self):
        self.bundle = self.fresh("bundle") / "b"
        run("umoci", "unpack", "--image", f"{self.layout}:bookworm-slim", self.bundle)
        specs = iter([self.spec([f"RUN {WRITE} h{n}"]) for n in range(self.args.runs)])
        sides = self.turns(max(3, self.args.runs // 3), hearth=lambda: run(self.hearth, "bake", next(specs), env=self.env),
                           **{"crun, then syncfs": self.bare_write})
        self.row("RUN writes 10,000 files, 200 MB", sides,
                 ("1.5 x crun", lambda m: m["hearth"] <= 1.5 * m["crun, then syncfs"]))

    def tree(self, directories, files, size):
        """A context of so many directories with so many files of different bytes."""
        top = self.fresh("tree")
        for d in range(directories):
            at = top / f"d{d}"
            at.mkdir()
            for n in range(files):
                (at / f"file-{n}").write_bytes(os.urandom(size // 4) * 4)
        return top

    def copy(self):
        """COPY of files that nobody has seen, and of the last ones once more."""
        file = self.fresh("file") / "Dockerfile"
        file.write_text(f"FROM {self.image}\nCOPY . /srv/context\n")
        spec = self.spec(["COPY . /srv/context"])
        few = max(3, self.args.runs // 3)
        trees = {side: [self.tree(20, 500, 20480) for _ in range(few)] for side in ("hearth", "buildkit")}
        left = {side: iter(trees[side]) for side in trees}
        sides = {"hearth": lambda: run(self.hearth, "bake", spec, "--context", next(left["hearth"]), env=self.env)}
        if self.docker:
            sides["buildkit"] = lambda: self.docker_build(file=file, context=next(left["buildkit"]))
        self.row("COPY of 10,000 files, 200 MB", self.turns(few, **sides),
                 ("0.8 x BuildKit", lambda m: m["hearth"] <= 0.8 * m.get("buildkit", 1e9)))
        again = [self.hearth, "bake", spec, "--context", str(trees["hearth"][-1])]
        sides = {"hearth": lambda: lean(again, self.env)}
        if self.docker:
            sides["buildkit"] = lambda: self.docker_build(file=file, context=trees["buildkit"][-1])
        self.row("the same COPY, unchanged", self.turns(self.args.runs, **sides), ("50 ms", lambda m: m["hearth"] <= 50))

    def scan(self):
        """Files a second of a context that is unchanged: a cached bake, less one that has nothing to scan."""
        count = 100000
        one = self.spec(["COPY . /srv/scan"])
        top, empty = self.tree(100, count // 100, 0), self.fresh("empty")
        for context in (top, empty):
            run(self.hearth, "bake", one, "--context", context, env=self.env)

        def rate():
            full = lean([self.hearth, "bake", one, "--context", str(top)], self.env)
            return count / max(1e-3, full - lean([self.hearth, "bake", one, "--context", str(empty)], self.env))

        self.row("files scanned, unchanged", self.turns(self.args.runs, hearth=rate),
                 ("500 a ms", lambda m: m["hearth"] >= 500), "1/ms")

    def pull_hearth(self, env=None):
        data = self.fresh("pull") / "data"
        return run(self.hearth, "pull", self.image, env={"HEARTH_DATA": str(data), **(env or {})})

    def pull_podman(self):
        store = self.fresh("podman")
        return run("podman", "--root", store / "root", "--runroot", store / "run", "pull", "-q", "--tls-verify=false",
                   self.image)

    def pull_tar(self):
        layers = json.loads(said("skopeo", "inspect", self.base))["Layers"]
        blob = self.layout / "blobs/sha256" / layers[0].split(":")[1]
        return run("sh", "-c", 'igzip -dc "$1" | tar -x -C "$2"', "-", blob, self.fresh("tar"))

    def pull(self):
        sides = {"hearth": self.pull_hearth}
        if shutil.which("podman"):
            sides["podman pull"] = self.pull_podman
        sides["igzip | tar x"] = self.pull_tar
        samples = self.turns(max(3, self.args.runs // 3), **sides)
        self.row("pull and unpack of a 170 MB base", samples,
                 ("podman / 4, 1.6 x igzip|tar", lambda m: m["hearth"] <= 1.6 * m["igzip | tar x"]
                  and 4 * m["hearth"] <= m.get("podman pull", 1e9)))

    def export_image(self, mib):
        """A layer of bytes that nothing compresses, in a layout and in a store: bytes of it, layout, environment."""
        work = self.fresh("export")
        run("sh", "-c", f'head -c {mib}M /dev/urandom >"$0"', work / "random")
        run("tar", "-C", work, "-cf", work / "layer.tar", "random")
        run(ROOT / "tests/e2e/image.py", f"{work}/layout:latest", work / "layer.tar")
        env = {"HEARTH_DATA": str(work / "data")}
        run(self.hearth, "import", f"oci:{work}/layout:latest", "--tag", "big:1", env=env)
        size = sum(f.stat().st_size for f in (work / "layout/blobs/sha256").iterdir())
        return size, work, env

    def export(self):
        size, work, env = self.export_image(900)

        def rate(*command):
            return size / 1e3 / run("sh", "-c", '"$@" && sync -f "$0"', *command, env=env)

        streamed = {"hearth": lambda: size / 1e3 / run(
            "sh", "-c", '"$0" export big:1 oci-archive:- | cat >/dev/null', self.hearth, env=env)}
        self.row("export to an OCI archive, streamed", self.turns(self.args.runs, **streamed),
                 ("1,000 MB/s", lambda m: m["hearth"] >= 1000), "MB/s")
        sides = {"hearth": lambda: rate(work, self.hearth, "export", "big:1", f"oci-archive:{work}/ours.tar"),
                 "dd": lambda: rate(work, "dd", f"if={work}/random", f"of={work}/dd", "bs=1M"),
                 "skopeo copy": lambda: rate(work, "sh", "-c", f"rm -f {work}/theirs.tar; skopeo --insecure-policy copy -q "
                                             f"oci:{work}/layout:latest oci-archive:{work}/theirs.tar")}
        self.row("export to an OCI archive, durable", self.turns(max(3, self.args.runs // 3), **sides),
                 ("skopeo's", lambda m: m["hearth"] >= m["skopeo copy"]), "MB/s")

    def peak(self, *command):
        data = self.fresh("memory") / "data"
        watch = Memory(data)
        watch.start()
        took = run(self.hearth, *command, env={"HEARTH_DATA": str(data)})
        return watch.stop(), took

    def memory(self):
        mib = self.args.layer_mib
        big = self.fresh("big")
        with open(big / "file", "wb") as out:
            for _ in range(mib // 4):
                out.write(os.urandom(1 << 20) + bytes(3 << 20))
        run("tar", "-C", big, "-cf", big / "layer.tar", "file")
        os.unlink(big / "file")
        run(ROOT / "tests/e2e/image.py", f"{big}/image:latest", big / "layer.tar")
        peak, took = self.peak("pull", f"oci:{big}/image:latest")
        self.row(f"memory: pull of a {mib} MiB layer ({took / 1000:.0f} s)", {"hearth": [peak]},
                 ("64 MiB", lambda m: m["hearth"] <= 64), "MiB")
        command = f"perl -e 'open R, \"<\", \"/dev/urandom\"; for (1..{mib // 4}) {{ read R, $b, 1048576; print $b x 4 }}' > /big"
        peak, took = self.peak("bake", self.spec([f"RUN {command}"]))
        self.row(f"memory: RUN that writes {mib} MiB ({took / 1000:.0f} s)", {"hearth": [peak]},
                 ("64 MiB", lambda m: m["hearth"] <= 64), "MiB")
        peak, took = self.peak("pull", self.image)
        self.row("memory: pull of the base", {"hearth": [peak]}, ("64 MiB", lambda m: m["hearth"] <= 64), "MiB")

    def slow(self):
        """What is durable, once more on a disk whose every sync takes 5 ms longer."""
        shim = self.work / "slowsync.so"
        run("gcc", "-O2", "-D_GNU_SOURCE", "-fPIC", "-shared", "-o", shim, ROOT / "tests/bench/slowsync.c")
        env = {"LD_PRELOAD": str(shim), "SLOWSYNC_US": str(SYNC_US)}
        few = max(3, self.args.runs // 3)
        never = ("(no aim)", lambda m: True)
        self.row("slow disk: five steps, fully cached",
                 self.turns(few, hearth=lambda: lean([self.hearth, "bake", self.five], {**self.env, **env})), never)
        self.row("slow disk: five steps, uncached", self.turns(
            few, hearth=lambda: run(self.hearth, "bake", "--no-cache", self.five, env={**self.env, **env})), never)
        self.row("slow disk: pull and unpack of the base", self.turns(few, hearth=lambda: self.pull_hearth(env)), never)


    # The store itself, filled by a program of the tests.

    def filler(self, data, *arguments):
        return said(Path(self.args.build).resolve() / "tests/bench/bench.many_images", data, *arguments)

    def collect(self):
        """What would go of 10,000 images, half of which have a tag."""
        data = self.fresh("many") / "data"
        self.filler(data, "images", "10000")
        samples = self.turns(max(3, self.args.runs // 3), hearth=lambda: run(
            self.hearth, "gc", "--all", "--dry-run", "--data", data))
        self.row("gc --dry-run of 10,000 images", samples, ("1,000 ms", lambda m: m["hearth"] <= 1000))
        self.row("gc of 5,000 of them", {"hearth": [run(self.hearth, "gc", "--all", "--data", data)]},
                 ("(no aim)", lambda m: True))

    def rounds(self):
        """A store is filled and collected ten times, beside one that is new."""
        data = self.fresh("rounds") / "data"
        for seed in range(1, 11):
            self.filler(data, "fill", "256", str(seed))
            run(self.hearth, "gc", "--data", data)
        new = self.turns(3, hearth=lambda: float(self.filler(data, "fill", "128", str(time.time_ns() % 10**9))),
                         fresh=lambda: float(self.filler(self.fresh("filled") / "data", "fill", "128", "11")))
        self.row("writes after ten rounds, 128 MiB", {"hearth": new["hearth"], "a new store": new["fresh"]},
                 ("2 x a new store", lambda m: m["hearth"] <= 2 * m["a new store"]))
        disk, live = map(int, self.filler(data, "account").split())
        self.row("the file after ten rounds", {"hearth": [disk / 2**20], "in use": [live / 2**20]},
                 ("1.3 x in use", lambda m: m["hearth"] <= 1.3 * m["in use"]), "MiB")


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
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
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
        bench.start()
        for name in args.rows or ROWS:
            getattr(bench, name)()
        (ROOT / "build/bench/results.json").write_text(json.dumps(bench.rows, indent=1))
    finally:
        bench.close()


main()
