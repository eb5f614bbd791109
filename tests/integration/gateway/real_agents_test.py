#!/usr/bin/env python3
"""Runs the campaigns of examples/agents: Codex, Claude Code, mini-swe-agent, scripts on openai, anthropic and LiteLLM, and
Proctor's own tool_loop, unmodified and against each other, over two tasks of the quickstart under one envelope.  The user's one
file, providers.ini, points to the scripted provider of tests/clients/provider.py.  Its bill must be what was charged, to the
micro-dollar.  Then a recording of all of it, moved to the day before, answers the same campaign again: every call, for nothing.

tests/clients/get installs the clients; without them the test says why it did not run."""
import argparse
import csv
import datetime
import hashlib
import json
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


def make(camp, agents, folder, clients):
    subprocess.run([TOP / "examples/agents/make", camp, *agents, "--providers", folder / "providers.ini", "--clients", clients,
                    "--tasks", ",".join(TASKS)], check=True)


def write_campaign(folder, agents, clients, url):
    """Does what a user does: edits the one file and calls `make`."""
    key = folder / "key"
    key.write_text(KEY)
    key.chmod(0o600)
    parts = []
    for name, model, at in (("openai", "gpt-5.6-sol", url + "/v1"), ("anthropic", "claude-opus-5-5", url)):
        prices = "".join(f"{kind} = {price}\n" for kind, price in PRICES[model].items())
        parts.append(f"[{name}]\nmodel = {model}\nurl = {at}\nkey_file = {key}\n{prices}")
    (folder / "providers.ini").write_text("\n".join(parts))
    camp = folder / "camp"
    make(camp, agents, folder, clients)
    text = (camp / "campaign.yaml").read_text()
    assert "\nreplicates: 2\n" in text, text
    (camp / "campaign.yaml").write_text(text.replace("\nreplicates: 2\n", "\nreplicates: 1\nretries: {park_after: 1}\n"))
    return camp


def attempts(camp):
    """By (task, method): the report of the last attempt and its folder."""
    return {tuple(report["identity"]["run_name"].split("/")[:2]): (report, folder)
            for _, (report, folder) in sorted(faultlib.reports(camp).items())}


def said_by(folder):
    """The end of an agent's output, to explain a failure."""
    files = [folder / "agent/stdout", folder / "agent/stderr"]
    return "\n".join(f"-- {f}\n{f.read_text(errors='replace')[-1500:]}" for f in files if f.exists())


def judge(camp, agents):
    """Problems with the outcomes; sums of micro-dollars charged, of calls, and of calls that a recording answered."""
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
    for name, api in (("all", None), ("codex", "responses")):  # only Codex speaks that API
        if name in sums and round(float(sums[name]["model_usd"]) * 1e6) != provider.billed(lines, api):
            problems.append(f"the report has {sums[name]['model_usd']} USD for {name}, and the provider billed {provider.billed(lines, api)} micro-dollars")
    return problems


def as_of_yesterday(cassette):
    """The recording as if it had been made a day ago; each call has the digest of what it says."""
    today = datetime.datetime.now(datetime.timezone.utc).date()
    pieces, out, moved = [], [], 0
    for line in cassette.read_text().splitlines():
        said = json.loads(line)
        if "piece" in said:
            moved += said["piece"].count(str(today))
            said["piece"] = said["piece"].replace(str(today), str(today - datetime.timedelta(days=1)))
            pieces.append(said["piece"].encode())
        elif "call" in said:
            request, answer = (b"".join(pieces[i] for i in said[part]) for part in ("request", "answer"))
            said["digest"] = hashlib.sha256(b"%d " % len(request) + request + answer).hexdigest()
        out.append(json.dumps(said, ensure_ascii=False, separators=(",", ":")))
    cassette.write_text("\n".join(out) + "\n")
    return moved


def play_again(campaign, folder, made, calls):
    """The same campaign, fresh, a day later, without the provider: every call is answered, and costs nothing."""
    cassette = folder / "calls.jsonl"
    campaign.proctor("cassette record", "--output", cassette, check=True)
    if as_of_yesterday(cassette) == 0:
        return ["no request had the date in it"]
    with Campaign(campaign.programs, at=folder / "again", keep=True, write=write_campaign, **made, url="http://127.0.0.1:1") as again:
        (again.camp / "models.yaml").write_text("models:\n" + "".join(
            f'  "{model}": {{cassette: "{cassette}", api: [{api}]}}\n'
            for model, api in (("gpt-5.6-sol", "chat, responses"), ("claude-opus-5-5", "messages, count_tokens"))))
        ran = again.proctor("run", "--models", again.camp / "models.yaml")
        problems, charged, asked, replayed = judge(again.camp, made["agents"])
        if (charged, asked, replayed) != (0, calls, calls):
            problems.append(f"of {calls} recorded calls {asked} were asked again, {replayed} of the recording, for {charged} micro-dollars")
        for path in again.camp.glob("runs/*/*/r*/attempt-*/events.jsonl"):
            for line in path.read_text().splitlines():
                event = json.loads(line)
                if event["type"] == "cassette.divergence" or event["type"] == "gateway.closed" and event["payload"].get("cassette_unused"):
                    problems.append(f"{path.parent}: {json.dumps(event['payload'])[:600]}")
        if problems:
            print(ran.stderr[-3000:])
        again.problems = problems
    return problems


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--proctor", required=True)
    options.add_argument("--work", required=True)
    options.add_argument("--agents", nargs="+", default=AGENTS)
    options.add_argument("--live", action="store_true", help="leave out the recording")
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
    made = {"agents": o.agents, "clients": found.stdout.strip()}
    with Campaign(faultlib.Programs(pathlib.Path(o.proctor).parent), at=folder, keep=True, write=write_campaign, **made,
                  url=f"http://127.0.0.1:{server.server_port}") as campaign:
        for agent in o.agents:
            alone = folder / "alone" / agent
            make(alone, [agent], folder, made["clients"])
            subprocess.run([campaign.programs.proctor, "check", alone, "--models", alone / "models.yaml"], check=True, stdout=subprocess.DEVNULL)
        ran = campaign.proctor("run", "--models", campaign.camp / "models.yaml")
        print(ran.stdout[-3000:], ran.stderr[-3000:])
        problems, charged, calls, _ = judge(campaign.camp, o.agents)
        problems += judge_bill(campaign.camp, o.agents, log, charged, calls)
        if not o.live and not problems:
            problems += play_again(campaign, folder, made, calls)
        (folder / "key").unlink()
        (folder / "providers.ini").unlink()
        told = subprocess.run(["grep", "-rl", KEY, folder], capture_output=True, text=True).stdout
        problems += [f"the operator's key is in {told}"] if told else []
        problems += faultlib.auditors(campaign.programs, campaign.camp) + campaign.left()
        return campaign.verdict(problems, charged_micros=charged, calls=calls)


if __name__ == "__main__":
    faultlib.run_driver(main)
