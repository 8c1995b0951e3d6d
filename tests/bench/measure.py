# SPDX-License-Identifier: Apache-2.0
"""How long a command takes, and what memory."""
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path


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
