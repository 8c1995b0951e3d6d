#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Cases of steps as files: cases.py CASES BASE FROM DIR

Of each "== name" in CASES, with steps between lines of "--", DIR/<number>/ gets the name, the steps as a spec on the
base BASE, and as a Containerfile on FROM. A "! PATTERN: reason" below the name says that the builders differ, and in
which lines alone; lines of "% RULE" behind it are the context's .dockerignore. Prints the numbers.
"""
import json
import pathlib
import sys

cases, base, start, out = sys.argv[1:]
text = pathlib.Path(cases).read_text()
for number, case in enumerate(text.split("\n== ")[1:], 1):
    name, _, body = case.partition("\n")
    pattern = reason = ""
    if body.startswith("! "):
        line, _, body = body[2:].partition("\n")
        pattern, _, reason = line.partition(": ")
    rules = []
    while body.startswith("% "):
        line, _, body = body[2:].partition("\n")
        rules.append(line + "\n")
    steps = body.rstrip("\n").split("\n--\n")
    directory = pathlib.Path(out, f"{number:03}")
    directory.mkdir(parents=True)
    (directory / "name").write_text(name)
    (directory / "pattern").write_text(pattern)
    (directory / "reason").write_text(reason)
    (directory / "dockerignore").write_text("".join(rules))
    (directory / "spec.json").write_text(json.dumps({"base": base, "steps": steps}))
    (directory / "Containerfile").write_text("\n".join([f"FROM {start}", *steps]) + "\n")
    print(directory.name)
