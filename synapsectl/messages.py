"""The message of `send`: its text from the command line or stdin, its files."""

import base64
import os
from typing import Any, BinaryIO

from synapsectl.errors import CtlError, UsageError

MESSAGE_MAX = 10 * 1024 * 1024
"""Bytes of a message as it travels, files in base64: what the daemon takes."""


class MessageTooLarge(CtlError):
    exit_code = 2
    code = "TOO_LARGE"


def part_text(part: dict[str, Any]) -> str:
    """A part of a message as a person reads it: the text, or what else it is."""
    if part["type"] == "file":
        return f"({part['file'].get('name') or part['file'].get('uri') or 'a file'})"
    return str(part["text"]) if part["type"] == "text" else f"({part['type']})"


def read_text(given: str, stdin: BinaryIO) -> str:
    """The text: `given`, or all of stdin where that is `-`, without the newline at its end.

    Raises UsageError, MessageTooLarge."""
    raw = stdin.read(MESSAGE_MAX + 2) if given == "-" else os.fsencode(given)
    if len(raw) > MESSAGE_MAX + 1:
        raise _too_large("the message")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"the message is not UTF-8 (byte {error.start})") from None
    return text.removesuffix("\n") if given == "-" else text


def build_parts(text: str, files: list[str]) -> list[dict[str, Any]]:
    """The parts of a message (S15), files by value. Raises UsageError, MessageTooLarge."""
    parts: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
    size = len(text.encode())
    for path in files:
        file = _file(path, _read_file(path))
        size += len(file["bytes"])
        parts.append({"type": "file", "file": file})
    if not parts:
        raise UsageError("the message is empty")
    if size > MESSAGE_MAX:
        raise _too_large("the message with its files (a third more on the way)" if files else "the message")
    return parts


def _read_file(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            content = file.read(MESSAGE_MAX + 1)
    except OSError as error:
        raise UsageError(f"--file: {path}: {error.strerror}") from None
    if len(content) > MESSAGE_MAX:
        raise _too_large(path)
    return content


def _file(path: str, content: bytes) -> dict[str, str]:
    from mimetypes import guess_type

    kind = guess_type(path)[0] or "application/octet-stream"
    name = os.path.basename(path)  # noqa: PTH119 - pathlib takes 4 ms to import
    return {"name": name, "mimeType": kind, "bytes": base64.b64encode(content).decode("ascii")}


def _too_large(what: str) -> MessageTooLarge:
    limit = f"{MESSAGE_MAX // (1024 * 1024)} MB"
    return MessageTooLarge(
        f"{what} would be larger than {limit}: put it where the agent can read it, and name the path"
    )
