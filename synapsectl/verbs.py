"""The verbs: which module has each, and what it is for."""

from importlib import import_module
from typing import Any, NamedTuple


class Verb(NamedTuple):
    """`module` is one of `synapsectl.commands`; `module:name` an object in one that several verbs share."""

    module: str
    help: str

    def load(self) -> Any:
        """What has the verb's `configure` and `run`."""
        module, _, name = self.module.partition(":")
        found = import_module(f"synapsectl.commands.{module}")
        return getattr(found, name) if name else found


VERBS = {
    "start": Verb("start", "start an agent"),
    "run": Verb("run", "start an agent and attach to it"),
    "adopt": Verb("adopt", "start an agent on an earlier conversation of its program"),
    "stop": Verb("each:stop", "stop agents and everything they started"),
    "restart": Verb("each:restart", "stop agents and start them again in their conversation"),
    "park": Verb("each:park", "end idle agents' programs until the next message"),
    "kill": Verb("each:kill", "kill agents' programs; their restart policy applies"),
    "list": Verb("list_", "the agents and what they are doing"),
    "status": Verb("status", "one agent closely, or the daemon"),
    "attach": Verb("attach", "put this terminal on an agent"),
    "send": Verb("send", "send a message to agents, and wait for the answers"),
    "reply": Verb("reply", "reply to what this agent was asked"),
    "tasks": Verb("tasks", "the messages and what became of them"),
    "task": Verb("task", "one task, with its answer"),
    "input": Verb("input_", "answer what an agent asks"),
    "approve": Verb("decide:approve", "answer yes to what an agent asks"),
    "deny": Verb("decide:deny", "answer no to what an agent asks"),
    "keys": Verb("keys", "press keys at an agent's terminal"),
    "cancel": Verb("cancel", "cancel a task, or interrupt an agent"),
    "logs": Verb("logs", "what an agent printed"),
    "events": Verb("events", "what happens, as it happens"),
    "event": Verb("event", "report what an agent does, as an event"),
    "history": Verb("history", "what was said and done, searched and exported"),
    "usage": Verb("usage", "tokens and cost, by agent, day or task"),
    "screen": Verb("screen", "an agent's screen now"),
    "external": Verb("external", "A2A agents elsewhere, under a name of yours"),
    "host": Verb("host", "other hosts of yours, whose agents are NAME@HOST here"),
    "schedule": Verb("schedule", "messages that are sent at their times"),
    "mcp": Verb("mcp", "an MCP server, for an agent's program"),
    "profiles": Verb("profiles", "the kinds of agents that can be started"),
    "reload": Verb("reload", "read the configuration again and do what changed"),
    "shutdown": Verb("shutdown", "stop the daemon"),
    "install": Verb("install", "make the daemon a service of your session"),
    "uninstall": Verb("uninstall", "remove that service"),
    "doctor": Verb("doctor", "is everything as it should be, and what mends it"),
    "completion": Verb("completion", "a completion script for a shell"),
    "version": Verb("version", "versions of the tool and of the daemon"),
}
ALIASES = {"ls": "list"}
