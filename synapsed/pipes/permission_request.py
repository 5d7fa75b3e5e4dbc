"""Turns a program's `session/request_permission` into a prompt for a person, a person's words into the answer. Pure."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from synapsed.errors import InvalidChoice
from synapsed.model.about import About, about, edits_in_blocks
from synapsed.model.facts import PermissionAsked
from synapsed.model.task import Prompt, PromptOption
from synapsed.pipes.rpc import objects
from synapsed.profiles.channel_spec import ACP_REQUEST
from synapsed.shared.choices import choice, effect

TEXT_MAX = 4000
"""Largest number of characters of a question."""


@dataclass(frozen=True, slots=True)
class OpenRequest:
    """A permission request that waits."""

    id: Any
    """Its id from the program."""
    place: int
    """Its offset in the output."""
    prompt: Prompt
    options: dict[str, str]
    """Ids of the options, by the key with which a person chooses one."""
    kinds: dict[str, str]
    """Kinds of the options, by the same keys."""
    message: dict[str, Any]
    call: str
    """Id of the tool call that needs the permission."""

    @property
    def input_id(self) -> str:
        """Returns the input id with which the answer is written (`answer_id`)."""
        return answer_id(self.id, self.place)

    def of_kind(self, kind: str) -> str | None:
        """Returns the key of the option of that kind; None unless there is exactly one."""
        found = [key for key, each in self.kinds.items() if each == kind]
        return found[0] if len(found) == 1 else None

    def chosen(self, text: str) -> str:
        """Returns the key of the option for a person's words: a key, a label, the program's name or id of an option, or
        yes or no. Raises InvalidChoice."""
        words = text.strip()
        for option in self.prompt.options:
            if words in (option.key, option.label, self.options[option.key]) or option.label.endswith(f"({words})"):
                return option.key
        meant = effect("", words)
        if meant is None:
            keys = ", ".join(option.key for option in self.prompt.options)
            raise InvalidChoice(f"{words!r} is no answer to it: choose one of {keys}", prompt=self.prompt.model_dump())
        try:
            return choice(self.prompt.model_dump(), accept=meant == "yes")
        except ValueError as error:
            raise InvalidChoice(str(error), prompt=self.prompt.model_dump()) from None


def answer_id(request: Any, place: int | None = None) -> str:
    """Returns the input id with which the answer to a request is written. It contains `place`, the request's offset,
    because a program may use the id of a request again; `place` None gives the id as an earlier version made it."""
    known = request if place is None else [place, request]
    return f"answer.{hashlib.sha256(json.dumps(known).encode()).hexdigest()[:24]}"


def open_request(message: dict[str, Any], call: Mapping[str, Any], place: int) -> OpenRequest | None:
    """Returns the request in `message`, at offset `place` of the program's output; None if it cannot be understood.
    `call` has the program's reports about the tool call, from this request and before."""
    params = message.get("params")
    given = params.get("options") if isinstance(params, dict) else None
    if not isinstance(params, dict) or not isinstance(given, list):
        return None
    options = [each for each in given if isinstance(each, dict) and isinstance(each.get("optionId"), str)]
    if not options:
        return None
    told = about_call(call)
    named = params.get("toolCall")
    title = named.get("title") if isinstance(named, dict) else None  # a later report may have the tool's name instead
    text = _text({**call, "title": title or call.get("title")}, told)
    known_by = json.dumps([place, message.get("id"), text, told.command, told.diff])
    digest = hashlib.sha256(known_by.encode()).hexdigest()[:16]
    keys = {str(number): each for number, each in enumerate(options, 1)}
    prompt = Prompt(
        prompt_id=digest,
        type="permission",
        prompt=text,
        options=[PromptOption(key=key, label=_label(each)) for key, each in keys.items()],
        command=told.command,
        diff=told.diff,
    )
    ids = {key: each["optionId"] for key, each in keys.items()}
    kinds = {key: str(each.get("kind")) for key, each in keys.items()}
    return OpenRequest(message.get("id"), place, prompt, ids, kinds, message, str(call.get("toolCallId") or ""))


def _label(option: dict[str, Any]) -> str:
    """Returns the option's name, with its kind before it unless the name says the kind ("Don't ask again" does not)."""
    name = str(option.get("name") or option["optionId"])
    name = name.replace("_", " ") if name == option["optionId"] else name
    kind = str(option.get("kind")).replace("_", " ").capitalize()
    return f"{kind} ({name})" if effect(kind) not in (None, effect(name)) else name


def about_call(call: Mapping[str, Any]) -> About:
    """Returns the edit in the call's content, or else the command or edit in its input."""
    given = call.get("rawInput")
    return edits_in_blocks(objects(call.get("content"))) or about(given if isinstance(given, dict) else {})


def asked(request: OpenRequest, call: Mapping[str, Any], now_ns: int) -> PermissionAsked:
    """Returns the request as a fact that rules may decide. The tool's name is its kind: the protocol has no other."""
    places = [each.get("path") for each in (*objects(call.get("locations")), *objects(call.get("content")))]
    told = {"kind": call.get("kind"), "command": request.prompt.command, "paths": [path for path in places if path]}
    return PermissionAsked(
        channel="acp",
        at_ns=now_ns,
        tool=str(call.get("kind") or ""),
        request=request.input_id,
        event=ACP_REQUEST,
        told=told,
        question=request.prompt.prompt,
    )


def _text(call: Mapping[str, Any], told: About) -> str:
    """Returns the question's text: the tool call's title, its command and its content."""
    words = [str(call.get("title") or "The program asks for permission.")]
    if told.command is not None:
        words.append(told.command)
    for block in objects(call.get("content")):
        content = block.get("content")
        if isinstance(content, dict) and isinstance(content.get("text"), str):
            words.append(content["text"])
    words += [f"{block.get('path')}" for block in objects(call.get("content")) if block.get("type") == "diff"]
    return "\n".join(dict.fromkeys(words))[:TEXT_MAX]
