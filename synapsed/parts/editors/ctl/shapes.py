"""Validates an editor's requests. An error names the place (`prompt[2].uri`). Pure."""

from collections.abc import Mapping
from typing import Any

from synapsed.parts.editors.ctl.wire import INVALID_PARAMS, shown

BLOCKS_MAX = 1024
"""Content blocks of a prompt."""


class RequestRefused(Exception):
    """A request that is answered with an error; `data` is that of the JSON-RPC error."""

    def __init__(self, code: int, message: str, data: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data


def wrong(place: str, why: str) -> RequestRefused:
    """Returns the error for a wrong parameter."""
    return RequestRefused(INVALID_PARAMS, f"{place}: {why}", {"path": place})


def text(params: Mapping[str, Any], name: str, place: str = "") -> str:
    """Returns the text under `name`. Raises RequestRefused if that is no text, or an empty one."""
    value = params.get(name)
    if not isinstance(value, str) or not value:
        raise wrong(f"{place}{name}", "must be a text that is not empty")
    return value


def optional_text(params: Mapping[str, Any], name: str, place: str = "") -> str | None:
    return None if params.get(name) is None else text(params, name, place)


def folder(params: Mapping[str, Any], name: str = "cwd") -> str:
    """Returns an absolute path. Raises RequestRefused."""
    path = text(params, name)
    if not path.startswith("/") or "\0" in path:
        raise wrong(name, f"must be an absolute path, not {shown(path)!r}")
    return path


def protocol(params: Mapping[str, Any]) -> int:
    """Returns the version of the protocol that the editor speaks. Raises RequestRefused."""
    version = params.get("protocolVersion")
    if isinstance(version, bool) or not isinstance(version, int) or not 0 <= version <= 65535:
        raise wrong("protocolVersion", "must be a number from 0 to 65535")
    return version


def opens_terminals(params: Mapping[str, Any]) -> bool:
    """Returns True if the editor can run a sign-in in a terminal; older ones say so in `_meta`."""
    able = params.get("clientCapabilities")
    able = able if isinstance(able, dict) else {}
    auth, meta = able.get("auth"), able.get("_meta")
    return (isinstance(auth, dict) and auth.get("terminal") is True) or (
        isinstance(meta, dict) and meta.get("terminal-auth") is True
    )


def blocks(params: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns the blocks of a prompt, each an object. Raises RequestRefused."""
    given = params.get("prompt")
    if not isinstance(given, list) or not given:
        raise wrong("prompt", "must be an array of content blocks that is not empty")
    if len(given) > BLOCKS_MAX:
        raise wrong("prompt", f"has {len(given)} blocks: at most {BLOCKS_MAX} are taken")
    for number, block in enumerate(given):
        if not isinstance(block, dict):
            raise wrong(f"prompt[{number}]", "must be a content block")
    return given


def outcome(answer: Any) -> str | None:
    """Returns the id of the option that was chosen for a permission; None if there was none."""
    told = answer.get("outcome") if isinstance(answer, dict) else None
    if not isinstance(told, dict) or told.get("outcome") != "selected":
        return None
    chosen = told.get("optionId")
    return chosen if isinstance(chosen, str) else None
