#!/usr/bin/env python3
"""examples/releases on packages made here: no download, no list beside the clone.

usage: releases_local_test.py --proctor PROGRAM --work FOLDER

The two "releases" differ in every way that releases differ in: files changed, added, removed and made executable, on
both the tests' side and the source's, one under a name that a contract does not take, and one file that is neither.
"""
import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import types
import unittest

PROJECT = pathlib.Path(__file__).resolve().parents[3]
EXAMPLE = PROJECT / "examples" / "releases"
sys.dont_write_bytecode = True
sys.path.insert(0, str(EXAMPLE))

import campaign  # noqa: E402
import harness  # noqa: E402
import pairs  # noqa: E402
import pins  # noqa: E402
import task  # noqa: E402
import toolchains  # noqa: E402

ARGS = None

RUNNER = """#!/bin/sh
# Runs every case and prints TAP.
n=0
for case in tests/cases/*.sh; do
  n=$((n + 1))
  if sh "$case"; then word=ok; else word='not ok'; fi
  name=${case##*/}
  echo "$word $n - ${name%.sh}"
done
echo "1..$n"
"""
OLD = {
    "README": "release 1\n",
    "greet.sh": 'echo "hello $1"\n',
    "src/name.sh": "echo nobody\n",
    "src/gone.sh": "echo leftover\n",
    "src/data.bin": b"\x00\x01\x02",
    "tests/run.sh": RUNNER,
    "tests/cases/greets.sh": 'test "$(sh greet.sh Ada)" = "hello Ada"\n',
    "tests/cases/obsolete.sh": "false\n",
}
NEW = {
    "README": "release 2\n",
    "greet.sh": 'echo "hello, $1!"\n',
    "src/name.sh": "echo Ada\n",
    "src/tool.sh": ("#!/bin/sh\necho tool\n", 0o755),
    "src/data.bin": b"\x00\xff\x02",
    "tests/run.sh": RUNNER + "# second edition\n",
    "tests/cases/greets.sh": "test \"$(sh greet.sh Ada)\" = 'hello, Ada!'\n",
    "tests/cases/name & shell.sh": 'test "$(sh src/name.sh)" = Ada\n',
    "tests/cases/tool.sh": 'test "$(src/tool.sh)" = tool && test ! -e src/gone.sh\n',
    "tests/cases/data.sh": 'test "$(od -An -tx1 src/data.bin)" = " 00 ff 02"\n',
    "tests/cases/readme-stays.sh": 'test "$(cat README)" = "release 1"\n',
    "tests/cases/answer-hidden.sh": 'test -z "$(find "$PROCTOR_CONTRACT" -name "*.patch")"\n',
    "tests/cases/no-network.sh": "test \"$(ls /sys/class/net 2>/dev/null | grep -v '^lo$')\" = ''\n",
}
FIXED = ["data", "greets", "name & shell", "tool"]
STAYING = ["answer-hidden", "no-network", "readme-stays"]


def write(root, files):
    for path, value in files.items():
        data, mode = value if isinstance(value, tuple) else (value, 0o644)
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data if isinstance(data, bytes) else data.encode())
        place.chmod(mode)


def entry(name, **changes):
    return {"id": name, "ecosystem": "local", "package": "greeter", "old": "releases/1", "new": "releases/2",
            "test_paths": ["tests"], "src_paths": ["*.sh", "src"], "test_cmd": "sh tests/run.sh",
            "fail_to_pass": FIXED, "pass_to_pass_count": len(STAYING), "reason": "the greeting lacks its punctuation",
            **changes}


class Script(unittest.TestCase):
    """The whole way: two folders in, a Proctor campaign, one line out."""

    @classmethod
    def setUpClass(cls):
        cls.root = ARGS.work
        shutil.rmtree(cls.root, ignore_errors=True)
        write(cls.root / "releases" / "1", OLD)
        write(cls.root / "releases" / "2", NEW)
        cls.list = cls.root / "pairs.json"
        cls.list.write_text(json.dumps([
            entry("greeter-2"),
            entry("greeter-nowhere", needs=["no-such-compiler"]),
            entry("greeter-wrong", fail_to_pass=["greets", "sings"]),
            entry("greeter-easy", fail_to_pass=["readme-stays"]),
            entry("greeter-changed", sums={"old": "1234"}),
        ]))

    def run_script(self, *words, file=None):
        return subprocess.run([EXAMPLE / "run", "--pairs", file or self.list, "--proctor", ARGS.proctor,
                               "--work", self.root / "work", *words],
                              capture_output=True, text=True, timeout=600, check=False)

    def test_every_kind_of_line(self):
        done = self.run_script()
        lines = done.stdout.splitlines()
        self.assertEqual(done.stderr, "")
        self.assertEqual(lines[0], "OK greeter-2 noop=failure reference=success", done.stdout)
        self.assertEqual(lines[1], "SKIP greeter-nowhere: no-such-compiler is not on this machine")
        self.assertEqual(lines[2], "FAIL greeter-wrong 1 of the fail-to-pass tests do not pass with the new source, "
                                   "first: sings")
        self.assertEqual(lines[3], "FAIL greeter-easy 1 of the fail-to-pass tests pass without the new source, "
                                   "first: readme-stays")
        self.assertEqual(lines[4], "FAIL greeter-changed the old release has the checksum , recorded is 1234")
        self.assertEqual(lines[5:], ["1 passed, 3 failed"])
        self.assertEqual(done.returncode, 1)

        # The repository that the agent's workspace comes from holds the old release and nothing else.
        made = self.root / "work" / "tasks" / "greeter-2" / "campaign"
        objects = self.git(made, "cat-file", "--batch-check", "--batch-all-objects").split("\n")
        self.assertEqual(sum(" commit " in line for line in objects), 1)
        self.assertEqual(sum(" blob " in line for line in objects), len(OLD))
        commit = self.git(made, "rev-parse", "main")
        self.assertIn(commit, (made / "contracts" / "greeter-2.yaml").read_text())

        again = self.run_script("greeter-2")
        self.assertEqual(again.stdout, "OK greeter-2 noop=failure reference=success\n1 passed, 0 failed\n")
        self.assertEqual(again.returncode, 0)
        self.assertEqual(self.git(made, "rev-parse", "main"), commit, "the same release, another commit")

    @staticmethod
    def git(made, *words):
        return subprocess.run(["git", "--git-dir", made / "repository.git", *words], check=True, capture_output=True,
                              text=True).stdout.strip()

    def test_bad_input(self):
        for text, said in (("[{}]", "entry 1: no `id`"), ("{}", "expected a list"), ("[", "Expecting value"),
                           (json.dumps([entry("Greeter")]), "the id 'Greeter'"),
                           (json.dumps([entry("a"), entry("a")]), "two entries with the id a"),
                           (json.dumps([entry("a", old="--upload")]), "looks like an option"),
                           (json.dumps([entry("a", env=3)]), "`env` is 3")):
            file = self.root / "bad.json"
            file.write_text(text)
            done = self.run_script(file=file)
            self.assertIn(said, done.stderr)
            self.assertEqual(done.returncode, 2)
        done = self.run_script("greeter-3")
        self.assertIn("no greeter-3 in", done.stderr)
        self.assertEqual(done.returncode, 2)
        done = self.run_script(file=self.root / "absent.json")
        self.assertIn("no list of release pairs at", done.stderr)
        self.assertEqual(done.returncode, 2)


class Pieces(unittest.TestCase):
    def test_what_a_pattern_covers(self):
        for pattern, path, expected in (("tests", "tests/a/b.py", True), ("tests", "tests.py", False),
                                        ("*_test.go", "a/b_test.go", True), ("*_test.go", "a_test.go/b", False),
                                        ("*/testdata/*", "a/b/testdata/c/d", True),
                                        ("*/testdata/*", "testdata/c", False),
                                        (".", "anything", True), ("src/", "src/a", True)):
            self.assertEqual(pairs.covers([pattern], path), expected, (pattern, path))
        self.assertEqual(pairs.contract_globs(["*_test.go", "*/testdata/*", "testdata", "a?.c"]),
                         ["**/*_test.go", "**/a?.c", "**/testdata/**", "testdata"])

    def test_pins_are_read_and_told(self):
        tree = ARGS.work.parent / f"{ARGS.work.name}-pins"
        shutil.rmtree(tree, ignore_errors=True)
        write(tree, {"rust-toolchain.toml": '[toolchain]\nchannel = "1.99.1"\n', ".python-version": "3.9.1\n3.10\n",
                     "package.json": '{"engines": {"node": ">=99"}}'})
        self.assertEqual(pins.rust_pin(tree), ("rust-toolchain.toml", "1.99.1"))
        self.assertEqual(pins.python_pin(tree), (".python-version", "3.9.1"))
        self.assertEqual(pins.note(pins.node_pin(tree), "v18.2.0", "PATH"),
                         ["package.json asks for >=99; it runs with v18.2.0 (to choose: PATH)"])
        (tree / "rust-toolchain.toml").unlink()
        write(tree, {"rust-toolchain": "nightly-2024-01-01\n"})
        self.assertEqual(pins.note(pins.rust_pin(tree), "1.80.0", "RUSTUP_TOOLCHAIN=x")[0],
                         "rust-toolchain asks for nightly-2024-01-01; it runs with 1.80.0 (to choose: RUSTUP_TOOLCHAIN=x)")
        (tree / "rust-toolchain").unlink()
        write(tree, {"Cargo.toml": '[package]\nrust-version = "1.70"\n', "package.json": "{broken"})
        self.assertEqual(pins.note(pins.rust_pin(tree), "1.80.0", ""), [])  # enough
        self.assertEqual(len(pins.note(pins.rust_pin(tree), "1.63.0", "")), 1)
        self.assertIsNone(pins.node_pin(tree))
        self.assertEqual(pins.note(("f", "1.80"), "1.80.3", ""), [])

    def test_a_version_manager_that_reads_the_pin_is_not_asked(self):
        """cargo and rustc on PATH do as rustup does: they refuse where a toolchain is pinned that is not there."""
        work = ARGS.work.parent / f"{ARGS.work.name}-rust"
        shutil.rmtree(work, ignore_errors=True)
        real = "#!/bin/sh\ncase \"$*\" in *vendor*) for last; do :; done; mkdir -p \"$last\";; esac\n"
        proxy = ("#!/bin/sh\n[ ! -e rust-toolchain ] || { echo \"error: toolchain '1.99' is not installed\" >&2; exit 1; }\n"
                 'case "$*" in *sysroot) echo TOOLCHAIN;; --version) echo rustc 1.80.0;; esac\n'
                 ).replace("TOOLCHAIN", str(work / "toolchain"))
        write(work, {"proxies/cargo": (proxy, 0o755), "proxies/rustc": (proxy, 0o755), "proxies/cc": (proxy, 0o755),
                     "toolchain/bin/cargo": (real, 0o755), "old/rust-toolchain": "1.99\n", "old/Cargo.lock": "",
                     "old/Cargo.toml": "", "new/rust-toolchain": "1.99\n"})
        pair = types.SimpleNamespace(id="pinned", ecosystem="rust", package="pinned", new="2", home=work, env={},
                                     test_cmd="cargo test")
        trees = types.SimpleNamespace(old=work / "old")
        path = os.environ["PATH"]
        os.environ["PATH"] = f"{work / 'proxies'}{os.pathsep}{path}"
        built = toolchains.tree_maker.build
        toolchains.tree_maker.build = lambda _, __, folder: shutil.copytree(work / "old", folder)
        try:
            runtime = toolchains.runtime_of(pair, trees, work, work / "scratch")
        finally:
            os.environ["PATH"], toolchains.tree_maker.build = path, built
        self.assertEqual(runtime.notes, ["rust-toolchain asks for 1.99; it runs with 1.80.0 "
                                         "(to choose: RUSTUP_TOOLCHAIN=1.99)"])
        self.assertIn((str(work / "toolchain"), str(work / "toolchain")), runtime.toolchains)

    def test_go_results(self):
        events = [{"Action": "run", "Package": "p", "Test": "TestA"},
                  {"Action": "fail", "Package": "p", "Test": "TestA/#00_<&\">"},
                  {"Action": "pass", "Package": "p", "Test": "TestB"},
                  {"Action": "skip", "Package": "p", "Test": "TestC"}, {"Action": "fail", "Package": "p"},
                  {"Action": "fail", "Package": "q"}]
        found = harness.read_go("# noise\n" + "\n".join(map(json.dumps, events)) + "\n{broken\n")
        self.assertEqual(found, {"p::TestA/#00_<&\">": "fail", "p::TestB": "pass", "p::TestC": "skip",
                                 "q::<build>": "fail"})
        self.assertEqual(self.through("junit", harness.as_junit(found)), found)

    def test_cargo_results(self):
        found = harness.read_cargo("     Running unittests src/lib.rs\ntest a::b ... ok\n"
                                   "test c - should panic ... FAILED\ntest d ... ignored\nerror: could not compile `x`\n")
        self.assertEqual(found, {"a::b": "pass", "c - should panic": "fail", "d": "skip", "<build>": "fail"})
        self.assertEqual(self.through("tap", harness.as_tap(found)), found)

    def test_ctest_results(self):
        found = harness.read_ctest("1: /workspace/tests/misc_tests.c:12:adds:PASS\n"
                                   "/workspace/tests/misc_tests.c:13:breaks:FAIL: Expected 1\n"
                                   " 1/2 Test  #1: misc_tests .......***Exception: SegFault  0.10 sec\n"
                                   " 2/2 Test  #2: other ............   Passed    0.01 sec\n")
        self.assertEqual(found["misc_tests.c::breaks"], "fail")
        self.assertEqual((found["misc_tests"], found["other"]), ("fail", "pass"))

    def test_tap_keeps_every_character_of_an_id(self):
        odd = {r"a # b \c": "pass", "SKIP # SKIP": "fail", "#": "skip"}
        self.assertEqual(self.through("tap", harness.as_tap(odd)), odd)

    def test_yaml_quotes_what_yaml_would_change(self):
        value = {"a": ["no", {"b": 1, "c": []}], "d": {}, "e": True, "f": "x\x85\ny: #"}
        self.assertEqual(campaign.yaml(value),
                         'a:\n  - "no"\n  - b: 1\n    c: []\nd: {}\ne: true\nf: "x\\u0085\\ny: #"')

    @staticmethod
    def through(reader, text):
        file = ARGS.work.parent / f"{ARGS.work.name}-results"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return task.read_results(reader, file)


def main():
    global ARGS
    parser = argparse.ArgumentParser()
    parser.add_argument("--proctor", required=True, type=pathlib.Path)
    parser.add_argument("--work", required=True, type=pathlib.Path)
    ARGS = parser.parse_args()
    ARGS.work = pathlib.Path(os.path.abspath(ARGS.work))
    unittest.main(argv=[sys.argv[0]], verbosity=2)


if __name__ == "__main__":
    main()
