"""Converts messages between the editor's form and the daemon's. Pure."""

import base64
import binascii
import hashlib
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from synapsed.parts.editors.ctl.references import URI_MAX, Reference, opens, refer, safe
from synapsed.parts.editors.ctl.shapes import text, wrong
from synapsed.parts.editors.ctl.wire import shown

CHUNK_MAX = 8000
"""Characters of a chunk: its line stays below 64 KiB, the buffer of some readers."""

FILES_MAX = 64
"""Files of a message, as the daemon takes them."""

ENDING_MAX = 16
"""Characters of the ending that a file has by its type."""

_COMMAND = re.compile(r"/(?P<name>[A-Za-z][\w:.-]*)(?:[ \t](?P<behind>.*))?")
_OPENS = re.compile(r"(?:[(\[{<@]|(?:^|[\s(\[{<])[\"'`])\Z")
"""The end of a text after which a reference follows without a blank: an opening bracket, an @, or an opening quote."""

_APART = re.compile(r"[\w(\[{</@#$*]|[\"'`]\w|[->]\s")
"""The beginning of a text before which a blank is put, after a reference: a word, and no punctuation."""


def message_of(
    blocks: Sequence[Mapping[str, Any]], commands: Collection[str] = ()
) -> tuple[list[dict[str, Any]], bool]:
    """Returns the parts of the daemon's message, and True if it is a command of the program: `/word` alone, or with
    words after it in its line if it is one of `commands`, which take words.

    Raises RequestRefused.
    """
    said = ""
    files: list[dict[str, Any]] = []
    names: set[str] = set()
    before = ""
    for number, block in enumerate(blocks):
        place = f"prompt[{number}]."
        kind = block.get("type")
        if kind == "text":
            words = block.get("text")
            if not isinstance(words, str):
                raise wrong(f"{place}text", "must be a text")
            said += _between(said, words, before, "text") + words
        elif kind in ("image", "resource", "resource_link"):
            told, file = _referred(block, place, len(files) + 1)
            if file is not None:
                name = _unlike(file.name, names)
                names.add(name)
                files.append(file.part(name))
                told = f"{told} (attached: {name})" if told else f"(attached: {name})"
            said += _between(said, told, before, str(kind)) + told
        else:
            raise wrong(f"{place}type", f"must be text, image, resource_link or resource, not {shown(str(kind))!r}")
        before = str(kind)
    if len(files) > FILES_MAX:
        raise wrong("prompt", f"has {len(files)} files: at most {FILES_MAX} are taken")
    if not said.strip() and not files:
        raise wrong("prompt", "is blank")
    parts: list[dict[str, Any]] = [{"type": "text", "text": said}] if said.strip() else []
    return parts + files, not files and _is_command(said.strip(), commands)


def _is_command(said: str, commands: Collection[str]) -> bool:
    found = _COMMAND.fullmatch(said)
    return found is not None and (found["behind"] is None or found["name"] in commands)


def _between(said: str, more: str, before: str, kind: str) -> str:
    """Returns the separator: texts beside each other are paragraphs; a reference stands between words."""
    if before == kind == "text":
        return "\n"
    if not said or said[-1].isspace() or more[:1].isspace() or _OPENS.search(said, max(0, len(said) - 2)):
        return ""
    return " " if kind != "text" or _APART.match(more) else ""


class _File(NamedTuple):
    """A file that goes along with the message; `encoded` is its content in base64."""

    name: str
    mime: str | None
    encoded: str

    def part(self, name: str) -> dict[str, Any]:
        kind = {"mimeType": self.mime} if self.mime else {}
        return {"type": "file", "file": {"name": name, "bytes": self.encoded} | kind}


def _referred(block: Mapping[str, Any], place: str, number: int) -> tuple[str, _File | None]:
    """Returns the words of the text for an image, a link or an embedded resource, and the file that goes along. Raises
    RequestRefused."""
    if block["type"] == "resource_link":
        return refer(_uri(block, place)).said, None
    if block["type"] == "image":
        data, kind = text(block, "data", place), text(block, "mimeType", place)
        uri = _uri(block, place) if block.get("uri") else ""
        at = refer(uri) if uri else Reference("", "")
        name = at.name or f"image-{number}"
        ending = "" if "." in name else f".{safe(kind.rpartition('/')[2].partition('+')[0])[:ENDING_MAX]}"
        return at.said if opens(uri) else "", _File(name + ending, kind, _checked(data, f"{place}data"))
    resource = block.get("resource")
    place = f"{place}resource."
    if not isinstance(resource, dict):
        raise wrong(place.removesuffix("."), "must be an object")
    at = refer(_uri(resource, place))
    name, told = at.name or f"resource-{number}", resource.get("mimeType")
    mime = told if isinstance(told, str) and told else None
    if isinstance(resource.get("text"), str):
        encoded = base64.b64encode(resource["text"].encode("utf-8", "replace")).decode()
        return at.said, _File(name, mime or "text/plain", encoded)
    if not isinstance(resource.get("blob"), str):
        raise wrong(f"{place}text", "there must be a text or a blob")
    return at.said, _File(name, mime, _checked(resource["blob"], f"{place}blob"))


def _uri(block: Mapping[str, Any], place: str) -> str:
    uri = text(block, "uri", place)
    if len(uri) > URI_MAX:
        raise wrong(f"{place}uri", f"has {len(uri)} characters: at most {URI_MAX} are taken")
    return uri


def _unlike(name: str, names: Collection[str]) -> str:
    """Returns `name`; with a number before it if another file of the message has that name."""
    number, found = 1, name
    while found in names:
        number += 1
        found = f"{number}-{name}"
    return found


def _checked(encoded: str, place: str) -> str:
    """Returns base64 without the ends of lines that some editors write in it. Raises RequestRefused."""
    encoded = "".join(encoded.split())
    try:
        base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        raise wrong(place, "must be base64") from None
    return encoded


def text_of(parts: Sequence[Mapping[str, Any]]) -> str:
    """Returns a message in the daemon's form as a person reads it: files by their names."""
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
