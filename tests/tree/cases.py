#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tests/CASES.md has a row for each number, and each test that a row names is there."""
import functools
import re
import subprocess
import sys
from pathlib import Path

# Which rules and cases there are: gaps are cases of what hearth will never be.
NUMBERS = ("L1-9 F1-5 J1-6 V1-13 E1-8 W1-7 C1-23 R1-11 D1-5 "
           "T1 T3-12 T14-23 T25 T26 T28 T29 T31-33 T35-38 T40-43 T45-48 T50-56 T58-61 T63 T65 T66 T68 "
           "P1-24 S1-28 M1-19 B1-11 B13-16 B18 B19 B21-24 B26-33 B35 B36 B38 B39 B41 B42 B44 B47 "
           "K1-11 H1-3 H5-7 H9 H10 H12 H13 H15 H17 H18 A1-15")
ROW = re.compile(r"^\| ([A-Z]\d+) \| .+ \| (.+) \|$", re.M)
TEST = re.compile(r"`(\S+\.(?:c|sh|cases|py)): ([^`]+)`")


def numbers():
    for letter, first, last in re.findall(r"([A-Z])(\d+)(?:-(\d+))?", NUMBERS):
        yield from (f"{letter}{n}" for n in range(int(first), int(last or first) + 1))


@functools.cache
def text_of(path):
    """A file of tests; of a suite what it says that it checks."""
    if path.suffix != ".py":
        return path.read_text()
    return subprocess.run([path, "--list"], check=True, capture_output=True, text=True).stdout


def has(text, kind, name):
    """Whether a file of tests has this one: a function that main runs, a sentence, or a case's name."""
    if kind == ".py":
        return name in text.splitlines()
    if kind == ".c":
        return (re.search(rf"^static void {name}\(", text, re.M) and
                re.search(rf"^\t+\w+\(\s*{name}[,)]", text, re.M))
    if kind == ".sh":
        return f'"{name}"' in text
    return f"\n== {name}\n" in text


def judge(row, tests):
    """Each complaint about what one row names."""
    named = TEST.findall(row)
    if not named and not row.startswith("not here"):
        yield "names no test and no reason"
    for file, name in named:
        path = tests / file
        if not path.is_file():
            yield f"{file} is not there"
        elif not has(text_of(path), path.suffix, name):
            yield f"{file} has no '{name}'"


def main():
    tests = Path(sys.argv[1]) / "tests"
    rows = ROW.findall((tests / "CASES.md").read_text())
    bad = [(number, what) for number, row in rows for what in judge(row, tests)]
    found = [number for number, _ in rows]
    bad += [(number, "is missing") for number in numbers() if number not in found]
    bad += [(number, "is no number, or there twice") for number in found
            if number not in set(numbers()) or found.count(number) > 1]
    for number, what in bad:
        print(number, what)
    print(f"{len(rows)} rows, {len(bad)} complaints")
    sys.exit(bool(bad))


main()
