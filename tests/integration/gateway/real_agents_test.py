#!/usr/bin/env python3
"""The campaigns of examples/agents with the agents that people have, unmodified, in a sandbox without a network: Codex, Claude
Code, mini-swe-agent, scripts on openai, anthropic and LiteLLM, and Proctor's own tool_loop, against each other over two tasks of
the quickstart, under one envelope.  The user's one file, providers.ini, points to a scripted provider (tests/clients/provider.py),
whose bill is what was charged, to the micro-dollar.

The clients are those that tests/clients/get has fetched; where they are not the test says why it did not run."""
import argparse
import csv
import pathlib
import shutil
import subprocess
import sys
import threading

sys.dont_write_bytecode = True
TOP = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(TOP / "tests/fault"), str(TOP / "tests/clients")]
import faultlib  # noqa: E402
import provider  # noqa: E402
from campaigns import Campaign  # noqa: E402

AGENTS = ["codex", "claude-code", "mini-swe-agent", "tool-loop", "litellm", "openai", "anthropic"]
KEY = "sk-the-operators-own"
PRICES = {"gpt-5.6-sol": {"input": 4, "cache_read": 0.4, "output": 20},
          "claude-opus-5-5": {"input": 5, "cache_read": 0.5, "cache_write": 7, "output": 25}}
TASKS = {"py-intervals": ("intervals.py keeps sets of whole numbers", "python3 -m tests.run"),
         "sh-rotate": ("rotate moves a log out of the way", "sh t/rotate.t")}


def script():
    return [{"match": match, "test": test, "patch": (TOP / f"examples/quickstart/contracts/{task}.patch").read_text()}
            for task, (match, test) in TASKS.items()]


def write_campaign(folder, agents, clients, url):
    """What a user does: the one file, and `make`."""
    key = folder / "key"
    key.write_text(KEY)
    key.chmod(0o600)
    parts = []
    for name, model, at in (("openai", "gpt-5.6-sol", url + "/v1"), ("anthropic", "claude-opus-5-5", url)):
        prices = "".join(f"{kind} = {price}\n" for kind, price in PRICES[model].items())
        parts.append(f"[{name}]\nmodel = {model}\nurl = {at}\nkey_file = {key}\n{prices}")
    (folder / "providers.ini").write_text("\n".join(parts))
    camp = folder / "camp"
    subprocess.run([TOP / "examples/agents/make", camp, *agents, "--providers", folder / "providers.ini", "--clients", clients], check=True)
    text = (camp / "campaign.yaml").read_text()
    assert "\nreplicates: 2\n" in text, text
    (camp / "campaign.yaml").write_text(text.replace("\nreplicates: 2\n", "\nreplicates: 1\nretries: {park_after: 1}\n"))
    return camp


def attempts(camp):
    """(task, method): the report of the last attempt, and its folder."""
    return {tuple(report["identity"]["run_name"].split("/")[:2]): (report, folder)
            for _, (report, folder) in sorted(faultlib.reports(camp).items())}


def said_by(folder):
    """The end of what an agent said, for the reader of a failure."""
    files = [folder / "agent/stdout", folder / "agent/stderr"]
    return "\n".join(f"-- {f}\n{f.read_text(errors='replace')[-1500:]}" for f in files if f.exists())


def judge(camp, agents):
    """What is wrong with its outcomes; micro-dollars that were charged, calls that were counted, and those of a recording."""
    problems, charged, calls, replayed = [], 0, 0, 0
    known = attempts(camp)
    for task in TASKS:
        for method, should in [("noop", "failure"), ("reference", "success"), *((agent, "success") for agent in agents)]:
            if (task, method) not in known:
                problems.append(f"{task}/{method} was not run")
                continue
            report, folder = known[(task, method)]
            usage = report["usage"]
            asked, micros = usage["model_calls"], usage["metered"].get("priced_micros", 0)
            print(f"{task:13} {method:15} {report['outcome']:8} {report['termination']['code']:10} {asked:3} calls {micros / 1e6:.6f} USD")
            if (report["outcome"], report["termination"]["code"], report["identity"]["attempt"]) != (should, "completed", 1):
                problems.append(f"{task}/{method}: {report['outcome']}, {report['termination']}\n{said_by(folder)}")
            if bool(asked) != (method in agents):
                problems.append(f"{task}/{method} asked a model {asked} times")
            charged, calls, replayed = charged + micros, calls + asked, replayed + usage["metered"].get("replayed_calls", 0)
    return problems, charged, calls, replayed


def judge_bill(camp, agents, log, charged, calls):
    """The provider's own log and the report say the same."""
    problems, lines = [], provider.lines(log)
    bill = provider.billed(lines)
    if charged != bill:
        problems.append(f"{charged} micro-dollars were charged, and the provider billed {bill}")
    if calls != len(lines) or any(line["status"] != 200 for line in lines):
        problems.append(f"{calls} calls were counted, and the provider answered {len(lines)}")
    with (camp / "reports/costs.csv").open(newline="") as file:
        rows = {(row["by"], row["name"]): row for row in csv.DictReader(file)}
    sums = {"all": rows[("all", "all")], **{agent: rows.get(("method", agent)) for agent in agents}}
    for name, row in sums.items():
        if row is None or int(row["successes"]) < len(TASKS) or int(row["model_calls"]) == 0:
            problems.append(f"the report's row of {name}: {row}")
    for name, api in (("all", None), ("codex", "responses")):  # whoever alone speaks one API has the bill of that one
        if name in sums and round(float(sums[name]["model_usd"]) * 1e6) != provider.billed(lines, api):
            problems.append(f"the report has {sums[name]['model_usd']} USD for {name}, and the provider billed {provider.billed(lines, api)} micro-dollars")
    return problems


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--proctor", required=True)
    options.add_argument("--work", required=True)
    options.add_argument("--agents", nargs="+", default=AGENTS)
    o = options.parse_args()
    found = subprocess.run([TOP / "tests/clients/get", "--where"], capture_output=True, text=True)
    if found.returncode != 0:
        print(f"did not run: gateway_real_agents: {found.stdout.strip()}")
        return 0
    folder = pathlib.Path(o.work).absolute()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    log = folder / "bill.jsonl"
    server = provider.serve(script(), PRICES, log, KEY)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with Campaign(faultlib.Programs(pathlib.Path(o.proctor).parent), at=folder, keep=True, write=write_campaign, agents=o.agents,
                  clients=found.stdout.strip(), url=f"http://127.0.0.1:{server.server_port}") as campaign:
        ran = campaign.proctor("run", "--models", campaign.camp / "models.yaml")
        print(ran.stdout[-3000:], ran.stderr[-3000:])
        problems, charged, calls, _ = judge(campaign.camp, o.agents)
        problems += judge_bill(campaign.camp, o.agents, log, charged, calls)
        (folder / "key").unlink()
        (folder / "providers.ini").unlink()
        told = subprocess.run(["grep", "-rl", KEY, folder], capture_output=True, text=True).stdout
        problems += [f"the operator's key is in {told}"] if told else []
        problems += faultlib.auditors(campaign.programs, campaign.camp) + campaign.left()
        return campaign.verdict(problems, charged_micros=charged, calls=calls)


if __name__ == "__main__":
    faultlib.run_driver(main)
