#!/usr/bin/env python3
"""Three quick published bug fixes through examples/releases: one each of Python, Go and Rust.

usage: releases_test.py --proctor PROGRAM --work FOLDER

The list of releases is no part of this repository, and registries may be out of reach.  Then the test says by name
what did not run and succeeds; everything that did run must be right.
"""
import argparse
import pathlib
import re
import subprocess
import sys

PROJECT = pathlib.Path(__file__).resolve().parents[3]
PAIRS = PROJECT.parent / "shared" / "data" / "releases" / "pairs.json"
QUICK = ("jsonpointer-3.2.1", "semver-go-3.2.1", "semver-rs-1.0.4")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--proctor", required=True)
    parser.add_argument("--work", required=True)
    parser.add_argument("--pairs", type=pathlib.Path, default=PAIRS)
    args = parser.parse_args()
    if not args.pairs.is_file():
        print(f"not run: there is no shared/data/releases/pairs.json beside this clone ({', '.join(QUICK)})")
        return 0
    done = subprocess.run([PROJECT / "examples" / "releases" / "run", "--proctor", args.proctor, "--work", args.work,
                           "--pairs", args.pairs, "-v", *QUICK], stdout=subprocess.PIPE, text=True, check=False)
    lines = done.stdout.splitlines()
    print(done.stdout)
    wrong = [] if len(lines) == len(QUICK) + 1 else ["expected one line per task and a sum"]
    passed = 0
    for name, line in zip(QUICK, lines):
        if line == f"OK {name} noop=failure reference=success":
            passed += 1
        elif line.startswith(f"SKIP {name}: ") or line.startswith(f"FAIL {name} download: "):
            print(f"not run: {line.split(' ', 2)[2]} ({name})")
        else:
            wrong.append(line)
    if not re.fullmatch(rf"{passed} passed, \d+ failed", lines[-1] if lines else ""):
        wrong.append(f"the sum: {lines[-1:]}")
    for line in wrong:
        print(f"wrong: {line}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
