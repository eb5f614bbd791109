#!/usr/bin/env python3
"""Runs a test command and writes what its tests did as JUnit XML or TAP: harness.py KIND FILE COMMAND

KIND: go (`go test -json`), cargo (`cargo test`), ctest (`ctest -V`), tap (a command that prints TAP),
junit (a command that writes FILE itself; of test names of megabytes, which parameters can make, only the start stays).
Part of a contract's files: the sandbox shows it read-only.  The command's output is printed too.  FILE is written
whole or not at all, so that a harness that was stopped half-way leaves no result.  Exit code: 0 or 1 as the
command's; 127 without a FILE when the command could not be started.
"""
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree
from xml.sax.saxutils import quoteattr

PASS, FAIL, SKIP = "pass", "fail", "skip"


def read_go(text):
    """ids: PACKAGE::TEST; a package that fails without a test of its own did not build"""
    tests, packages, seen = {}, {}, set()
    words = {"pass": PASS, "fail": FAIL, "skip": SKIP}
    for line in text.splitlines():
        if not line.startswith("{"):
            continue
        try:
            event = json.loads(line)
        except ValueError:
            continue
        state, package = words.get(event.get("Action")), event.get("Package")
        if state is None or package is None:
            continue
        if "Test" in event:
            tests[f"{package}::{event['Test']}"] = state
            seen.add(package)
        else:
            packages[package] = state
    for package, state in packages.items():
        if state == FAIL and package not in seen:
            tests[f"{package}::<build>"] = FAIL
    return tests


def read_cargo(text):
    """ids: the path of the test in its crate"""
    tests = {}
    words = {"ok": PASS, "FAILED": FAIL, "ignored": SKIP}
    for line in text.splitlines():
        found = re.match(r"test (.+?) \.\.\. (ok|FAILED|ignored)", line)
        if found:
            tests[found[1]] = words[found[2]]
    if "could not compile" in text:
        tests["<build>"] = FAIL
    return tests


def read_ctest(text):
    """ids: PROGRAM, and FILE.c::TEST for what a Unity-style program prints about its tests"""
    tests = {}
    for line in text.splitlines():
        program = re.match(r"\s*\d+/\d+ Test\s+#\d+: (\S+) \.*\s*(Passed|\*\*\*)", line)
        if program:
            tests[program[1]] = PASS if program[2] == "Passed" else FAIL
        inner = re.match(r"(?:.*/)?(\S+\.c):\d+:(\w+):(PASS|FAIL|IGNORE)", line)
        if inner:
            tests[f"{inner[1]}::{inner[2]}"] = {"PASS": PASS, "FAIL": FAIL, "IGNORE": SKIP}[inner[3]]
    return tests


def as_junit(tests):
    def attribute(text):
        return quoteattr(re.sub(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "?", text))

    inside = {PASS: "", FAIL: "<failure/>", SKIP: "<skipped/>"}
    lines = [f"<testcase name={attribute(name)}>{inside[state]}</testcase>" for name, state in tests.items()]
    return "\n".join(["<?xml version=\"1.0\" encoding=\"utf-8\"?>", "<testsuite>", *lines, "</testsuite>", ""])


def as_tap(tests):
    lines = ["TAP version 13", f"1..{len(tests)}"]
    for number, (name, state) in enumerate(tests.items(), 1):
        name = re.sub(r"([\\#])", r"\\\1", " ".join(name.split()))
        lines.append(f"{'not ok' if state == FAIL else 'ok'} {number} - {name}" + (" # SKIP" if state == SKIP else ""))
    return "\n".join(lines) + "\n"


KINDS = {"go": (read_go, as_junit), "cargo": (read_cargo, as_tap), "ctest": (read_ctest, as_tap), "tap": None,
         "junit": None}
LONGEST_NAME = 1000


def write_whole(path, text):
    with open(path + ".part", "w", encoding="utf-8", errors="replace", newline="\n") as out:
        out.write(text)
    os.replace(path + ".part", path)


def shorten_names(path):
    if not os.path.isfile(path):
        return
    tree = xml.etree.ElementTree.parse(path)
    for case in tree.iter("testcase"):
        name = case.get("name", "")
        if LONGEST_NAME < len(name):
            case.set("name", name[:200] + "..." + hashlib.sha256(name.encode()).hexdigest()[:16])
    write_whole(path, xml.etree.ElementTree.tostring(tree.getroot(), encoding="unicode"))


def main():
    kind, file, command = sys.argv[1:]
    # To a file and not through a pipe: a child that the tests leave behind must not keep us waiting.
    with tempfile.TemporaryFile() as out:
        error = None if KINDS[kind] is None else subprocess.STDOUT
        code = subprocess.run(["/bin/sh", "-c", command], stdin=subprocess.DEVNULL, stdout=out, stderr=error).returncode
        out.seek(0)
        text = out.read().decode("utf-8", "replace")
    sys.stdout.buffer.write(text.encode("utf-8", "replace"))
    sys.stdout.flush()
    if code in (126, 127):
        return 127
    if kind == "junit":
        shorten_names(file)
    elif KINDS[kind] is None:
        write_whole(file, text)
    else:
        read, write = KINDS[kind]
        write_whole(file, write(read(text)))
    return 0 if code == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
