"""What a program asks for by `session/request_permission`, as a prompt, and what answers it. Pure."""

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from synapsed.choices import choice
from synapsed.errors import InvalidChoice
from synapsed.model.task import Prompt, PromptOption
from synapsed.pipes.rpc import objects

TEXT_MAX = 4000
"""Characters of what is asked."""

_YES = frozenset({"yes", "y", "allow", "approve", "accept"})
_NO = frozenset({"no", "n", "deny", "reject", "decline"})


@dataclass(frozen=True, slots=True)
class OpenRequest:
    """A request that waits. `id` is the program's; `options` their ids, by the key under which a person chooses one."""

    id: Any
    prompt: Prompt
    options: dict[str, str]
    kinds: dict[str, str]

    @property
    def input_id(self) -> str:
        """By which the keeper knows the answer."""
        return answer_id(self.id)

    def chosen(self, text: str) -> tuple[str, str]:
        """Key and option for a person's words: a key, a label, or yes and no. Raises InvalidChoice."""
        words = text.strip()
        for option in self.prompt.options:
            if words in (option.key, option.label) or words == self.options[option.key]:
                return option.key, self.options[option.key]
        wanted = {"allow_once"} if words.lower() in _YES else {"reject_once"} if words.lower() in _NO else set()
        found = [key for key, kind in self.kinds.items() if kind in wanted]
        if len(found) == 1:
            return found[0], self.options[found[0]]
        if wanted:
            try:
                key = choice(self.prompt.model_dump(), accept="allow_once" in wanted)
            except ValueError as error:
                raise InvalidChoice(str(error), prompt=self.prompt.model_dump()) from None
            return key, self.options[key]
        keys = ", ".join(option.key for option in self.prompt.options)
        raise InvalidChoice(f"{words!r} is no answer to it: choose one of {keys}", prompt=self.prompt.model_dump())


def answer_id(request: Any) -> str:
    """By which the keeper knows the answer to a request of the program's."""
    return f"answer.{hashlib.sha256(json.dumps(request).encode()).hexdigest()[:24]}"


def open_request(message: dict[str, Any]) -> OpenRequest | None:
    """The request in `message`; None where it cannot be understood."""
    params = message.get("params")
    given = params.get("options") if isinstance(params, dict) else None
    if not isinstance(params, dict) or not isinstance(given, list):
        return None
    options = [each for each in given if isinstance(each, dict) and isinstance(each.get("optionId"), str)]
    if not options:
        return None
    call = params.get("toolCall")
    text = _text(call if isinstance(call, dict) else {})
    digest = hashlib.sha256(json.dumps([message.get("id"), text]).encode()).hexdigest()[:16]
    keys = {str(number): each for number, each in enumerate(options, 1)}
    prompt = Prompt(
        prompt_id=digest,
        type="permission",
        prompt=text,
        options=[PromptOption(key=key, label=str(each.get("name") or each["optionId"])) for key, each in keys.items()],
    )
    ids = {key: each["optionId"] for key, each in keys.items()}
    return OpenRequest(message.get("id"), prompt, ids, {key: str(each.get("kind")) for key, each in keys.items()})


def _text(call: dict[str, Any]) -> str:
    """The tool call's title, and what it shows."""
    told = [str(call.get("title") or "The program asks for permission.")]
    given = call.get("rawInput")
    if isinstance(given, dict):
        told += [str(given[name]) for name in ("command", "cmd") if isinstance(given.get(name), str)]
    for block in objects(call.get("content")):
        content = block.get("content")
        if isinstance(content, dict) and isinstance(content.get("text"), str):
            told.append(content["text"])
        elif block.get("type") == "diff":
            told.append(f"{block.get('path')}")
    return "\n".join(dict.fromkeys(told))[:TEXT_MAX]
