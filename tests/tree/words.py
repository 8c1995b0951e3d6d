#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Words that no source of ours may hold: unsafe calls, unfinished work, a comment in the other style."""
import re
import sys
from pathlib import Path

KINDS = (".c", ".h", ".js", ".mjs", ".ts")
MODULES = ("layers", "registry", "sandbox", "bake", "api")
BANNED = ("strcpy strcat sprintf vsprintf strtok gets atoi strtol strtoul alloca dup system popen tmpnam access "
          "realpath chdir usleep getenv").split()
MAY = {"getenv": "api/"}  # the doors alone read the environment
CALL = re.compile(r"(?<![\w.>])(" + "|".join(BANNED) + r")\s*\(")
TOKEN = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
UNFINISHED = re.compile(r"\b(TO" + "DO|FIX" + r"ME|XXX|HACK)\b")
LICENSE = re.compile(r"^(/\*|#|//|<!--) ?SPDX-License-Identifier: Apache-2.0")


def blank(match):
    """What a token leaves: its line breaks, and a mark where it was a // comment."""
    token = match.group()
    return "\0" if token.startswith("//") else "\n" * token.count("\n")


def judge(name, text):
    """Each complaint about one file."""
    if not LICENSE.match(text):
        yield 1, "the first line is not the license"
    for number, line in enumerate(text.splitlines(), 1):
        if UNFINISHED.search(line):
            yield number, "unfinished work"
    if name.endswith((".c", ".h")):
        yield from judge_c(name, text)


def judge_c(name, text):
    """What C alone may not hold."""
    for number, line in enumerate(TOKEN.sub(blank, text).splitlines(), 1):
        if "\0" in line:
            yield number, "a // comment"
        for call in CALL.findall(line):
            if not name.startswith(MAY.get(call, "\0")):
                yield number, f"{call}() is banned"


def self_check():
    """A check that finds nothing in what is wrong is no check."""
    head = "/* SPDX-License-Identifier: Apache-2.0 */\n"
    wrong = ["strcpy(a, b);", "x = atoi (s);", "int a; // b", 'getenv("A");', "/* FIX" + "ME */", "if (!access(p, 0))"]
    right = ["fd_access(p);", '"http://x"', "/* dup() and // */", "t->access(p)", "faccessat(a, b, c, d);", "strtoull(a, b, 10);"]
    for line in wrong:
        assert len(list(judge("bake/x.c", head + line))) == 1, line
    for line in right:
        assert not list(judge("bake/x.c", head + line)), line
    assert list(judge("bake/x.c", "int a;"))
    assert not list(judge("api/x.c", head + 'getenv("A");'))
    assert not list(judge("api/x.js", head + "open(); // b"))
    assert list(judge("api/x.js", head + "/* FIX" + "ME */"))


def main():
    self_check()
    root = Path(sys.argv[1])
    files = [p for m in (*MODULES, "tests") if (root / m).is_dir() for p in sorted((root / m).rglob("*"))
             if p.suffix in KINDS]
    bad = [(p.relative_to(root), *found) for p in files for found in judge(str(p.relative_to(root)), p.read_text())]
    for name, line, what in bad:
        print(f"{name}:{line}: {what}")
    print(f"{len(files)} files, {len(bad)} complaints")
    sys.exit(bool(bad) or not files)


main()
