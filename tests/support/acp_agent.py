"""A program that speaks ACP on stdin and stdout, scripted: for tests of programs without a terminal.

    python -S -E -I acp_agent.py RECEIPTS [OPTION…]     # ids: messages have ids; plain: none; no-load: forgets; mode;
    commands: has two

Every line of a prompt is a directive: `say TEXT`, `slow TEXT` (word by word), `ask` (a permission; `ask silently`: and
says nothing of it), `plan TEXT`, `then TEXT` (after a tool call), `notice TEXT` (without an id), `wait FILE` (until
there is such a file), `ask-much N` (so often, for what is not offered), `deaf` (a cancel is not heard), `error CODE
TEXT`, `fail TEXT` (as codex tells a failure), `exit N`, `garbage`. Anything else is said back. Prompts that came, and
answers to permissions, are written to RECEIPTS, a line each; so are answers that nobody waits for.
"""

import json
import os
import select
import sys
import time

RECEIPTS, OPTIONS = sys.argv[1], set(sys.argv[2:])
_buffer = b""
_canceled = False
_counter = 0


def note(*words):
    with open(RECEIPTS, "a", encoding="utf-8") as file:
        file.write(json.dumps(words) + "\n")


def send(message):
    data = json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"
    while data:
        data = data[os.write(1, data) :]


def update(told, **fields):
    send({"method": "session/update", "params": {"sessionId": "s1", "update": {"sessionUpdate": told, **fields}}})


def receive(wait):
    """The next message, None after `wait` seconds (None: for ever)."""
    global _buffer
    while b"\n" not in _buffer:
        if wait is not None and not select.select([0], [], [], wait)[0]:
            return None
        chunk = os.read(0, 65536)
        if not chunk:
            os._exit(0)
        _buffer += chunk
    line, _, _buffer = _buffer.partition(b"\n")
    return json.loads(line)


def heard_cancel(wait=0.0):
    global _canceled
    message = receive(wait)
    if message is not None and message.get("method") == "session/cancel":
        _canceled = True
    elif message is not None:
        note("strange", message)
    return _canceled


def say(text, message="a"):
    ids = {} if "plain" in OPTIONS else {"messageId": f"{_counter}-{message}"}
    update("agent_message_chunk", content={"type": "text", "text": text}, **ids)


def permission():
    global _counter
    options = [("yes", "Yes", "allow_once"), ("always", "Always", "allow_always"), ("no", "No", "reject_once")]
    send(
        {
            "id": f"p{_counter}",
            "method": "session/request_permission",
            "params": {
                "sessionId": "s1",
                "toolCall": {"toolCallId": f"c{_counter}", "title": "touch it", "rawInput": {"command": "touch x"}},
                "options": [{"optionId": i, "name": n, "kind": k} for i, n, k in options],
            },
        }
    )
    while True:
        message = receive(None)
        if message.get("id") == f"p{_counter}" and "result" in message:
            note("answer", message["result"])
            outcome = message["result"]["outcome"]
            return outcome.get("optionId") or outcome["outcome"]
        if message.get("method") == "session/cancel":
            global _canceled
            _canceled = True


def work(text):
    """A result, or an error, for the prompt."""
    global _canceled
    _canceled = False
    deaf = False
    for line in text.splitlines():
        word, _, rest = line.partition(" ")
        if word == "say":
            say(rest)
        elif word == "then":
            update("tool_call", toolCallId=f"t{_counter}", title="ls", kind="execute", rawInput={"command": "ls"})
            update(
                "tool_call_update",
                toolCallId=f"t{_counter}",
                status="completed",
                content=[{"type": "content", "content": {"type": "text", "text": "a file"}}],
            )
            say(rest, "b")
        elif word == "slow":
            for piece in rest.split(" "):
                say(piece + " ")
                time.sleep(0.02)
        elif word == "plan":
            update("plan", entries=[{"content": rest, "status": "in_progress", "priority": "high"}])
        elif word == "notice":
            update("agent_message_chunk", content={"type": "text", "text": rest})
        elif word == "info":
            update(
                "agent_message_chunk",
                content={"type": "text", "text": rest},
                messageId="i",
                _meta={"some": {"kind": "informational"}},
            )
        elif word == "ask":
            chosen = permission()
            if _canceled:
                return {"result": {"stopReason": "cancelled"}}
            if rest != "silently":
                say(f"You chose {chosen}.")
        elif word == "read":
            send({"id": "f1", "method": "fs/read_text_file", "params": {"sessionId": "s1", "path": "/x"}})
            while (answer := receive(None)).get("id") != "f1":
                note("strange", answer)
            say(f"error {answer['error']['code']}")
        elif word == "ask-much":
            for _ in range(int(rest)):  # by one id
                send({"id": "f0", "method": "fs/read_text_file", "params": {"sessionId": "s1", "path": "/x"}})
                assert receive(None)["error"]["code"] == -32601
            note("refused", int(rest))
        elif word == "flood":  # and read nothing any more
            for number in range(int(rest)):
                send({"id": number, "method": "fs/read_text_file", "params": {"sessionId": "s1", "path": "/x"}})
                time.sleep(0.0005)
            note("flooded", int(rest))
            while True:
                time.sleep(60)
        elif word == "wait":
            while not os.path.exists(rest):
                if heard_cancel(0.02) and not deaf:
                    return {"result": {"stopReason": "cancelled"}}
        elif word == "deaf":
            deaf = True
        elif word == "error":
            code, _, words = rest.partition(" ")
            return {"error": {"code": int(code), "message": words}}
        elif word == "fail":
            update("agent_message_chunk", content={"type": "text", "text": rest})
            return {"result": {"stopReason": "end_turn", "usage": None}}
        elif word == "exit":
            os._exit(int(rest))
        elif word == "garbage":
            os.write(1, b"this is no JSON\n\xff\xfe\n[1]\n")
        else:
            say(f"You said: {line}")
    return {"result": {"stopReason": "end_turn", "usage": {"inputTokens": 3, "outputTokens": 4, "totalTokens": 7}}}


def main():
    global _counter
    while True:
        message = receive(None)
        method, id_, params = message.get("method"), message.get("id"), message.get("params") or {}
        if method == "initialize":
            able = {"loadSession": "no-load" not in OPTIONS}
            send({"id": id_, "result": {"protocolVersion": 1, "agentCapabilities": able}})
        elif method in ("session/new", "session/load"):
            note(method, params.get("sessionId"))
            note("servers", params["mcpServers"])
            result = {"sessionId": "s1"} if method == "session/new" else {}
            if "mode" in OPTIONS:
                modes = [{"id": "auto", "name": "Auto"}, {"id": "default", "name": "Default"}]
                result["modes"] = {"currentModeId": "auto", "availableModes": modes}
            if method == "session/load":
                update("user_message_chunk", content={"type": "text", "text": "earlier"})
                update("agent_message_chunk", content={"type": "text", "text": "an answer of before"}, messageId="old")
            send({"id": id_, "result": result})
            if "commands" in OPTIONS:
                listed = [{"name": "web", "description": "Searches", "input": {"hint": "words"}}, {"name": "tidy"}]
                update("available_commands_update", availableCommands=listed)
        elif method == "session/set_mode":
            note(method, params["modeId"])
            send({"id": id_, "result": {}})
        elif method == "session/prompt":
            _counter += 1
            *before, text = [block["text"] for block in params["prompt"]]
            note("prompt", text)
            note("before", before)
            send({"id": id_, **work(text)})


main()
