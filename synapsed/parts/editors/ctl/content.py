"""Messages in the editor's form and in the daemon's. Pure."""

import base64
import binascii
import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from synapsed.parts.editors.ctl.shapes import text, wrong
from synapsed.parts.editors.ctl.wire import shown

CHUNK_MAX = 8000
"""Characters of a chunk: its line stays below 64 KiB, which some readers' buffers have."""

FILES_MAX = 64
"""Files of a message, as the daemon takes them."""

_COMMAND = re.compile(r"/[A-Za-z][\w:.-]*")
_FILE_URI = "file://"
_OPENS = "([{<\"'`@"


def message_of(blocks: Sequence[Mapping[str, Any]]) -> tuple[list[dict[str, Any]], bool]:
    """Returns the parts of the daemon's message, and True if it is a command of the program: `/word` alone.

    Raises RequestRefused.
    """
    said = ""
    files: list[dict[str, Any]] = []
    before = ""
    for number, block in enumerate(blocks):
        place = f"prompt[{number}]."
        kind = block.get("type")
        if kind == "text":
            words = block.get("text")
            if not isinstance(words, str):
                raise wrong(f"{place}text", "must be a text")
            said += _between(said, words, before, "text") + words
        elif kind == "resource_link":
            link = _link(text(block, "uri", place))
            said += _between(said, link, before, "resource_link") + link
        elif kind in ("image", "resource"):
            files.append(_file(block, place, len(files) + 1))
        else:
            raise wrong(f"{place}type", f"must be text, image, resource_link or resource, not {shown(str(kind))!r}")
        before = str(kind)
    if len(files) > FILES_MAX:
        raise wrong("prompt", f"has {len(files)} files: at most {FILES_MAX} are taken")
    if not said.strip() and not files:
        raise wrong("prompt", "says nothing")
    parts: list[dict[str, Any]] = [{"type": "text", "text": said}] if said.strip() else []
    return parts + files, not files and _COMMAND.fullmatch(said.strip()) is not None


def _between(said: str, more: str, before: str, kind: str) -> str:
    """Returns the separator: texts beside each other are paragraphs; a reference stands between words."""
    if before == kind == "text":
        return "\n"
    if not said or said[-1].isspace() or said[-1] in _OPENS or more[:1].isspace():
        return ""
    return " " if kind != "text" or more[:1].isalnum() else ""


def _link(uri: str) -> str:
    """Returns a file by its path, anything else by its address."""
    if not uri.startswith(_FILE_URI + "/"):
        return uri
    from urllib.parse import unquote  # only where something is referred to

    path, _, fragment = uri.removeprefix(_FILE_URI).partition("#")
    return unquote(path) + (f"#{fragment}" if fragment else "")


def _file(block: Mapping[str, Any], place: str, number: int) -> dict[str, Any]:
    """Returns an image, or an embedded resource, as a file of the message. Raises RequestRefused."""
    if block["type"] == "image":
        data, kind, uri = text(block, "data", place), text(block, "mimeType", place), block.get("uri")
        name = _name(uri) or f"image-{number}.{kind.rpartition('/')[2].partition('+')[0]}"
        return _part(name, kind, _checked(data, f"{place}data"))
    resource = block.get("resource")
    place = f"{place}resource."
    if not isinstance(resource, dict):
        raise wrong(place.removesuffix("."), "must be an object")
    name = _name(text(resource, "uri", place)) or f"resource-{number}"
    told = resource.get("mimeType")
    mime = told if isinstance(told, str) and told else None
    if isinstance(resource.get("text"), str):
        encoded = base64.b64encode(resource["text"].encode("utf-8", "replace")).decode()
        return _part(name, mime or "text/plain", encoded)
    if not isinstance(resource.get("blob"), str):
        raise wrong(f"{place}text", "there must be a text or a blob")
    return _part(name, mime, _checked(resource["blob"], f"{place}blob"))


def _part(name: str, mime: str | None, encoded: str) -> dict[str, Any]:
    return {"type": "file", "file": {"name": name, "bytes": encoded} | ({"mimeType": mime} if mime else {})}


def _name(uri: Any) -> str:
    return uri.partition("#")[0].partition("?")[0].rstrip("/").rpartition("/")[2] if isinstance(uri, str) else ""


def _checked(encoded: str, place: str) -> str:
    try:
        base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        raise wrong(place, "must be base64") from None
    return encoded


def text_of(parts: Sequence[Mapping[str, Any]]) -> str:
    """Returns a message of the daemon's as a person reads it: files by their names."""
    told = []
    for part in parts:
        if part.get("type") == "text":
            told.append(str(part.get("text", "")))
        elif part.get("type") == "file":
            file = part.get("file") or {}
            told.append(f"[{file.get('name') or file.get('uri') or 'file'}]")
        else:
            told.append("[data]")
    return "\n".join(told)


def chunks(kind: str, words: str, message_id: str, meta: Mapping[str, Any] | None = None) -> Iterator[dict[str, Any]]:
    """Yields updates with `words`, of the kind `user_message_chunk` or `agent_message_chunk`."""
    for start in range(0, len(words), CHUNK_MAX):
        piece = {"type": "text", "text": words[start : start + CHUNK_MAX]}
        update = {"sessionUpdate": kind, "messageId": message_id, "content": piece}
        yield update | ({"_meta": {"synapsed": dict(meta)}} if meta else {})


def id_for(*names: object) -> str:
    """Returns a UUID that is always the same for these names: the same message has the same id at every editor."""
    digest = hashlib.sha256("\0".join(map(str, names)).encode()).hexdigest()
    return f"{digest[:8]}-{digest[8:12]}-8{digest[13:16]}-a{digest[17:20]}-{digest[20:32]}"
