#!/usr/bin/env python3
"""Each real client makes the same of a provider's error with Proctor as without: as many requests reach the provider, it
ends alike, and its work is in the same state.

One call of each client meets one error (500, 502, 503, 529, 429 with and without retry-after, an answer that breaks off, a
connection that is closed), then the provider answers.  Each pair of a client and an error has a provider of its own, once
without Proctor and once as a method of one campaign.  Prints a table.  The clients are those of tests/clients/get.
"""
import argparse
import concurrent.futures
import json
import pathlib
import shutil
import subprocess
import sys
import threading

sys.dont_write_bytecode = True
TESTS = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TESTS / "fault"), str(TESTS / "clients")]
import faultlib  # noqa: E402
from campaigns import Campaign  # noqa: E402
import provider  # noqa: E402

ERRORS = ["500", "502", "503", "529", "429", "429+1", "cut", "close"]
AT_ONCE = 2
KEY = "sk-the-operators-own"
BROKEN, FIXED = "echo $(($1 - $2))\n", "echo $(($1 + $2))\n"
SCRIPT = [{"match": "calc.sh must add", "test": "sh calc.sh 2 3",
           "patch": f"diff --git a/calc.sh b/calc.sh\n--- a/calc.sh\n+++ b/calc.sh\n@@ -1 +1 @@\n-{BROKEN}+{FIXED}"}]
# Four calls, whole and streamed in turn, so that the second and third are of either form.
SDK = '''
import {module}
client = {client}
for n in range(4):
    try:
        {call}
        print("call", n, "answered", text)
    except Exception as e:
        print("call", n, type(e).__name__, getattr(e, "status_code", ""))
'''
CHAT = '''text = ask(model={model!r}, messages=[{{"role": "user", "content": "how?"}}], stream=n % 2 == 1)
        text = "".join(p.choices[0].delta.content or "" for p in text if p.choices) if n % 2 else text.choices[0].message.content'''
MESSAGES = '''say = dict(model="big", max_tokens=50, messages=[{"role": "user", "content": "how?"}])
        if n % 2:
            with client.messages.stream(**say) as stream:
                text = "".join(stream.text_stream)
        else:
            text = client.messages.create(**say).content[0].text'''
CODEX = """$CLIENT/bin/codex exec --skip-git-repo-check \\
  --dangerously-bypass-approvals-and-sandbox -c model_provider=proctor -c model=gpt-5.5 -c web_search=disabled \\
  -c 'model_providers.proctor={name="proctor",base_url="'$BASE'/v1",env_key="CLIENT_KEY",wire_api="responses"}' 'calc.sh must add'"""
# The same script on both sides: its provider is at $BASE, its key in $CLIENT_KEY, its installation in $CLIENT.
START = """export OPENAI_BASE_URL=$BASE/v1 OPENAI_API_BASE=$BASE/v1 OPENAI_API_KEY=$CLIENT_KEY ANTHROPIC_BASE_URL=$BASE ANTHROPIC_API_KEY=$CLIENT_KEY
export ANTHROPIC_MODEL=big ANTHROPIC_SMALL_FAST_MODEL=big DISABLE_AUTOUPDATER=1 DISABLE_TELEMETRY=1 CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1 IS_SANDBOX=1
export LITELLM_LOCAL_MODEL_COST_MAP=True MSWEA_CONFIGURED=true MSWEA_COST_TRACKING=ignore_errors MSWEA_SILENT_STARTUP=1
HOME=$(mktemp -d)
export HOME
COMMAND < /dev/null
echo "exit $?"
"""


class Client:
    def __init__(self, name, speaks, api, command, asks=""):
        self.name, self.speaks, self.api, self.asks = name, speaks, api, asks
        self.script = START.replace("COMMAND", command)

    def write_to(self, folder):
        """Its files.  An SDK's script has another name than its module: a script's folder is searched for modules."""
        files = {f"{self.name}.sh": self.script, **({f"{self.name}_asks.py": self.asks} if self.asks else {})}
        for name, text in files.items():
            (folder / name).write_text(text)
        return list(files)


def sdk(name, speaks, api, client, call):
    asks = SDK.format(module=name, client=client, call=call)
    return Client(name, speaks, api, f"$CLIENT/bin/clients-python $SCRIPTS/{name}_asks.py", asks)


CLIENTS = [
    sdk("openai", "openai", "chat", "openai.OpenAI(); ask = client.chat.completions.create", CHAT.format(model="big")),
    sdk("anthropic", "anthropic", "messages, count_tokens", "anthropic.Anthropic()", MESSAGES),
    sdk("litellm", "openai", "chat", "litellm; ask = client.completion", CHAT.format(model="openai/big")),
    Client("mini-swe-agent", "openai", "chat",
           "$CLIENT/bin/mini --yolo --exit-immediately -m openai/big -t 'calc.sh must add' -o $HOME/trajectory.json"),
    Client("codex", "openai-responses", "responses", CODEX),
    Client("claude-code", "anthropic", "messages, count_tokens",
           "$CLIENT/bin/claude -p --dangerously-skip-permissions 'calc.sh must add'"),
]


class Side:
    """A provider whose `at`-th answer, from 1, is an error."""

    def __init__(self, log, error, at):
        self.log = log
        server = provider.serve(SCRIPT, {}, log, KEY, fail=error, at=[at])
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.at = f"http://127.0.0.1:{server.server_port}"

    def seen(self, said, file):
        end = [line for line in said.splitlines() if line.startswith(("exit ", "call "))]
        return {"requests": len(self.log.read_text().splitlines()), "end": end, "file": file}


class Cell:
    """One client that meets one error; on each side with a provider of its own."""

    def __init__(self, client, error, at, work):
        self.client, self.error = client, error
        self.name = f"{client.name}-{error.replace('+', '-after-')}"
        self.direct, self.gated = (Side(work / f"{self.name}.{side}", error, at) for side in ("direct", "gated"))

    def alone(self, clients, work):
        place = work / "alone" / self.name
        (place / "work").mkdir(parents=True)
        calc = place / "work/calc.sh"
        calc.write_text(BROKEN)
        subprocess.run(["git", "init", "-q", "."], cwd=place / "work", check=True)
        # Without the network that a sandbox has not either: a client's questions to its home go to a closed port.
        env = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "BASE": self.direct.at, "CLIENT_KEY": KEY, "CLIENT": str(clients),
               "SCRIPTS": str(work / "scripts"), "TMPDIR": str(place), "http_proxy": "http://127.0.0.1:9", "https_proxy": "http://127.0.0.1:9",
               "no_proxy": "127.0.0.1"}
        with open(place / "said", "w+") as said:
            subprocess.run(["bash", work / f"scripts/{self.client.name}.sh"], cwd=place / "work", env=env, stdout=said, stderr=said, timeout=300)
        return self.direct.seen((place / "said").read_text(), calc.read_text())

    def method(self, clients, files):
        return f"""name: {self.name}
    kind: command
    command: BASE=http://127.0.0.1:8710 CLIENT_KEY=$PROCTOR_GATEWAY_TOKEN CLIENT=/opt/client SCRIPTS=$PROCTOR_METHOD bash $PROCTOR_METHOD/{self.client.name}.sh 2>&1
    files: [{", ".join(files)}]
    environment: {{toolchains: [{{path: "{clients}", at: /opt/client}}]}}
    gateway: {{model: {self.name}, as: {self.client.speaks}, aliases: [big, gpt-5.5]}}"""

    def model(self, key):
        anthropic = self.client.speaks == "anthropic"
        return (f'  {self.name}: {{url: "{self.gated.at}{"" if anthropic else "/v1"}", send_as: big, key_file: "{key}", '
                f'auth: {"x-api-key" if anthropic else "bearer"}, api: [{self.client.api}]}}\n')

    def within(self, camp):
        attempt = camp / f"runs/add/{self.name}/r1/attempt-1"
        events = [json.loads(line) for line in (attempt / "events.jsonl").read_text().splitlines()]
        refused = [e["payload"] for e in events if e["type"] == "model.refused"]
        patch = (attempt / "patch.diff").read_text() if (attempt / "patch.diff").exists() else ""
        out = self.gated.seen((attempt / "agent/stdout").read_text(), FIXED if f"\n+{FIXED}" in patch else BROKEN if not patch else patch)
        return {**out, "refused": refused} if refused else out


def write_campaign(folder, clients, cells):
    scratch = folder / "methods"
    scratch.mkdir()
    files = {c.client.name: c.client.write_to(scratch) for c in cells}
    camp = faultlib.make_template(folder, methods=[c.method(clients, files[c.client.name]) for c in cells], slots=AT_ONCE,
                                  budget='global: "1000.00", run: "10.00"', policy="wall: 5m, memory: 4GiB, processes: 512",
                                  more="infrastructure_retries: 0\nretries: {overload: 0}\n")
    for file in scratch.iterdir():
        shutil.copy(file, camp)
    (camp / "pilot_cost_model.csv").write_text("action_type,unit,unit_price\nllm_request,input_token,0.000001\nllm_request,output_token,0.00001\n")
    key = folder / "key"
    key.write_text(KEY)
    key.chmod(0o600)
    (folder / "models.yaml").write_text("models:\n" + "".join(c.model(key) for c in cells))
    return camp


def with_proctor(programs, work, clients, cells):
    with Campaign(programs, at=work / "campaign", keep=True, write=write_campaign, clients=clients, cells=cells) as campaign:
        ran = campaign.proctor("run", "--models", campaign.folder / "models.yaml", timeout=2400)
        (work / "campaign.said").write_text(ran.stdout + ran.stderr)
        within = [c.within(campaign.camp) for c in cells]
        campaign.keep = False  # all that is of interest has been read
        return within


def differences(cells, alone, within):
    out = []
    for cell, plain, capped in zip(cells, alone, within):
        unlike = [k for k in capped if plain.get(k) != capped[k]]
        print(f"{cell.client.name:15} {cell.error:6} {plain['requests']:3} requests, {'fixed' if plain['file'] == FIXED else 'not fixed':10}"
              f"{'; '.join(plain['end'])}" + "".join(f"\n    DIFFERS with Proctor: {k} {capped[k]}, without {plain.get(k)}" for k in unlike))
        out += [f"{cell.name}: {k}" for k in unlike]
    return out


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--proctor", required=True)
    options.add_argument("--work", required=True)
    options.add_argument("--all", action="store_true", help="all clients and all errors")
    options.add_argument("--clients", default="openai,claude-code")
    options.add_argument("--errors", default="500,429+1,cut")
    options.add_argument("--at", type=int, default=2, help="which request meets it, from 1")
    o = options.parse_args()
    if o.all:
        o.clients, o.errors = ",".join(c.name for c in CLIENTS), ",".join(ERRORS)
    got = subprocess.run([TESTS / "clients/get", "--where"], stdout=subprocess.PIPE, text=True)
    if got.returncode != 0:
        print(f"did not run: gateway_errors{'_all' * o.all}: {got.stdout.strip()}")
        return 0
    clients = pathlib.Path(got.stdout.strip())
    work = pathlib.Path(o.work).absolute()
    shutil.rmtree(work, ignore_errors=True)
    (work / "scripts").mkdir(parents=True)
    chosen = [c for c in CLIENTS if c.name in o.clients.split(",")]
    for c in chosen:
        c.write_to(work / "scripts")
    cells = [Cell(c, error, o.at, work) for c in chosen for error in o.errors.split(",")]
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        alone = list(pool.map(lambda c: c.alone(clients, work), cells))
    within = with_proctor(faultlib.Programs(pathlib.Path(o.proctor).parent), work, clients, cells)
    unlike = differences(cells, alone, within)
    print(f"{len(cells)} pairs of a client and an error, {len(unlike)} differences")
    if not unlike:
        shutil.rmtree(work)  # else there is what each client said
    return 1 if unlike else 0


if __name__ == "__main__":
    faultlib.run_driver(main)
