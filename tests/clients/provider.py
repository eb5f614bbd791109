#!/usr/bin/env python3
"""Plays a provider of models: OpenAI's chat completions and responses and Anthropic's messages, whole and streamed.

  provider.py --script FILE --prices FILE --log FILE [--key KEY] [--port N] [--fail HOW --at N[,N...]]

The first line of output is its address.  It solves the tasks of its script with the tool that the client offers.  The script
is a JSON list of {"match": a text of the request, "patch": the solution, "test": a command}.  An answer depends on the request
alone, so a client that asks again hears the same.

Prices are {"MODEL": {"input": USD for a million tokens, "cache_read": .., "cache_write": .., "output": ..}}.  The log has a line
for each answer: `n`, `api`, `model`, `usage`, `micros` (an exact fraction of millionths of a dollar; 0 if it failed) and
`status`.  The line is on the disk before the answer goes out.  HOW is an HTTP status, `429+2` (with retry-after: 2), `close` (no
answer) or `cut` (an answer that ends in its middle); N counts requests from 1.
"""
import argparse
import fractions
import http.server
import json
import os
import threading

WHOLE = 1000  # cached tokens are counted in thousands: a price like 0.4 for a million then makes whole micro-dollars
DONE = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"  # how mini-swe-agent ends


class Log:
    """The provider's bill; thread-safe."""

    def __init__(self, path, prices):
        self.file, self.prices = open(path, "a"), prices
        self.lock, self.count = threading.Lock(), 0

    def number(self):
        with self.lock:
            self.count += 1
            return self.count

    def bill(self, n, api, model, usage, status, **more):
        price = self.prices.get(model, {})
        micros = sum((fractions.Fraction(str(price.get(kind, price.get("input", 0)))) * tokens for kind, tokens in usage.items()), fractions.Fraction(0))
        line = {"n": n, "api": api, "model": model, "usage": usage, "micros": str(micros), "status": status, **more}
        with self.lock:
            self.file.write(json.dumps(line) + "\n")
            self.file.flush()
            os.fsync(self.file.fileno())


def lines(log):
    with open(log) as file:
        return [json.loads(line) for line in file]


def billed(of, api=None):
    """Micro-dollars of these lines; of one API, where it is named."""
    return sum(fractions.Fraction(line["micros"]) for line in of if api in (None, line["api"]))


class Play:
    """The next step of a conversation that has `results` of tools so far."""

    def __init__(self, script, text, results):
        self.task = next((task for task in script if task["match"] in text), None)
        self.results = results
        self.mini = DONE.split()[-1] in text

    def next(self, tools):
        """(tool, arguments), or None if the work is done."""
        if self.task is None or not tools:
            return None
        if "advance_stage" in tools:  # Proctor's own tools
            calls = [("advance_stage", {"to": "test", "reason": "I know what to do"}), ("apply_patch", {"patch": self.task["patch"]}),
                     ("shell", {"command": self.task["test"]}), ("submit", {"note": "done"})]
            return calls[self.results] if self.results < len(calls) else None
        commands = ["cat > /tmp/p <<'END'\n" + self.task["patch"] + "END\ngit apply /tmp/p", self.task["test"]]
        commands += [DONE] if self.mini else []
        if self.results >= len(commands):
            return None
        return next(t for t in ("Bash", "bash", "shell", "exec_command", "exec") if t in tools), {"command": commands[self.results]}


def usage_of(size, turn, words):
    """Tokens of a request of `size` bytes: a quarter of the bytes.  From the second turn on a cache has most of them."""
    total = size // 4 + 1
    cached = min(total, size // 5) // WHOLE * WHOLE if turn else 0
    written = total // 2 // WHOLE * WHOLE if turn == 0 else 0
    return {"input": total - cached - written, "cache_read": cached, "cache_write": written, "output": 20 + len(words) // 4}


class Provider(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    fault = ""

    def log_message(self, *_):
        pass

    def handle(self):
        try:
            super().handle()
        except ConnectionError:
            pass  # the client has left

    def whole(self, value, status=200, **headers):
        data = json.dumps(value).encode()
        self.send_response(status)
        for name, text in {"content-type": "application/json", "content-length": str(len(data)), **headers}.items():
            self.send_header(name.replace("_", "-"), text)
        self.end_headers()
        self.wfile.write(data[:len(data) // 2] if self.fault == "cut" else data)
        if self.fault == "cut":
            self.hang_up()

    def stream(self, events, cut=False):
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for name, data in events:
            text = f"event: {name}\n" if name else ""
            piece = (text + f"data: {'[DONE]' if data is None else json.dumps(data)}\n\n").encode()
            self.wfile.write(b"%x\r\n" % len(piece) + piece + b"\r\n")
            if cut:
                return self.hang_up()
        self.wfile.write(b"0\r\n\r\n")

    def hang_up(self):
        self.wfile.flush()
        self.close_connection = True

    def do_POST(self):
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        path = self.path.partition("?")[0].removeprefix("/v1")
        if self.server.key not in (self.headers.get("authorization", "").removeprefix("Bearer "), self.headers.get("x-api-key")):
            return self.whole({"error": {"type": "authentication_error", "message": "no such key"}}, 401)
        body = json.loads(raw)
        if path == "/messages/count_tokens":
            return self.whole({"input_tokens": len(raw) // 4 + 1})
        answer = {"/chat/completions": self.chat, "/responses": self.response_items, "/messages": self.messages}.get(path)
        if answer is None:
            return self.whole({"error": {"type": "not_found_error", "message": path}}, 404)
        self.n, self.size, self.api = self.server.log.number(), len(raw), path[1:]
        self.fault = self.fault_of(self.n)
        if self.fault not in ("", "cut"):
            self.bill(body, {}, self.fault)
            if self.fault == "close":
                return self.hang_up()
            status, _, after = self.fault.partition("+")
            error = {"type": "api_error", "code": "server_error", "message": "a fault of this test"}
            return self.whole({"type": "error", "error": error}, int(status), **({"retry_after": after} if after else {}))
        answer(body)

    def fault_of(self, n):
        return self.server.fail if n in self.server.at else ""

    def settle(self, body, turn, words):
        usage = usage_of(self.size, turn, words)
        if self.api != "messages":
            usage["input"] += usage.pop("cache_write")  # OpenAI does not bill it apart
        self.bill(body, {} if self.fault == "cut" else usage, self.fault or 200)
        return usage

    def bill(self, body, usage, status):
        self.server.log.bill(self.n, self.api, body["model"], usage, status)

    def chat(self, body):
        turn = sum(m["role"] == "tool" for m in body["messages"])
        call = Play(self.server.script, json.dumps(body), turn).next([t["function"]["name"] for t in body.get("tools", [])])
        message, end = {"role": "assistant", "content": "It is done."}, "stop"
        if call:
            function = {"name": call[0], "arguments": json.dumps(call[1])}
            message, end = {"role": "assistant", "content": None, "tool_calls": [{"id": f"call_{turn}", "type": "function", "function": function}]}, "tool_calls"
        u = self.settle(body, turn, json.dumps(message))
        usage = {"prompt_tokens": u["input"] + u["cache_read"], "completion_tokens": u["output"],
                 "total_tokens": u["input"] + u["cache_read"] + u["output"], "prompt_tokens_details": {"cached_tokens": u["cache_read"]}}
        base = {"id": f"chatcmpl-{self.n}", "created": 1, "model": body["model"]}
        if not body.get("stream"):
            return self.whole({**base, "object": "chat.completion", "choices": [{"index": 0, "finish_reason": end, "message": message}], "usage": usage})
        delta = {**message, **({"tool_calls": [{"index": 0, **c} for c in message["tool_calls"]]} if call else {})}
        base["object"] = "chat.completion.chunk"
        chunks = [{**base, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}, {**base, "choices": [{"index": 0, "delta": {}, "finish_reason": end}]}]
        if (body.get("stream_options") or {}).get("include_usage"):
            chunks.append({**base, "choices": [], "usage": usage})
        self.stream([("", c) for c in chunks] + [("", None)], self.fault == "cut")

    def response_items(self, body):
        items = [i for i in body["input"] if isinstance(i, dict)]
        turn = sum(i.get("type", "").endswith("_output") for i in items)
        tools = [t.get("name") for t in body.get("tools", [])]
        # Codex sends newer models its tools in an item; the model calls them by a program in JavaScript.
        program = any(i.get("type") == "additional_tools" for i in items)
        call = Play(self.server.script, json.dumps(body), turn).next(["exec"] if program else tools)
        item = {"type": "message", "id": f"msg_{turn}", "role": "assistant", "content": [{"type": "output_text", "text": "It is done.", "annotations": []}]}
        if call and program:
            item = {"type": "custom_tool_call", "id": f"ctc_{turn}", "call_id": f"call_{turn}", "name": "exec", "namespace": "functions",
                    "input": "const r = await tools.exec_command({cmd: %s}); text(r.output ?? r);" % json.dumps(call[1]["command"])}
        elif call:
            arguments = {"cmd": call[1]["command"]} if call[0] == "exec_command" else call[1]
            item = {"type": "function_call", "id": f"fc_{turn}", "call_id": f"call_{turn}", "name": call[0], "arguments": json.dumps(arguments)}
        u = self.settle(body, turn, json.dumps(item))
        usage = {"input_tokens": u["input"] + u["cache_read"], "input_tokens_details": {"cached_tokens": u["cache_read"]}, "output_tokens": u["output"],
                 "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": u["input"] + u["cache_read"] + u["output"]}
        response = {"id": f"resp_{self.n}", "object": "response", "model": body["model"], "status": "in_progress", "output": []}
        done = {**response, "status": "completed", "output": [item], "usage": usage}
        if not body.get("stream"):
            return self.whole(done)
        events = [{"type": "response.created", "response": response}, {"type": "response.output_item.added", "output_index": 0, "item": item},
                  {"type": "response.output_item.done", "output_index": 0, "item": item}, {"type": "response.completed", "response": done}]
        self.stream([(e["type"], e) for e in events], self.fault == "cut")

    def messages(self, body):
        turn = sum(part.get("type") == "tool_result" for m in body["messages"] if isinstance(m["content"], list) for part in m["content"])
        call = Play(self.server.script, json.dumps(body), turn).next([t.get("name") for t in body.get("tools", [])])
        block, end = {"type": "text", "text": "It is done."}, "end_turn"
        if call:
            arguments = {**call[1], "description": "work"} if call[0] == "Bash" else call[1]
            block, end = {"type": "tool_use", "id": f"toolu_{turn}", "name": call[0], "input": arguments}, "tool_use"
        u = self.settle(body, turn, json.dumps(block))
        usage = {"input_tokens": u["input"], "cache_creation_input_tokens": u["cache_write"], "cache_read_input_tokens": u["cache_read"]}
        message = {"id": f"msg_{self.n}", "type": "message", "role": "assistant", "model": body["model"], "stop_sequence": None}
        if not body.get("stream"):
            return self.whole({**message, "content": [block], "stop_reason": end, "usage": {**usage, "output_tokens": u["output"]}})
        empty, delta = {**block, "text": ""}, {"type": "text_delta", "text": block.get("text")}
        if call:
            empty, delta = {**block, "input": {}}, {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        events = [{"type": "message_start", "message": {**message, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 1}}},
                  {"type": "content_block_start", "index": 0, "content_block": empty}, {"type": "content_block_delta", "index": 0, "delta": delta},
                  {"type": "content_block_stop", "index": 0},
                  {"type": "message_delta", "delta": {"stop_reason": end, "stop_sequence": None}, "usage": {"output_tokens": u["output"]}},
                  {"type": "message_stop"}]
        self.stream([(e["type"], e) for e in events], self.fault == "cut")


def serve(script, prices, log, key="", port=0, fail="", at=(), handler=Provider):
    """Opens the server; it answers while its serve_forever() runs."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), handler)
    server.daemon_threads = True
    server.script, server.log, server.key, server.fail, server.at = script, Log(log, prices), key, fail, set(at)
    return server


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--script", required=True)
    parser.add_argument("--prices", required=True)
    parser.add_argument("--log", required=True)
    parser.add_argument("--key", default="")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--fail", default="")
    parser.add_argument("--at", type=lambda text: [int(n) for n in text.split(",")], default=[])
    o = parser.parse_args()
    server = serve(json.load(open(o.script)), json.load(open(o.prices)), o.log, o.key, o.port, o.fail, o.at)
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
