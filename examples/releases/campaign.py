"""Writes the campaign of one task, lets Proctor run it and reads what came out."""
import json
import os
import pathlib
import re
import signal
import subprocess

from pairs import contract_globs
from shell import Failed, last_line
from task import SETUP_TIMEOUT, check_timeout

METHODS = {"noop": "failure", "reference": "success"}  # and how each must end
AGENT_WALL = 600

PRICES = """action_type,unit,unit_price,notes
sandbox,minute,0.01,
run,run,0.001,scheduling and bookkeeping
"""


def _scalar(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    # A JSON string is a YAML string, but for characters that YAML does not print.
    text = json.dumps(value, ensure_ascii=False)
    return re.sub("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]", lambda c: f"\\u{ord(c[0]):04x}", text)


def yaml(value, indent=0):
    """Block style for mappings and lists, quoted texts: enough for a contract."""
    pad = "  " * indent
    lines = []
    items = value.items() if isinstance(value, dict) else ((None, item) for item in value)
    for key, item in items:
        head = f"{pad}{key}:" if key is not None else f"{pad}-"
        if isinstance(item, dict) and item and key is None:
            lines.append(pad + "- " + yaml(item, indent + 1).lstrip())
        elif isinstance(item, (dict, list)) and item:
            lines.append(head + "\n" + yaml(item, indent + 1))
        elif isinstance(item, (dict, list)):
            lines.append(head + (" {}" if isinstance(item, dict) else " []"))
        else:
            lines.append(f"{head} {_scalar(item)}")
    return "\n".join(lines)


def _word(text):
    return re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_") or "bug_fix"


def _briefing(pair):
    version = pair.old.partition("/")[0]
    text = (f"The sources of {pair.package} {version} are in the workspace.  Its next release repaired what follows."
            "  Make the same repairs in:\n" + "".join(f"  - {path}\n" for path in pair.src_paths)
            + f"\n{pair.reason or 'No description was recorded.'}\n")
    if pair.note:
        text += f"\nNote: {pair.note}\n"
    return text + f"\nThe tests are run with: {pair.test_cmd}\n"


def contract_of(pair, task):
    runtime = task.runtime
    seconds = "fast" if pair.seconds < 5 else "medium" if pair.seconds < 30 else "slow"
    many = "none" if runtime.dependencies == 0 else "few" if runtime.dependencies <= 5 else "many"
    return {
        "id": pair.id,
        "title": f"{pair.package}: from {pair.old} to {pair.new}"[:200],
        "type": _word(pair.type),
        "strata": {"language": runtime.language, "runtime": seconds, "dependencies": many},
        "briefing": _briefing(pair),
        "repository": {"source": "../repository.git", "commit": task.commit},
        "environment": {
            "sandbox": "bubblewrap",
            "variables": {name: str(value) for name, value in runtime.variables.items()},
            "toolchains": [{"path": path, "at": at} for path, at in runtime.toolchains],
        },
        "setup": [{"command": command, "timeout": f"{SETUP_TIMEOUT}s"} for command in runtime.setup],
        "checks": [{
            "id": "tests",
            "command": task.command,
            "kind": "unit",
            "timeout": f"{check_timeout(pair)}s",
            "result": runtime.reader,
            "result_file": runtime.result_file,
            "fail_to_pass": pair.fail_to_pass,
            "pass_to_pass": task.pass_to_pass,
            "others_may_fail": True,
        }],
        "gates": {"build": "none"},
        "acceptance_files": [{"from": kept, "to": place} for kept, place in task.acceptance],
        "policy": {"network": False, "protected": contract_globs(pair.test_paths), "wall": f"{AGENT_WALL}s",
                   "memory": "4GiB", "processes": 1024, "disk": "4GiB"},
        "reference_patch": f"{pair.id}.patch",
        "files": task.extra_files,
    }


def _write(pair, task):
    (task.contracts / f"{pair.id}.yaml").write_text(yaml(contract_of(pair, task)) + "\n", encoding="utf-8")
    (task.campaign / "campaign.yaml").write_text(yaml({
        "name": f"release-{pair.id}"[:100], "methods": list(METHODS), "replicates": 1,
        "budget": {"global": "20.00", "run": "2.00"},
        "workers": len(METHODS), "slots": 1}) + "\n", encoding="utf-8")
    (task.campaign / "pilot_cost_model.csv").write_text(PRICES)


def _proctor(pair, task, settings):
    """The exit code.  Its output is in proctor.log; a Proctor that hangs is interrupted, then killed."""
    most = 2 * (check_timeout(pair) + SETUP_TIMEOUT) + AGENT_WALL
    with open(task.folder / "proctor.log", "wb") as log:
        child = subprocess.Popen([str(settings.proctor), "run", str(task.campaign)], stdin=subprocess.DEVNULL,
                                 stdout=log, stderr=subprocess.STDOUT, start_new_session=True)
        for wait, stop in ((most, signal.SIGINT), (5, signal.SIGINT), (60, signal.SIGKILL), (None, None)):
            try:
                code = child.wait(wait)
                return code if wait == most else None
            except subprocess.TimeoutExpired:
                os.killpg(child.pid, stop)
    return None


def _report(task, method, pair_id):
    attempts = sorted((task.campaign / "runs" / pair_id / method / "r1").glob("attempt-*/report.json"))
    if not attempts:
        return None
    return json.loads(pathlib.Path(attempts[-1]).read_text(encoding="utf-8"))


def _why(report):
    check = next(iter(report.get("checks", [])), {})
    return check.get("why") or report.get("rationale") or "no reason recorded"


def run(pair, task, settings):
    """(OK or FAIL, the line)"""
    _write(pair, task)
    settings.say(pair, "proctor run")
    code = _proctor(pair, task, settings)
    reports = {method: _report(task, method, pair.id) for method in METHODS}
    if code is None:
        raise Failed(f"proctor run did not end; see {task.folder / 'proctor.log'}")
    if any(report is None for report in reports.values()):
        raise Failed(f"proctor run: exit code {code}: {last_line(task.folder / 'proctor.log')}")
    ended = {method: report["outcome"] for method, report in reports.items()}
    line = f"{pair.id} " + " ".join(f"{method}={ended[method]}" for method in METHODS)
    wrong = [method for method, wanted in METHODS.items() if ended[method] != wanted]
    if wrong:
        return "FAIL", f"FAIL {line}: {wrong[0]}: {_why(reports[wrong[0]])}"
    # The unchanged program must fail by the tests of the fix and by no other.
    others = set(reports["noop"]["checks"][0].get("failing", [])) - set(pair.fail_to_pass)
    if others:
        return "FAIL", f"FAIL {line}: noop also fails {min(others)}, which passed outside of Proctor"
    return "OK", f"OK {line}"
