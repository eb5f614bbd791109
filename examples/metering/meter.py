#!/usr/bin/env python3
"""Reserves the worst case of each call before it is made, then charges what it came to."""
import json, os, socket

class Meter:
    def __init__(self):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(os.environ["PROCTOR_METER"])
        self.lines = self.socket.makefile("r", encoding="utf-8")

    def ask(self, **request):
        self.socket.sendall((json.dumps(request) + "\n").encode())
        for line in self.lines:  # {"event": "stop"} may come before the answer
            answer = json.loads(line)
            if "answer" in answer:
                return answer
        raise SystemExit("the meter has gone")

meter = Meter()
for n in range(1000):
    worst = meter.ask(op="reserve", id=f"call-{n}", action="llm_request", model="example-model",
                      input_tokens=100, output_tokens=400)
    if worst["answer"] != "granted":
        raise SystemExit(worst["reason"])
    # The call to the model goes here; say what it used, or release the reservation if it failed.
    print(meter.ask(op="charge", id=f"call-{n}", input_tokens=100, output_tokens=150))
