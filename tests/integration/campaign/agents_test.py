#!/usr/bin/env python3
"""The campaigns of examples/agents as docs/agents.md has them: the agent is installed once, solves its task with its
key, and what it wrote about it is kept; no check and no other method sees any of it."""
import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys

NEEDS = {
    "python": (["/usr/bin/python3", "-c", "import ensurepip, venv"], "python3-venv in /usr/bin/python3"),
    "node": (["/usr/bin/npm", "--version"], "npm in /usr/bin"),
}


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--proctor", required=True)
    options.add_argument("--examples", required=True)
    options.add_argument("--work", required=True)
    options.add_argument("--kind", choices=NEEDS, required=True)
    o = options.parse_args()
    probe, what = NEEDS[o.kind]
    try:
        subprocess.run(probe, check=True, capture_output=True, timeout=120)
    except (OSError, subprocess.SubprocessError):
        print(f"did not run: agents_{o.kind}: there is no {what}")
        return
    folder = pathlib.Path(o.work)
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([pathlib.Path(o.examples) / "agents/make", folder, o.kind], check=True)

    def proctor(*args):
        environment = dict(os.environ, MINI_KEY="a-key-of-this-test")
        ran = subprocess.run([o.proctor, *args[:1], folder, *args[1:]], env=environment, capture_output=True, text=True)
        if ran.returncode != 0:
            sys.exit(f"proctor {' '.join(args)}: {ran.returncode}\n{ran.stdout}{ran.stderr}")
        return ran.stdout

    proctor("run", "--workers", "1", "--slots", "1")
    uses = []
    for r in ("r1", "r2"):
        attempt = folder / "runs/greet/mini" / r / "attempt-1"
        report = json.loads((attempt / "report.json").read_text())
        assert report["outcome"] == "success", report
        kept = list((attempt / "agent/kept/home/.mini-agent").glob("traj*"))
        assert len(kept) == 1 and "must print" in kept[0].read_text(), kept
        uses.append(json.loads((attempt / "manifest.json").read_text())["method"]["setup_cache"]["use"])
        noop = json.loads((folder / "runs/greet/noop" / r / "attempt-1/report.json").read_text())
        assert noop["outcome"] == "failure", noop
    assert sorted(uses) == ["hit", "miss"], uses
    everything = subprocess.run(["grep", "-rl", "a-key-of-this-test", folder / "runs", folder / ".proctor"],
                                capture_output=True, text=True).stdout
    assert everything == "", everything
    proctor("verify")
    shutil.rmtree(folder)


main()
