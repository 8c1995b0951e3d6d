# SPDX-License-Identifier: Apache-2.0
"""What the rows stand on."""
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import time
from functools import cached_property
from pathlib import Path

from measure import free_port, run, said, settle

ROOT = Path(__file__).resolve().parents[2]
FIVE = ["RUN true", "RUN echo one", "ENV A=b", "WORKDIR /srv", "RUN echo two"]


class Bench:
    """The directories, servers and peers of one run."""

    def __init__(self, args):
        self.args, self.rows, self.servers = args, [], []
        for name in [name for name in os.environ if name.startswith(("REGISTRY_", "DOCKER_", "CONTAINERS_"))]:
            del os.environ[name]  # what the caller set for a registry or a client of theirs
        self.build = Path(args.build).resolve()
        self.hearth = str(self.build / "bin/hearth")
        self.work = ROOT / "build/bench" / f"run-{os.getpid()}"
        self.work.mkdir(parents=True)
        subprocess.run(["chattr", "+T", self.work], check=False, stderr=subprocess.DEVNULL)
        self.data = self.work / "data"
        self.env = {"HEARTH_DATA": str(self.data)}
        self.made = 0
        self.layout = ROOT / "build/e2e/debian"
        run(ROOT / "scripts/debian-base.sh", self.layout)
        self.base = f"oci:{self.layout}:bookworm-slim"
        self.buildah = shutil.which("buildah")

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

    # Made for the first row that asks for it.

    @cached_property
    def image(self):
        """The base in a registry of our own."""
        registry = f"127.0.0.1:{free_port()}"
        config = self.work / "registry.yml"
        config.write_text(f'version: 0.1\nlog: {{level: error, accesslog: {{disabled: true}}}}\n'
                          f'storage: {{filesystem: {{rootdirectory: "{self.work}/registry"}}}}\n'
                          f'http: {{addr: "{registry}"}}\n')
        self.serve("docker-registry", "serve", config)
        self.wait("docker-registry", "curl", "-fsS", f"http://{registry}/v2/")
        run("skopeo", "--insecure-policy", "copy", "--dest-tls-verify=false", self.base,
            f"docker://{registry}/debian:bookworm-slim")
        return f"{registry}/debian:bookworm-slim"

    @cached_property
    def five(self):
        """A spec of five steps that were baked once."""
        spec = self.spec(FIVE)
        run(self.hearth, "bake", spec, env=self.env)
        return spec

    @cached_property
    def context(self):
        """The same five for the peers."""
        context = self.fresh("context")
        (context / "Dockerfile").write_text("\n".join([f"FROM {self.image}", *FIVE]) + "\n")
        return context

    @cached_property
    def docker(self):
        """A dockerd of our own, with the client of the same package; BuildKit is in both. None without one."""
        return self.start_docker() if shutil.which("dockerd") else None

    @cached_property
    def containers(self):
        """The environment of a buildah with a store of our own."""
        config = self.work / "containers.conf"
        config.write_text(f'[storage]\ndriver = "overlay"\nrunroot = "{self.work}/containers-run"\n'
                          f'graphroot = "{self.work}/containers"\n')
        return {"CONTAINERS_STORAGE_CONF": str(config), "BUILDAH_ISOLATION": "chroot"}

    def spec(self, steps, base=None):
        self.made += 1
        path = self.work / f"spec-{self.made}.json"
        path.write_text(json.dumps({"base": base or self.image, "steps": steps}))
        return str(path)

    def start_docker(self):
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
        return run(*self.docker, "build", "-q", "--network=host", *options, "-f", file or self.context / "Dockerfile",
                   context or self.context, env={"DOCKER_BUILDKIT": "1"})

    def buildah_build(self, *options):
        return run("buildah", "bud", "-q", "--layers", "--network=host", "--tls-verify=false", "-t", "bench", *options,
                   self.context, env=self.containers)

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

    def tree(self, directories, files, size):
        """A context of so many directories with so many files of different bytes."""
        top = self.fresh("tree")
        for d in range(directories):
            at = top / f"d{d}"
            at.mkdir()
            for n in range(files):
                (at / f"file-{n}").write_bytes(os.urandom(size // 4) * 4)
        return top

    def filler(self, data, *arguments):
        return said(self.build / "tests/bench/bench.many_images", data, *arguments)
