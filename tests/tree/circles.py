#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Headers that include each other, by whatever way round. A noun's public and private header count as one."""
import re
import sys
from pathlib import Path

MODULES = ("layers", "registry", "sandbox", "bake", "api")
INCLUDE = re.compile(r'^#include "([^"]+)"', re.M)


def noun(header):
    return re.sub(r"(_priv)?\.h$", "", header)


def includes_of(root):
    found = {}
    for module in MODULES:
        for path in sorted((root / module).rglob("*.h")):
            name = noun(str(path.relative_to(root)))
            others = {noun(other) for other in INCLUDE.findall(path.read_text())}
            found.setdefault(name, set()).update(others - {name})
    return found


def circle(name, includes, way, done):
    """The nouns of a circle that can be reached from name, or None; way is how we came here."""
    if name in way:
        return way[way.index(name):] + [name]
    if name in done:
        return None
    for other in sorted(includes.get(name, ())):
        found = circle(other, includes, way + [name], done)
        if found:
            return found
    done.add(name)
    return None


includes = includes_of(Path(sys.argv[1]))
done = set()
found = [way for way in (circle(name, includes, [], done) for name in includes) if way]
if found:
    print("a circle of headers:", " -> ".join(found[0]))
sys.exit(bool(found))
