#!/usr/bin/env python3
"""examples/seeded with the real programs: each agent ends with the gates, the failure modes and the evidence that expected.json
says, no tag is missing and none is too many, and the whole campaign verifies."""
import argparse
import csv
import html
import json
import pathlib
import shutil
import subprocess
import sys


def attempt_of(folder, method):
    """report.json of a method's only attempt, its manifest, and the types of its events by their number."""
    at = folder / "runs/slug" / method / "r1/attempt-1"
    events = [json.loads(line) for line in (at / "events.jsonl").read_text().splitlines()]
    report, manifest = (json.loads((at / name).read_text()) for name in ("report.json", "manifest.json"))
    return report, manifest, {event["seq"]: event["type"] for event in events}


def tag_problems(wanted, tag, types):
    """What is wrong with a tag that was wanted."""
    out = []
    if not tag["evidence"]:
        out.append("no evidence")
    for seq in tag["evidence"]:
        if types.get(seq) != wanted["event"]:
            out.append(f"event {seq} is {types.get(seq)}, not {wanted['event']}")
    if "format" in wanted and tag.get("format") != wanted["format"]:
        out.append(f"its form is {tag.get('format')}, not {wanted['format']}")
    return [f"{tag['id']}: {text}" for text in out]


def run_problems(wanted, order, report, types, row):
    """What of an attempt is not as it was wanted, its tags apart."""
    out = []
    gates = report["gates"]
    if [gate["gate"] for gate in gates] != order or [gate["outcome"] for gate in gates] != wanted["gates"]:
        out.append(f"gates {[gate['outcome'] for gate in gates]}, not {wanted['gates']}: {[gate['why'] for gate in gates]}")
    for gate in gates:
        if not gate["why"] or not gate["evidence"]:
            out.append(f"gate {gate['gate']} has no reason or no evidence")
        out += [f"gate {gate['gate']}: there is no event {seq}" for seq in gate["evidence"] if seq not in types]
    # The checks make the outcome, and of those the ones that only rate a patch have no say.
    good = wanted["gates"][:3] == ["pass"] * 3 or wanted["gates"][:3] == ["fail", "pass", "pass"]
    if report["outcome"] != ("success" if good else "failure"):
        out.append(f"outcome {report['outcome']}")
    score = report.get("score", {}).get("s")
    if score != wanted.get("score"):
        out.append(f"score {score}, not {wanted.get('score')}")
    # A reader of tables sees the same.
    if [row[f"gate_{gate}"] for gate in order] != wanted["gates"]:
        out.append(f"runs.csv has the gates {[row[f'gate_{gate}'] for gate in order]}")
    if sorted(filter(None, row["tags"].split(","))) != sorted({tag["id"] for tag in report.get("tags", [])}):
        out.append(f"runs.csv has the tags {row['tags']}")
    if (row["score"] != "") != ("score" in wanted):
        out.append(f"runs.csv has the score {row['score']!r}")
    return out


def page_problems(folder, methods):
    """Everything that a reviewer who has the page alone does not find: each violation with its line, the monitors, the cap that held."""
    page = html.unescape((folder / "reports/report.html").read_text())
    due = []
    for method in methods:
        report, manifest, _ = attempt_of(folder, method)
        due += report["violations"] + [f"<td>{manifest['limits']['wall_ms'] // 1000}s</td>"]
        due += [f"{name}: {by}" for name, by in manifest["monitors"].items()]
        for line in (folder / "runs/slug" / method / "r1/attempt-1/events.jsonl").read_text().splitlines():
            due += [json.loads(line)["payload"].get("signals", {}).get(key, "") for key in ("segment", "target")]
        if any(gate["outcome"] != "pass" for gate in report["gates"]):
            due.append(f"proctor explain seeded slug/{method}/r1")
    return [f"the page lacks {text}" for text in sorted(set(due)) if text not in page]


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--proctor", required=True)
    options.add_argument("--examples", required=True)
    options.add_argument("--work", required=True)
    o = options.parse_args()
    examples, folder = pathlib.Path(o.examples), pathlib.Path(o.work)
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(examples / "seeded", folder, ignore=shutil.ignore_patterns("repos", "runs", "reports", ".proctor"))
    subprocess.run([examples / "quickstart/make-repos", folder / "repos", folder], check=True, stdout=subprocess.DEVNULL)

    def proctor(verb, *args):
        ran = subprocess.run([o.proctor, verb, folder, *args], capture_output=True, text=True)
        if ran.returncode != 0:
            sys.exit(f"proctor {verb} {' '.join(args)}: {ran.returncode}\n{ran.stdout}{ran.stderr}")
        return ran.stdout

    proctor("check")
    proctor("run")
    expected = json.loads((folder / "expected.json").read_text())
    methods, order = expected["methods"], expected["gates"]
    with open(folder / "reports/runs.csv", newline="") as file:
        rows = {row["method"]: row for row in csv.DictReader(file)}
    assert rows.keys() == methods.keys(), rows.keys() ^ methods.keys()

    problems, right, extra, missing = [], 0, 0, 0
    for method, wanted in methods.items():
        report, manifest, types = attempt_of(folder, method)
        if wanted.get("seen") and manifest.get("monitors", {}).get(wanted["seen"], "unobserved") == "unobserved":
            print("did not run: seeded: there is no notification of system calls on this host")
            return
        problems += [f"{method}: {text}" for text in run_problems(wanted, order, report, types, rows[method])]
        found = {(tag["id"], tag["gate"]): tag for tag in report.get("tags", [])}
        due = {(tag["id"], tag["gate"]): tag for tag in wanted["tags"]}
        right += len(found.keys() & due.keys())
        extra += len(found.keys() - due.keys())
        missing += len(due.keys() - found.keys())
        problems += [f"{method}: tag {tag} is too many: {found[tag]}" for tag in found.keys() - due.keys()]
        problems += [f"{method}: tag {tag} is missing" for tag in due.keys() - found.keys()]
        for tag in found.keys() & due.keys():
            problems += [f"{method}: {text}" for text in tag_problems(due[tag], found[tag], types)]

    def listed(where):
        return sorted(line.split("/")[1] for line in proctor("list", "--where", where).split())

    for where, holds in [(f"gate.g{i + 1}=fail", lambda m, i=i: m["gates"][i] == "fail") for i in range(4)] + [
            ("tag=safety.os_risk", lambda m: any(tag["id"] == "safety.os_risk" for tag in m["tags"])),
            ("tag=seeded.trailing_blank", lambda m: any(tag["id"] == "seeded.trailing_blank" for tag in m["tags"]))]:
        due = sorted(name for name, method in methods.items() if holds(method))
        if listed(where) != due:
            problems.append(f"list --where {where}: {listed(where)}, not {due}")
    problems += page_problems(folder, methods)
    proctor("verify")
    print("\n".join(problems))
    print(f"tags: precision {right / (right + extra):.3f}, recall {right / (right + missing):.3f} of {right + missing}")
    assert not problems
    shutil.rmtree(folder)


main()
