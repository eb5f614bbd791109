"""What `proctor report --form` writes, read by the readers of those who made the forms: inspect_ai, every_eval_ever,
junitparser, from their registry into an environment beside the build that is made once.

Prints "did not run: NAME: there is no ..." where a reader cannot be had; then that part is not proved.
"""
import argparse
import json
import pathlib
import shutil
import subprocess
import sys

PACKAGES = {"inspect": ["inspect_ai==0.3.285"], "every-eval": ["every-eval-ever==0.3.0"], "junit": ["junitparser==5.0.3"]}

READ_INSPECT = r"""
import json, math, pathlib, sys
from inspect_ai.log import list_eval_logs, read_eval_log, read_eval_log_sample_summaries, read_eval_log_samples
folder = sys.argv[1]
out = {}
for info in list_eval_logs(folder):
    log = read_eval_log(info)
    samples = list(read_eval_log_samples(info, all_samples_required=log.status == "success"))
    summaries = read_eval_log_sample_summaries(info)
    assert len(samples) == len(summaries) == log.results.total_samples
    (score,) = log.results.scores
    values = {}
    for s in samples:
        value = s.scores["acceptance"].value
        values[f"{s.id}/{s.epoch}"] = "NaN" if isinstance(value, float) and math.isnan(value) else value
        assert s.messages[-1].text == s.scores["acceptance"].answer, s.id
    out[log.eval.metadata["proctor"]["method"]] = {
        "status": log.status, "task": log.eval.task, "model": log.eval.model, "values": values,
        "errors": sum(s.error is not None for s in samples), "limits": [s.limit.type for s in samples if s.limit],
        "metrics": {k: m.value for k, m in score.metrics.items()},
        "patches": sum(s.messages[-1].text.startswith("diff --git") for s in samples)}
try:
    import pandas, pyarrow
    from inspect_ai.analysis import evals_df, samples_df
    assert len(evals_df(folder)) == len(out)
    assert len(samples_df(folder)) == sum(len(v["values"]) for v in out.values())
except ImportError:
    pass  # its data frames want two packages more, of a hundred megabytes
print(json.dumps(out))
"""
READ_JUNIT = r"""
import json, sys
from junitparser import JUnitXml, Failure, Error, Skipped
out = {}
xml = JUnitXml.fromfile(sys.argv[1])
for suite in xml:
    kinds = {"Failure": 0, "Error": 0, "Skipped": 0}
    for case in suite:
        for result in case.result:
            kinds[type(result).__name__] += 1
    assert (suite.failures, suite.errors, suite.skipped) == tuple(kinds.values())
    out[suite.name] = {"tests": suite.tests, **kinds}
print(json.dumps(out))
"""


def run(*argv, **more):
    return subprocess.run([str(a) for a in argv], capture_output=True, text=True, timeout=500, **more)


def must(*argv, **more):
    done = run(*argv, **more)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, argv))}: exit code {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
    return done.stdout


def pythons():
    """Those that a reader may want, which are no older than 3.12, and ours; a shim of pyenv does not run by itself."""
    yield from filter(shutil.which, ("python3.12", "python3.13", "python3.14"))
    if shutil.which("pyenv"):
        yield from sorted(pathlib.Path(run("pyenv", "root").stdout.strip()).glob("versions/3.1[2-9]*/bin/python3"))
    yield sys.executable


def python_with(packages, at):
    """The interpreter of an environment that has them; nothing: the registry does not give it."""
    done = at / "made"
    python = at / "bin" / "python"
    if done.exists():
        return python
    for name in pythons():
        shutil.rmtree(at, ignore_errors=True)
        if run(name, "-m", "venv", at).returncode == 0:
            if run(python, "-m", "pip", "install", "-q", *packages).returncode == 0:
                done.touch()
                return python
    shutil.rmtree(at, ignore_errors=True)
    return None


def campaign(proctor, at):
    """One task; noop fails, reference passes, `quits` fails, `slow` is stopped at its cap."""
    shutil.rmtree(at, ignore_errors=True)
    must(proctor, "init", at)
    yaml = at / "campaign.yaml"
    text = yaml.read_text()
    begin = text.index("methods:\n") + len("methods:\n")
    more = ("  - name: quits\n    kind: command\n    command: exit 3\n"
            "  - name: slow\n    kind: command\n    command: while true; do :; done\n")
    yaml.write_text((text[:begin] + more + text[begin:]).replace("wall: 5m", "wall: 2s"))
    done = run(proctor, "run", at)
    if done.returncode not in (0, 1, 3):
        sys.exit(f"proctor run: exit code {done.returncode}\n{done.stderr[-3000:]}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--proctor", required=True)
    parser.add_argument("--work", required=True, type=pathlib.Path)
    args = parser.parse_args()
    args.work = args.work.absolute()
    args.work.mkdir(parents=True, exist_ok=True)
    folder = args.work / "campaign"
    campaign(args.proctor, folder)
    report = json.loads(must(args.proctor, "report", folder, "--json"))
    rows = {r["method"]: r for r in report["rows"] if r["stratum"] is None}
    rates = {r["method"]: r["rate"]["value"] for r in report["analysis"]["rates"]}
    ended = {m: r["ended"] for m, r in rows.items()}
    missing = []

    shutil.rmtree(args.work / "logs", ignore_errors=True)
    must(args.proctor, "report", folder, "--form", "inspect", "--out", args.work / "logs")
    if python := python_with(PACKAGES["inspect"], args.work / "inspect"):
        logs = json.loads(must(python, "-c", READ_INSPECT, args.work / "logs").splitlines()[-1])
        assert {m: len(v["values"]) for m, v in logs.items()} == {m: n for m, n in ended.items() if n}, (logs, ended)
        for method, log in logs.items():
            row, values = rows[method], list(log["values"].values())
            assert values.count("C") == row["success"] and values.count("I") == row["failure"], (method, log)
            assert values.count("NaN") == row["acceptance_error"] + row["invalid"], (method, log)
            assert log["errors"] == row["invalid"], (method, log)
            if rates[method] is not None:
                assert log["metrics"]["rate_over_tasks"] == rates[method], (method, log)
        assert logs["reference"]["patches"] == ended["reference"] and logs["slow"]["limits"] == ["time"] * ended["slow"]
        assert logs["reference"]["metrics"]["accuracy"] == 1 and logs["noop"]["metrics"]["accuracy"] == 0
        print("inspect_ai read", {m: v["values"] for m, v in logs.items()}, {m: v["limits"] for m, v in logs.items()})
    else:
        missing.append("inspect_ai")

    shutil.rmtree(args.work / "records", ignore_errors=True)
    must(args.proctor, "report", folder, "--form", "every-eval", "--out", args.work / "records")
    records = sorted((args.work / "records").rglob("*.json"))
    assert len(records) == sum(r is not None for r in rates.values()), records
    for record in records:
        said = json.loads(record.read_text())
        lines = (args.work / "records" / said["detailed_evaluation_results"]["file_path"]).read_text().splitlines()
        assert len(lines) == said["detailed_evaluation_results"]["total_rows"]
    if python := python_with(PACKAGES["every-eval"], args.work / "every-eval"):
        files = [*records, *sorted((args.work / "records").rglob("*.jsonl"))]
        must(python, "-m", "every_eval_ever", "validate", "--format", "json", *files, cwd=args.work / "records")
        print("every_eval_ever validated", len(files), "files")
    else:
        missing.append("every_eval_ever")

    if python := python_with(PACKAGES["junit"], args.work / "junit"):
        suites = json.loads(must(python, "-c", READ_JUNIT, folder / "reports" / "junit.xml"))
        for method, row in rows.items():
            assert suites[method] == {
                "tests": row["planned"], "Failure": row["failure"] + row["success"] - row["satisfied"],
                "Error": row["acceptance_error"] + row["invalid"], "Skipped": row["planned"] - row["ended"]}, (method, suites)
        print("junitparser read", suites)
    else:
        missing.append("junitparser")
    if missing:
        print("did not run: forms_readers: there is no " + ", no ".join(missing) + " here and its registry does not answer")


main()
