#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a program loads, and who else its own libraries bring: a cached bake is mostly the loader's time.

	libraries.py PROGRAM           it loads no more than hearth may
	libraries.py PROGRAM NAME...   it does not load these
"""
import re
import subprocess
import sys

MAY = {"libc.so.6", "libcrypto.so.3", "libjansson.so.4", "liblmdb.so.0", "libzstd.so.1", "libm.so.6", "libpthread.so.0", "libgcc_s.so.1",
       "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}

loaded = subprocess.run(["ldd", sys.argv[1]], check=True, capture_output=True, text=True).stdout
names = re.findall(r"^\s*(?:\S*/)?(\S+\.so\S*)", loaded, re.M)
names = [name for name in names if not name.startswith("linux-vdso")]
wrong = [name for name in names if name.startswith(tuple(sys.argv[2:])) or (len(sys.argv) == 2 and name not in MAY)]
print("loads", *names)
if wrong:
    print("must not load", *wrong)
sys.exit(bool(wrong) or "libc.so.6" not in names)
