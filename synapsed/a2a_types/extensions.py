"""Our extensions of A2A (specification 4.6): their declaration in the card, their activation by a request, and the
meaning of its metadata. Pure, without the SDK. docs/a2a.md describes each; a breaking change gets a new URI.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from synapsed.a2a_types.a2a_errors import EXTENSION_SUPPORT_REQUIRED, A2aError, invalid_params

PRIORITY: Final = "urn:synapsed:a2a:priority:v1"
INTERRUPT: Final = "urn:synapsed:a2a:interrupt:v1"
SENDER: Final = "urn:synapsed:a2a:sender:v1"
REPLY: Final = "urn:synapsed:a2a:reply:v1"
_REPLY_KEYS: Final = ("in_reply_to", "response_expected", "sender_task_id")
INTERRUPTS: Final = 5
"""The priority that interrupts."""
ASKED_MAX: Final = 32
"""URIs of one request that count; more are ignored."""


@dataclass(frozen=True, slots=True)
class Extension:
    uri: str
    description: str
    required: bool = False


EXTENSIONS: Final = (
    Extension(PRIORITY, "metadata[uri] = {priority: 1…5}: which message comes first; 4 before 1, 5 interrupts"),
    Extension(INTERRUPT, "metadata[uri] = {interrupt: true}: stop the turn that runs and take this message first"),
    Extension(SENDER, "metadata[uri] = {sender_id}: who says this; metadata.sender of the task has the verdict on it"),
    Extension(
        REPLY,
        "metadata[uri] = {response_expected, sender_task_id}: the answer completes that task of the sender's own; "
        "{in_reply_to}: this is such an answer",
    ),
)


def declared(extensions: Sequence[Extension] = EXTENSIONS) -> list[dict[str, Any]]:
    """Returns the `capabilities.extensions` of a card."""
    return [{"uri": each.uri, "description": each.description, "required": each.required} for each in extensions]


def asked_for(headers: Iterable[str]) -> frozenset[str]:
    """Returns the URIs in `A2A-Extensions` headers, which are separated by commas (3.2.6)."""
    uris = [uri.strip() for header in headers for uri in header.split(",")]
    return frozenset([uri for uri in uris if uri][:ASKED_MAX])


def activated(asked: frozenset[str], extensions: Sequence[Extension] = EXTENSIONS) -> list[str]:
    """Returns those of our extensions that the client asked for; others are ignored (4.6.3). Raises A2aError (-32008)
    if it did not ask for a required one."""
    if missing := [each.uri for each in extensions if each.required and each.uri not in asked]:
        raise A2aError(
            EXTENSION_SUPPORT_REQUIRED,
            f"this agent wants the extension {missing[0]}: send it in A2A-Extensions",
            metadata={"extension": missing[0]},
        )
    return [each.uri for each in extensions if each.uri in asked]


def taken(metadata: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    """Returns the priority that a request's metadata asks for, and the metadata as the daemon keeps it: sender and
    reply in their places, without our other keys. `synapsed.priority` is a short form. Raises A2aError (-32602)."""
    rest = dict(metadata)
    short, own, stop = (rest.pop(key, None) for key in ("synapsed", PRIORITY, INTERRUPT))
    sender, reply = rest.pop(SENDER, None), rest.pop(REPLY, None)
    priority = 1
    for name, value in (("synapsed", short), (PRIORITY, own)):
        if isinstance(value, dict) and "priority" in value:
            priority = _priority(f"metadata.{name}.priority", value["priority"])
    if isinstance(stop, dict) and stop.get("interrupt", True) is True:
        priority = INTERRUPTS
    if isinstance(sender, dict):
        rest["sender"] = sender
    if isinstance(reply, dict):
        rest |= {key: reply[key] for key in _REPLY_KEYS if key in reply}
    return priority, rest


def answered_prompt(metadata: dict[str, Any]) -> str | None:
    """Returns the id of the prompt that an answer is for, `synapsed.prompt_id`. Raises A2aError (-32602)."""
    short = metadata.get("synapsed")
    prompt_id = short.get("prompt_id") if isinstance(short, dict) else None
    if prompt_id is not None and not isinstance(prompt_id, str):
        raise invalid_params("metadata.synapsed.prompt_id", "must be a text")
    return prompt_id


def _priority(field: str, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= INTERRUPTS:
        raise invalid_params(field, f"must be an integer from 1 to {INTERRUPTS}")
    return value
