"""Names the references of a prompt in a message: a file by its path and lines, anything else by its address.

Editors write the lines after `#` (`L3:9`, `L3-L9`, `L3C1-L9C4`). In the query they write the meant symbol of the file
(`symbol`), the column of the cursor (`column`), and for addresses of their own the file (`path`) or a title (`name`).
Pure.
"""

import re
from typing import NamedTuple

from synapsed.shared.visible import visible

NAME_MAX = 70
"""Bytes of a file's name: with its lines and its number it has at most the 100 that the daemon takes."""

URI_MAX = 8192
"""Characters of an address."""

_LINES = re.compile(r"L?(\d+)(?:C\d+)?(?:[:-]L?(\d+)(?:C\d+)?)?", re.ASCII)
_UNSAFE = re.compile(r"[^\w.+=,@~-]+")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
_FILE = "file://"


class Reference(NamedTuple):
    """Words for a reference."""

    said: str
    """Words in the text."""
    name: str
    """Name of a file with its content: one that the daemon does not change; empty if the address has none."""


def refer(uri: str) -> Reference:
    """Returns how the message names `uri`."""
    from urllib.parse import parse_qs, unquote  # only where something is referred to

    front, _, fragment = uri.partition("#")
    if "/" in fragment:  # it is a path that was not quoted
        front, fragment = uri, ""
    address, _, query = front.partition("?") if "=" in front else (front, "", "")
    asked = {key: values[0] for key, values in parse_qs(query).items()}
    local = not _SCHEME.match(address)
    if address.startswith(_FILE + "/"):
        path = unquote(address.removeprefix(_FILE))
    else:
        named = asked.get("path", "")
        path = address if local else named if named.startswith("/") else ""
    lines = _LINES.fullmatch(fragment)
    said = (path or front) + _behind(lines, fragment, asked.get("column", ""))
    if path and asked.get("symbol"):
        said += f" ({asked['symbol']})"
    title = "" if path else asked.get("name", "")
    name = safe(title or unquote(path or address).rstrip("/").rpartition("/")[2])
    return Reference(visible(" ".join(said.splitlines())), _with_lines(name, lines))


def opens(uri: str) -> bool:
    """Returns True for an address that others can open, too: a file's, or one of the web."""
    return not _SCHEME.match(uri) or uri.startswith((_FILE, "http://", "https://"))


def safe(name: str) -> str:
    """Returns `name` in characters that any folder takes; a cut name keeps its ending."""
    from unicodedata import normalize

    clean = _UNSAFE.sub("_", normalize("NFC", name)).lstrip(".-_")
    stem, dot, ending = clean.rpartition(".")
    if not stem or len(ending.encode()) > NAME_MAX // 4:
        stem, dot, ending = clean, "", ""
    room = NAME_MAX - len((dot + ending).encode())
    return stem.encode()[:room].decode("utf-8", "ignore") + dot + ending


def _behind(lines: re.Match[str] | None, fragment: str, column: str) -> str:
    """Returns the lines as programs write them after a path: `:3`, `:3-9`, `:3:7`."""
    if lines is None:
        return f"#{fragment}" if fragment else ""
    first, last = _range(lines)
    if first != last:
        return f":{first}-{last}"
    return f":{first}:{column}" if column.isdecimal() else f":{first}"


def _with_lines(name: str, lines: re.Match[str] | None) -> str:
    if lines is None or not name:
        return name
    first, last = _range(lines)
    part = f"L{first}" if first == last else f"L{first}-{last}"
    stem, dot, ending = name.rpartition(".")
    return f"{stem}-{part}.{ending}" if dot and stem else f"{name}-{part}"


def _range(lines: re.Match[str]) -> tuple[str, str]:
    first = lines[1][:9].lstrip("0") or "0"
    return first, (lines[2] or lines[1])[:9].lstrip("0") or "0"
