"""An agent of thirty lines: a model of Anthropic's with one tool, a shell."""
import os
import subprocess

import anthropic

TOOLS = [{"name": "shell", "description": "Runs a command in the repository and returns what it prints.",
          "input_schema": {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}}]
client = anthropic.Anthropic()  # its address and its key are in the environment
messages = [{"role": "user", "content": os.environ["PROCTOR_BRIEFING"]}]
while True:
    answer = client.messages.create(model=os.environ["ANTHROPIC_MODEL"], max_tokens=8192, messages=messages, tools=TOOLS,
                                    system="Repair the repository in the current folder by the tool, then say that it is done.")
    messages.append({"role": "assistant", "content": answer.content})
    results = []
    for block in answer.content:
        if block.type == "text":
            print(block.text)
        elif block.type == "tool_use":
            command = block.input["command"]
            ran = subprocess.run(["sh", "-c", command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            said = f"exit code {ran.returncode}\n{ran.stdout.decode(errors='replace')[-10000:]}"
            print(f"$ {command}\n{said}")
            results.append({"type": "tool_result", "tool_use_id": block.id, "content": said})
    if not results:
        break
    messages.append({"role": "user", "content": results})
