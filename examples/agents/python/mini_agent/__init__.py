"""A stand-in for an agent of Python packages: reads its briefing, changes a file, tells what it did."""
import json
import os
import pathlib


def main():
    if not os.environ.get("MINI_KEY"):
        raise SystemExit("mini-agent: MINI_KEY is not set")
    told = pathlib.Path(os.environ["PROCTOR_BRIEFING_FILE"]).read_text()
    file = pathlib.Path("greet.sh")
    before = file.read_text()
    file.write_text('echo "Hello, $1"\n')
    home = pathlib.Path.home() / ".mini-agent"
    home.mkdir(exist_ok=True)
    steps = [{"told": told}, {"file": str(file), "before": before, "after": file.read_text()}]
    (home / "traj.json").write_text(json.dumps(steps, indent=1))
