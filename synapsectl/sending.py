"""Sends one message to some agents, and collects their answers."""

import os
import time
from typing import Any, NamedTuple

from synapsectl.attending import Attendant
from synapsectl.client import Client, agent_path, task_path
from synapsectl.context import CommandContext
from synapsectl.errors import (
    DONE,
    TASK_FAILED,
    TIMED_OUT,
    ApiError,
    BadAnswer,
    CtlError,
    MaybeAccepted,
    NoDaemon,
    TimedOut,
)
from synapsectl.handed_over import save, tell
from synapsectl.output import short_id
from synapsectl.waiting import RECONNECT, RETRY, FirstOf, answer_of, outcome, tell_inexact

HEADINGS = ("AGENT", "TASK", "STATUS", "ANSWER")


class Wanted(NamedTuple):
    """The request to the agents."""

    wait: bool
    follow: bool
    response: bool
    sender: str | None
    """The agent that asks, as an address."""
    timeout: float | None
    """Seconds."""
    deadline: float | None
    """Time on the monotonic clock."""
    json: bool
    key: str | None = None
    first: bool = False
    """True if only the first answer is awaited."""
    save: str | None = None
    """The folder in which the files of an answer are saved."""


class Sent(NamedTuple):
    """A message that was sent to one agent."""

    agent: str
    task: dict[str, Any]
    """The agent's task."""
    awaited: dict[str, Any]
    """The task to wait for: the same, or the sender's own."""


def check(client: Client, agent: str) -> None:
    """Raises ApiError for a wrong address; an agent elsewhere has an alias, and no status."""
    try:
        client.get(agent_path(agent, "status"), {"detail": 1})
    except ApiError as error:
        if "alias" not in error.details:
            raise


def ask(
    client: Client,
    agent: str,
    body: dict[str, Any],
    *,
    sender: str | None,
    response: bool,
    wait: bool,
    limit: float | None = None,
    key: str | None = None,
) -> Sent:
    """Sends `body` to `agent`. If `sender` is an agent here and wants a response, a task of its own is made first,
    which the reply completes within `limit` seconds; that limit counts only if no caller waits. With a `key` that was
    used before, the former task is returned. Raises ApiError, MaybeAccepted."""
    own = _make_own(client, sender, body, wait=wait, limit=limit) if response and sender else None
    if own is not None:
        body = body | {"metadata": body["metadata"] | {"sender_task_id": own["id"], "response_expected": True}}
    elif wait and sender:
        body = body | {"wait": True}
    try:
        task = _send_once(client, agent, body, key or os.urandom(16).hex())
    except ApiError:
        if own is not None:
            client.post(task_path(own["id"], "cancel"))
        raise
    if own is not None and (first := task["metadata"].get("sender_task_id", own["id"])) != own["id"]:
        client.post(task_path(own["id"], "cancel"))
        own = client.get(task_path(first))["task"]
    return Sent(agent, task, own or task)


def _send_once(client: Client, agent: str, body: dict[str, Any], key: str) -> dict[str, Any]:
    """Returns the task that `body` has become, at the daemon or its successor. Raises MaybeAccepted if it is
    unknown, and KeyboardInterrupt with the same words."""
    way = (
        f"the message to {agent} may have been accepted; "
        f"the same with '--idempotency-key {key}' sends it once at the most"
    )
    give_up = time.monotonic() + RECONNECT
    broken: CtlError | None = None
    while True:
        try:
            task: dict[str, Any] = client.post(agent_path(agent, "tasks/send"), body, key=key)["task"]
        except (BadAnswer, TimedOut) as error:
            broken = error
        except NoDaemon:
            if broken is None:
                raise  # nothing was sent
        except KeyboardInterrupt:
            raise KeyboardInterrupt(way) from None
        else:
            return task
        if isinstance(broken, TimedOut) or time.monotonic() > min(give_up, client.deadline or give_up):
            raise MaybeAccepted(f"{broken}: {way}") from None
        try:
            time.sleep(RETRY)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(way) from None


def _make_own(
    client: Client, sender: str, body: dict[str, Any], *, wait: bool, limit: float | None
) -> dict[str, Any] | None:
    """Returns the sender's own task; None if the sender is no agent here."""
    given = {"message": body["message"], "wait": wait}
    if limit is not None and not wait:
        given["limit"] = limit
    try:
        task: dict[str, Any] = client.post(agent_path(sender, "tasks/create"), given)["task"]
    except ApiError as error:
        if error.code != "UNKNOWN_AGENT":
            raise
        return None
    return task


class Sending:
    def __init__(self, wanted: Wanted, ctx: CommandContext) -> None:
        self._wanted = wanted
        self._ctx = ctx
        self._client = ctx.client
        self._out = ctx.out

    def run(self, agents: list[str], body: dict[str, Any], *, named: bool) -> int:
        """Sends to all. `named`: a person named the agents, so that a wrong address stops all before anything is
        sent."""
        alone = len(agents) == 1
        if named and not alone:
            for agent in agents:
                check(self._client, agent)
        code, results, sent = self._send_all(agents, body, alone=alone)
        if self._wanted.first and sent and not alone:
            return self._first(sent, results)
        for one in sent:
            ended, task = self._settled(one, alone=alone)
            results.append({"agent": one.agent, "task": task})
            code = code or ended
        if self._wanted.wait:
            tell_inexact(self._ctx, {result["agent"]: result["task"] for result in results if "task" in result})
        self._show(results, alone=alone)
        return code

    def _first(self, sent: list[Sent], refused: list[dict[str, Any]]) -> int:
        """Returns the first answer alone; without an answer, the results of all."""
        agents = {one.awaited["id"]: one.agent for one in sent}
        first = FirstOf(self._client, list(agents), deadline=self._wanted.deadline, note=self._out.note)
        try:
            task = first.wait()
        except CtlError:
            self._note_sent(sent)
            raise
        if task is None:
            told = [{"agent": agents[task_id], "task": ended} for task_id, ended in first.ended.items()]
            self._show([*refused, *told], alone=False)
            return TASK_FAILED
        self._out.remark(f"--- {agents[task['id']]} ({short_id(task['id'])})")
        tell_inexact(self._ctx, {agents[task["id"]]: task})
        if self._wanted.json:
            self._out.document({"task": task})
        else:
            self._out.text(answer_of(task) or "")
        self._files(task)
        return DONE

    def _note_sent(self, sent: list[Sent]) -> None:
        for one in sent:
            self._out.note(f"{one.agent} has the message: 'synapsectl task {short_id(one.task['id'])}'")

    # --- sending ---

    def _send_all(
        self, agents: list[str], body: dict[str, Any], *, alone: bool
    ) -> tuple[int, list[dict[str, Any]], list[Sent]]:
        """Returns the exit code, the results of those whose message was not sent, and the others. Raises the error of a
        single agent, and that of the first one if there is no daemon."""
        code, results, sent = DONE, list[dict[str, Any]](), list[Sent]()
        for agent in agents:
            try:
                sent.append(self._send(agent, body, alone=alone))
            except CtlError as error:
                if alone or not (sent or results or isinstance(error, (ApiError, MaybeAccepted))):
                    raise
                self._out.note(f"{agent}: {error}")
                results.append({"agent": agent} | error.document())
                code = code or error.exit_code
            except KeyboardInterrupt:
                self._note_sent(sent)
                raise
        return code, results, sent

    def _send(self, agent: str, body: dict[str, Any], *, alone: bool) -> Sent:
        wanted = self._wanted
        # A key stands for one task: each of several agents gets a key of its own.
        key = wanted.key if alone or wanted.key is None else f"{wanted.key} {agent!a}"
        sent = ask(
            self._client,
            agent,
            body,
            sender=wanted.sender,
            response=wanted.response,
            wait=wanted.wait,
            limit=wanted.timeout,
            key=key,
        )
        if sent.awaited is not sent.task and not wanted.wait:
            mark = f"[A2A:reply:{short_id(sent.awaited['id'])}:"
            self._out.note(f"{agent} was asked; the reply will come as a message that begins with {mark}")
        return sent

    # --- what comes back ---

    def _settled(self, sent: Sent, *, alone: bool) -> tuple[int, dict[str, Any]]:
        """Does the same as `_settle`; of several, one whose end is not learned does not hide the others."""
        try:
            return self._settle(sent, alone=alone)
        except CtlError as error:
            if alone:
                raise
            self._out.note(f"{sent.agent}: {error}")
            return error.exit_code, sent.task

    def _settle(self, sent: Sent, *, alone: bool) -> tuple[int, dict[str, Any]]:
        """Waits for one task; returns its exit code, and its last state. Prints the answer of a single task, and
        followed text."""
        if not self._wanted.wait:
            return DONE, sent.task
        if self._wanted.follow and not alone:
            self._out.remark(f"--- {sent.agent} ({short_id(sent.task['id'])})")
        wanted = self._wanted
        attendant = Attendant(
            self._ctx, sent.agent, deadline=wanted.deadline, follow=wanted.follow, asks=not wanted.json
        )
        try:
            # An agent cannot answer a question to a person, so it goes on waiting.
            person = sent.awaited is not sent.task and self._ctx.own_agent is None
            task = attendant.wait(sent.awaited, sent.task if person else None, sent=sent.task["id"])
        except TimedOut as error:
            if alone:
                raise
            self._out.note(str(error))
            return TIMED_OUT, self._client.get(task_path(sent.awaited["id"]))["task"]
        attendant.end()
        code = outcome(self._ctx, sent.agent, task)
        if alone and code == DONE and not attendant.follower.said and not self._wanted.json:
            self._out.text(answer_of(task) or "")
        if sent.awaited is not sent.task and task["id"] == sent.awaited["id"]:
            self._collect(task)
        if code == DONE:
            self._files(task)
        return code, task

    def _files(self, task: dict[str, Any]) -> None:
        """Saves the files and data that came with the answer, or names them."""
        if self._wanted.save is not None:
            save(self._out, task, self._wanted.save)
        elif not self._wanted.json:
            tell(self._out, task)

    def _collect(self, task: dict[str, Any]) -> None:
        """Confirms that the reply is here, so that the agent does not get it once more."""
        give_up = time.monotonic() + RECONNECT
        while True:
            try:
                self._client.post(task_path(task["id"], "collected"))
            except NoDaemon as error:
                if time.monotonic() < give_up:
                    time.sleep(RETRY)
                    continue
                self._out.note(f"the agent may get this reply a second time: {error}")
            except (ApiError, TimedOut) as error:
                self._out.note(f"the agent may get this reply a second time: {error}")
            return

    def _show(self, results: list[dict[str, Any]], *, alone: bool) -> None:
        """Prints one document, or one table; nothing if the texts are printed."""
        out, wanted = self._out, self._wanted
        if wanted.json:
            out.document({"task": results[0]["task"]} if alone else {"tasks": results})
        elif not wanted.wait:
            for result in results:
                if "task" in result:
                    task_id = result["task"]["id"]
                    out.table((), [[task_id] if alone else [task_id, result["agent"]]])
                    if alone and out.on_terminal and not wanted.response:
                        out.note(f"'synapsectl task {short_id(task_id)} --wait' prints the answer")
        elif not alone and not wanted.follow:
            out.table(HEADINGS, [_row(result) for result in results], grows="ANSWER")


def _row(result: dict[str, Any]) -> list[str]:
    if "error" in result:
        return [result["agent"], "", "refused", str(result["error"]["message"])]
    task = result["task"]
    told = answer_of(task) or ""
    if task.get("error"):
        told = f"{task['error'].get('code')}: {task['error'].get('message')}"
    return [result["agent"], short_id(task["id"]), task["status"], told]
