#!/usr/bin/env python3
"""openai and anthropic of PyPI, unmodified, in a sandbox without a network, through the gateway: whole answers and
streams, their usage charged, and each stops at its first refusal; and its client mcp, which works by the worker's tools
in both eras of that protocol, without a workspace of its own.  A provider of our own in this process; the
packages are those that tests/clients/get has fetched, and where they are not the test says that it did not run."""
import argparse
import http.server
import json
import pathlib
import shutil
import subprocess
import sys
import threading

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "fault"))
import faultlib  # noqa: E402
from campaigns import Campaign  # noqa: E402

KEY = "sk-the-operators-own"

OPENAI = '''
import openai, os
client = openai.OpenAI()
model = os.environ["OPENAI_MODEL"]
say = [{"role": "user", "content": "how?"}]
print("models", [m.id for m in client.models.list()])
print("whole", client.chat.completions.create(model=model, messages=say, max_completion_tokens=50).choices[0].message.content)
text = ""
for chunk in client.chat.completions.create(model=model, messages=say, max_completion_tokens=50, stream=True):
    text += chunk.choices[0].delta.content or ""
print("stream", text)
asked = 0
try:
    for asked in range(1, 100):
        client.chat.completions.create(model=model, messages=say, max_completion_tokens=1000)
except openai.APIStatusError as e:
    print("refused", type(e).__name__, e.status_code, e.body["code"], asked)
open("calc.sh", "w").write("echo $(($1 + $2))\\n")
'''
ANTHROPIC = '''
import anthropic, os
client = anthropic.Anthropic()
model = os.environ["ANTHROPIC_MODEL"]
say = dict(model=model, max_tokens=50, messages=[{"role": "user", "content": "how?"}])
print("whole", client.messages.create(**say).content[0].text)
with client.messages.stream(**say) as stream:
    print("stream", "".join(stream.text_stream))
print("count", client.messages.count_tokens(model=model, messages=say["messages"]).input_tokens)
asked = 0
try:
    for asked in range(1, 100):
        client.messages.create(**dict(say, max_tokens=1000))
except anthropic.APIStatusError as e:
    print("refused", type(e).__name__, e.status_code, asked)
open("calc.sh", "w").write("echo $(($1 + $2))\\n")
'''
MCP = r'''
import asyncio, os, shlex
from mcp import Client, StdioServerParameters

command, *args = shlex.split(os.environ["PROCTOR_MCP"])
server = StdioServerParameters(command=command, args=args)

async def work(mode, calls):
    async with Client(server, mode=mode) as client:
        print("version", client.protocol_version, len((await client.list_tools()).tools))
        for tool, arguments in calls:
            result = await client.call_tool(tool, arguments)
            print(tool, result.is_error, result.content[0].text.replace("\n", " | "))

asyncio.run(work("legacy", [
    ("read_file", {"path": "calc.sh"}),
    ("write_file", {"path": "calc.sh", "content": "no"}),
    ("advance_stage", {"to": "write", "reason": "seen it"})]))
asyncio.run(work("auto", [
    ("edit_file", {"path": "calc.sh", "old_text": "$1 - $2", "new_text": "$1 + $2"}),
    ("advance_stage", {"to": "test", "reason": "it is done"}),
    ("shell", {"command": "sh calc.sh 2 3"}),
    ("submit", {})]))
'''


class Provider(http.server.BaseHTTPRequestHandler):
    """Answers with a word, and uses all of the output that it may where that is large."""
    protocol_version = "HTTP/1.1"
    log = []

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        assert KEY in (self.headers.get("authorization") or self.headers.get("x-api-key")), "no key"
        limit = body.get("max_completion_tokens") or body.get("max_tokens") or 0
        output = limit if limit > 50 else 7
        if self.path.endswith("count_tokens"):
            return self.say(json.dumps({"input_tokens": 12}))
        self.log.append(20 + 10 * output)
        chat = self.path.endswith("/chat/completions")
        (self.chat if chat else self.messages)(output, body.get("stream", False))

    def chat(self, output, stream):
        usage = {"prompt_tokens": 20, "completion_tokens": output, "total_tokens": 20 + output}
        base = {"id": "c", "created": 1, "model": "provider-model"}
        if not stream:
            choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "hello"}}
            return self.say(json.dumps({**base, "object": "chat.completion", "choices": [choice], "usage": usage}))
        chunks = [{**base, "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": c}}], "usage": None} for c in "hello"]
        chunks.append({**base, "object": "chat.completion.chunk", "choices": [], "usage": usage})
        self.events([("", c) for c in chunks] + [("", None)])

    def messages(self, output, stream):
        message = {"id": "m", "type": "message", "role": "assistant", "model": "provider-model", "stop_sequence": None}
        if not stream:
            return self.say(json.dumps({**message, "content": [{"type": "text", "text": "hello"}], "stop_reason": "end_turn",
                                        "usage": {"input_tokens": 20, "output_tokens": output}}))
        start = {**message, "content": [], "stop_reason": None, "usage": {"input_tokens": 20, "output_tokens": 1}}
        events = [{"type": "message_start", "message": start},
                  {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}]
        events += [{"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": c}} for c in "hello"]
        events += [{"type": "content_block_stop", "index": 0},
                   {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": {"output_tokens": output}},
                   {"type": "message_stop"}]
        self.events([(e["type"], e) for e in events])

    def say(self, text):
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def events(self, events):
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for name, data in events:
            piece = (f"event: {name}\n" if name else "") + f"data: {'[DONE]' if data is None else json.dumps(data)}\n\n"
            self.wfile.write(f"{len(piece):x}\r\n{piece}\r\n".encode())
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, *_):
        pass


def write_campaign(folder, clients, url):
    methods = [f"""name: {name}
    kind: command
    command: clients-python "$PROCTOR_METHOD/{name}_agent.py"
    files: [{name}_agent.py]
    environment: {{toolchains: [{{path: "{clients}", at: /opt/clients}}]}}
    gateway: {{model: {model}, as: {api}}}"""
               for name, model, api in (("openai", "big", "openai"), ("anthropic", "opus", "anthropic"), ("mcp", "big", "openai, tools: enforced"))]
    camp = faultlib.make_template(folder, methods=methods, slots=1, budget='global: "1.00", run: "0.05"', policy="wall: 3m")
    for name, agent in (("openai", OPENAI), ("anthropic", ANTHROPIC), ("mcp", MCP)):
        (camp / f"{name}_agent.py").write_text(agent)
    rows = "".join(f"llm_request,input_token,0.000001,{m}\nllm_request,output_token,0.00001,{m}\n" for m in ("big", "opus"))
    (camp / "pilot_cost_model.csv").write_text("action_type,unit,unit_price,model\n" + rows)
    key = camp / "key"
    key.write_text(KEY)
    key.chmod(0o600)
    (camp / "models.yaml").write_text(f"""models:
  big: {{url: "{url}/v1", send_as: provider-model, key_file: "{key}", api: [chat], output_floor: 100}}
  opus: {{url: "{url}", send_as: provider-model, key_file: "{key}", auth: x-api-key, api: [messages, count_tokens], output_floor: 100}}
""")
    return camp


def by_tools(attempt):
    said = (attempt / "agent/stdout").read_text() + (attempt / "agent/stderr").read_text()
    print(f"-- mcp\n{said}")
    report = json.loads((attempt / "report.json").read_text())
    assert report["outcome"] == "success", report
    assert report["usage"]["tool_calls"] == 8, report["usage"]  # seven, and its program
    assert "version 2025-11-25 11\nread_file False" in said and "version 2026-07-28 11\nedit_file False" in said, said
    assert "write_file True Refused: " in said, said
    assert "shell False exit code 0 | [stdout] | 5 | " in said, said


def judge(campaign):
    said, charged = {}, 0
    for name in ("openai", "anthropic"):
        attempt = max(p for p in (campaign.camp / f"runs/add/{name}/r1").iterdir() if p.is_dir())
        said[name] = (attempt / "agent/stdout").read_text() + (attempt / "agent/stderr").read_text()
        print(f"-- {name}\n{said[name]}")
        report = json.loads((attempt / "report.json").read_text())
        assert report["termination"]["code"] == "budget_exceeded", report
        charged += report["usage"]["metered"]["priced_micros"]
        assert report["usage"]["metered"]["priced_micros"] <= 50_000, report
        events = [json.loads(line) for line in (attempt / "events.jsonl").read_text().splitlines()]
        after = [e for e in events if e["type"] == "model.refused"]
        assert len(after) == 1 and after[0]["payload"]["final"], after  # nobody asked again
        assert "whole hello" in said[name] and "stream hello" in said[name], said[name]
    assert "refused AuthenticationError 401 budget_exceeded" in said["openai"], said["openai"]
    assert "models ['big']" in said["openai"], said["openai"]
    assert "refused PermissionDeniedError 403" in said["anthropic"], said["anthropic"]
    assert "count 12" in said["anthropic"], said["anthropic"]
    by_tools(campaign.camp / "runs/add/mcp/r1/attempt-1")
    assert charged == sum(Provider.log), (charged, Provider.log)  # the provider's own bill
    (campaign.camp / "key").unlink()
    everything = subprocess.run(["grep", "-rl", KEY, campaign.camp], capture_output=True, text=True).stdout
    assert everything == "", everything
    campaign.proctor("verify", check=True)
    print("three clients, charged", charged, "as billed")


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--proctor", required=True)
    options.add_argument("--work", required=True)
    o = options.parse_args()
    found = subprocess.run([faultlib.TOP / "tests/clients/get", "--where"], capture_output=True, text=True)
    if found.returncode != 0:
        print(f"did not run: gateway_clients: {found.stdout.strip()}")
        return
    folder = pathlib.Path(o.work).absolute()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Provider)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    programs = faultlib.Programs(pathlib.Path(o.proctor).parent)
    with Campaign(programs, at=folder, keep=True, write=write_campaign, clients=found.stdout.strip(), url=f"http://127.0.0.1:{server.server_port}") as campaign:
        campaign.proctor("run", "--models", campaign.camp / "models.yaml")
        judge(campaign)
        campaign.problems = []


if __name__ == "__main__":
    faultlib.run_driver(main)
