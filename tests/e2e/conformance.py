#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether a registry is one: conformance.py --url URL [--algorithm sha256|sha512]... [--token TOKEN] [--only TEXT]...
    [--mirror HOST@URL]
conformance.py --list

Every behaviour of the OCI Distribution specification 1.1 and of the additions on its main branch is a check of its own,
which makes what it needs; it prints "ok" or "FAILED" with the sentence, and what was wrong. The exit code is 0 if none
failed. With a TOKEN, which is an admin's of hearth, the checks of who may what run, too. With a mirror, all that is not about an
upload is read through it: it calls the registry HOST.
"""
import argparse
import sys

sys.dont_write_bytecode = True

from distribution import access, blobs, hostile, lists, manifests, uploads  # noqa: E402
from distribution.registry import Registry  # noqa: E402
from distribution.wire import RULES, Complaints, Wire, Wrong  # noqa: E402

FILES = (blobs, uploads, manifests, lists, access, hostile)


class Report:
    def __init__(self):
        self.good = self.bad = 0

    def say(self, sentence, wrong=None):
        if wrong is None:
            self.good += 1
            print(f"ok: {sentence}", flush=True)
        else:
            self.bad += 1
            print(f"FAILED: {sentence}\n    {wrong}", flush=True)


def registry_of(options, complaints, algorithm):
    bearer = f"Bearer {options.token}" if options.token else None
    if not options.mirror:
        return Registry(Wire(options.url, complaints, bearer), algorithm)
    host, _, url = options.mirror.partition("@")
    return Registry(Wire(options.url, Complaints()), algorithm, (Wire(url, complaints, bearer), host))


def judge(function, registry):
    """What is wrong, or None."""
    try:
        function(registry)
    except Wrong as wrong:
        return str(wrong)
    except (KeyError, TypeError, AttributeError, ValueError, IndexError) as bad:
        return f"an answer that cannot be read: {bad!r}"
    finally:
        registry.close()
    return None


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--url")
    arguments.add_argument("--algorithm", action="append", choices=("sha256", "sha512"))
    arguments.add_argument("--token")
    arguments.add_argument("--only", action="append", default=[], help="checks whose sentence begins so")
    arguments.add_argument("--mirror", help="HOST@URL")
    arguments.add_argument("--list", action="store_true", help="print the sentences of all checks")
    options = arguments.parse_args()
    if options.list or not options.url:
        print("\n".join([sentence for file in FILES for sentence, _, _ in file.checks.all] + RULES))
        sys.exit(not options.list)
    report, complaints = Report(), Complaints()
    for algorithm in options.algorithm or ("sha256", "sha512"):
        for sentence, function, needs in (check for file in FILES for check in file.checks.all):
            if (options.only and not sentence.startswith(tuple(options.only))) or (needs == "tokens" and not options.token):
                continue
            report.say(f"{sentence} ({algorithm})", judge(function, registry_of(options, complaints, algorithm)))
    if not options.only:
        for rule, seen in complaints.seen.items():
            report.say(rule, "\n    ".join(dict.fromkeys(seen[:5])) if seen else None)
    print(f"{report.good} ok, {report.bad} failed")
    sys.exit(bool(report.bad))


main()
