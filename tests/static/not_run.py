#!/usr/bin/env python3
"""not_run.py SCRIPTS: scripts/not-run says how much was left out and why, one line for each reason."""
import pathlib
import subprocess
import sys
import tempfile

LOG = """1/9 Test: cvdp_integration_tests
/x/sim_scene.cc:52: MESSAGE: not run: OCI sandboxes need root and runc (samples and prefixes)
/x/sim_scene.cc:52: MESSAGE: not run: OCI sandboxes need root and runc (selfcheck)
/x/kind_docker.cc:18: MESSAGE: not run: no Docker Engine answers at /tmp/proctor-docker.a1B2c3/sock
/x/kind_docker.cc:18: MESSAGE: not run: no Docker Engine answers at /tmp/proctor-docker.ZZZZZZ/sock
did not run: there is no shared/data/releases/pairs.json beside this clone (a, b)
not run: kill points of requests to Docker: no engine answers
"""
DUE = """Not run: 6 parts of tests, for 4 reasons:
     2  OCI sandboxes need root and runc
     2  no Docker Engine answers at sock
     1  kill points of requests to Docker: no engine answers
     1  there is no shared/data/releases/pairs.json beside this clone
"""


def said(script, text):
    with tempfile.NamedTemporaryFile("w") as log:
        log.write(text)
        log.flush()
        return subprocess.run([script, log.name], capture_output=True, text=True, check=False)


def main():
    script = pathlib.Path(sys.argv[1]) / "not-run"
    wrong = []
    for text, due in ((LOG, DUE), ("100% tests passed\n", "Nothing was left out.\n")):
        done = said(script, text)
        if (done.returncode, done.stdout) != (0, due):
            wrong.append(f"expected {due!r}, found {done.returncode} {done.stdout!r} {done.stderr!r}")
    if subprocess.run([script, "/nonexistent"], capture_output=True, check=False).returncode != 4:
        wrong.append("a log that is not there must be told")
    test = (script.parent / "test").read_text()
    if "log=build/$preset/Testing/Temporary/LastTest.log" not in test or 'scripts/not-run "$log"' not in test:
        wrong.append("scripts/test does not end with it")
    print("\n".join(wrong) or "ok")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
