#!/usr/bin/env python3
"""options_test.py SCRIPTS: what scripts/test, setup and lint take, without building or installing anything.

The scripts are copied into an empty tree, so that scripts/test --slowest reads a log of ours.  Also what
cmake/discover_tests.py makes of the cases that a program lists, and which commit cmake/build_commit.cmake gives a build.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

LOG = """Start testing: Nov 28 16:19 UTC
1/3 Test: quick one
Output:
Test time =  99.00 sec
<end of output>
Test time =   0.12 sec
3/3 Test: suite: the slowest, whatever it says
Output:
2/2 Test: no test
no end of line<end of output>
Test time =  12.50 sec
2/3 Test: in between
Output:
<end of output>
Test time =   3.04 sec
"""
WRONG = {
    "test": [["--slowest"], ["--slowest", "many"], ["--slowest", "0"], ["--preset"], ["--preset", "fuzz"], ["--label"],
             ["--sanitizers", "--preset", "dev"], ["--nothing"], ["nothing"]],
    "lint": [[], ["--nothing"], ["--ratchet", "lint"], ["--format", "--tidy"]],
    "setup": [["--nothing"], ["nothing"], ["--list", "--nothing"]],
}


def run(script, *arguments):
    return subprocess.run([script, *arguments], capture_output=True, text=True, check=False)


def discover(folder, name):
    """What discover_tests.py says and writes of a program with one case, where the locale knows only ASCII."""
    program, tests, out = (folder / part for part in ("program", "tests", "out.cmake"))
    program.write_text(f"#!/bin/sh\ncat <<'END'\n<doctest><TestCase {name} filename='/x/a_test.cc' line='7'/></doctest>\nEND\n", encoding="utf-8")
    program.chmod(0o755)
    tests.write_text("name=unit|files=/a_test.cc|labels=|full=|timeout=1|folder=/|environment=|serial=|unprivileged=\n")
    ascii_only = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run([sys.executable, pathlib.Path(sys.argv[1]).parent / "cmake/discover_tests.py", program, tests, out],
                          env=ascii_only, capture_output=True, text=True, check=False)
    return done, out.read_text(encoding="utf-8") if out.is_file() else ""


def commit_of(source, out):
    """The commit that a build of `source` says, and when its file was last written."""
    script = pathlib.Path(sys.argv[1]).parent / "cmake/build_commit.cmake"
    subprocess.run(["cmake", "-D", f"SOURCE={source}", "-D", f"OUT={out}", "-P", script], check=True, capture_output=True)
    return out.read_text().split('return "')[1].split('"')[0], out.stat().st_mtime_ns


def check_commits(folder, check):
    checkout, out = folder / "checkout", folder / "build_commit.cc"
    checkout.mkdir()

    def git(*words):
        return subprocess.run(["git", "-C", checkout, "-c", "user.name=a", "-c", "user.email=a@b", *words], check=True,
                              capture_output=True, text=True).stdout.strip()
    check(commit_of(checkout, out)[0] == "unknown", "a tarball has no commit")
    git("init", "-q")
    (checkout / "file").write_text("1")
    git("add", "file")
    git("commit", "-q", "-m", "first")
    git("tag", "-a", "v1", "-m", "a tag is no commit")
    first = commit_of(checkout, out)
    check(first[0] == git("rev-parse", "--short=12", "HEAD"), first)
    check(commit_of(checkout, out) == first, "a file that would be the same is written again")
    (checkout / "file").write_text("2")
    check(commit_of(checkout, out)[0] == first[0] + "-dirty", "changes do not show")
    (checkout / "inner").mkdir()
    check(commit_of(checkout / "inner", out)[0] == "unknown", "a tarball in a checkout has that one's commit")


def main():
    wrong = []

    def check(held, what):
        if not held:
            wrong.append(str(what))

    with tempfile.TemporaryDirectory() as folder:
        scripts = pathlib.Path(folder) / "scripts"
        shutil.copytree(sys.argv[1], scripts)
        for name, lines in WRONG.items():
            for line in lines:
                done = run(scripts / name, *line)
                check((done.returncode, done.stdout) == (2, "") and done.stderr, (name, line, done))

        done = run(scripts / "lint", "--help")
        check(done.returncode == 0 and "scripts/lint worker/sandbox README.md" in done.stdout, done)

        done = run(scripts / "test", "--slowest", "2")
        check(done.returncode == 4 and "run scripts/test first" in done.stderr, done)
        log = pathlib.Path(folder) / "build/dev/Testing/Temporary/LastTest.log"
        log.parent.mkdir(parents=True)
        log.write_text(LOG)
        done = run(scripts / "test", "--preset", "dev", "--slowest", "2")
        check(done.returncode == 0 and done.stdout == "    12.5  suite: the slowest, whatever it says\n     3.0  in between\n", done)

        check_commits(pathlib.Path(folder), check)
        done, _ = discover(pathlib.Path(folder), "")  # as doctest writes a case whose name is ""
        check(done.returncode == 1 and "/x/a_test.cc:7: a test case needs a name" in done.stderr, done)
        done, written = discover(pathlib.Path(folder), "name='§ holds'")
        check(done.returncode == 0 and "[==[unit: § holds]==]" in written, (done, written))

        parts = [run(scripts / "setup", *part, "--list").stdout.split() for part in ([], ["--tests"], ["--full"])]
        for smaller, larger in zip(parts, parts[1:]):
            check(set(smaller) < set(larger), (smaller, larger))
        for part, packages in enumerate((["bubblewrap", "redis-server"], ["docker.io", "doctest-dev"], ["clang-14", "fish", "runsc"])):
            for package in packages:
                check([package in listed for listed in parts] == [part <= at for at in range(3)], (package, parts))
        check(all(len(set(part)) == len(part) for part in parts), "a package is in two lists")
    print("\n".join(wrong) or "ok")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
