"""The agent of openai_agent.py on LiteLLM, which asks a model by its API and its name."""
import json
import os
import subprocess

import litellm

TOOLS = [{"type": "function", "function": {
    "name": "shell", "description": "Runs a command in the repository and returns what it prints.",
    "parameters": {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}}}]
messages = [{"role": "system", "content": "Repair the repository in the current folder by the tool, then say that it is done."},
            {"role": "user", "content": os.environ["PROCTOR_BRIEFING"]}]
while True:
    answer = litellm.completion(model="openai/" + os.environ["OPENAI_MODEL"], messages=messages, tools=TOOLS).choices[0].message
    messages.append(answer)
    if not answer.tool_calls:
        print(answer.content)
        break
    for call in answer.tool_calls:
        command = json.loads(call.function.arguments)["command"]
        ran = subprocess.run(["sh", "-c", command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        said = f"exit code {ran.returncode}\n{ran.stdout.decode(errors='replace')[-10000:]}"
        print(f"$ {command}\n{said}")
        messages.append({"role": "tool", "tool_call_id": call.id, "content": said})
