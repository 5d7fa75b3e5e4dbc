"""Builds the message of `send`: its text from the command line or stdin, and its files."""

import base64
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, BinaryIO

from synapsectl.errors import ApiError, BadAnswer, CtlError, UsageError
from synapsectl.output import named

if TYPE_CHECKING:
    from synapsectl.client import Client

MESSAGE_MAX = 10 * 1024 * 1024
"""Bytes of a message in transit, files in base64: the daemon's limit."""


PIECE = 1024 * 1024
"""Bytes of a large file that go to the daemon at a time."""
LEFT = 64 * 1024
"""Bytes of a message for everything around its files."""
BLANKS = 256
"""Bytes of blanks and ends of lines around a secret that are passed over."""


SYSTEM = "synapse-system"
"""Sender of the instructions that synapsed gives each agent."""

INSTRUCTIONS = "instructions from synapsed"
"""Words for such a message in the place of its text."""


class MessageTooLarge(CtlError):
    exit_code = 2
    code = "TOO_LARGE"


def part_text(part: dict[str, Any]) -> str:
    """Returns a part of a message for people: the text, or its kind."""
    if part["type"] == "file":
        return f"({named(part['file'].get('name') or part['file'].get('uri') or 'a file')})"
    return str(part["text"]) if part["type"] == "text" else f"({part['type']})"


def is_instructions(task: Mapping[str, Any]) -> bool:
    """Returns True if the task is synapsed's own instructions to its agent."""
    sender = (task.get("metadata") or {}).get("sender")
    return isinstance(sender, dict) and sender.get("sender_id") == SYSTEM


def read_text(given: str, stdin: BinaryIO, what: str = "the message") -> str:
    """Returns the text: `given`, or all of stdin if that is `-`, without the newline at its end. Raises UsageError,
    MessageTooLarge, which name it by `what`."""
    if given == "-":
        return read_all(stdin, what).removesuffix("\n")
    return _decoded(given.encode("utf-8", "surrogateescape"), what)


def read_all(stdin: BinaryIO, what: str) -> str:
    """Returns all of stdin. Raises UsageError, MessageTooLarge."""
    return _decoded(stdin.read(MESSAGE_MAX + 2), what)


def _decoded(raw: bytes, what: str) -> str:
    if len(raw) > MESSAGE_MAX + 1:
        raise _too_large(what)
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"{what} is not UTF-8 (byte {error.start})") from None


def read_secret(what: str, stdin: BinaryIO, most: int) -> str:
    """Returns the one line on stdin, of at most `most` bytes; a longer one is refused, never cut. Raises UsageError,
    which says nothing of what was read."""
    raw = stdin.read(most + BLANKS + 1)
    secret = raw.strip()
    if not secret:
        raise UsageError(f"{what}: nothing came on stdin: pipe it in, as in 'command | synapsectl …'")
    if len(secret) > most or len(raw) > most + BLANKS:
        raise UsageError(f"{what}: more than {most} bytes came on stdin: pipe in the one line that it is")
    try:
        return secret.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"{what}: what came on stdin is not UTF-8 (byte {error.start})") from None


def build_parts(text: str, files: list[str], large: list[str] | None = None) -> list[dict[str, Any]]:
    """Returns the parts of a message (S15), files by value; those of `large` are added later. Raises UsageError,
    MessageTooLarge."""
    parts: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
    size = len(text.encode())
    for path in files:
        file = _file(path, _read_file(path))
        size += len(file["bytes"])
        parts.append({"type": "file", "file": file})
    if not parts and not large:
        raise UsageError("the message is empty")
    if size > MESSAGE_MAX:
        raise _too_large("the message with its files (a third more on the way)" if files else "the message")
    return parts


def divided(files: list[str]) -> tuple[list[str], list[str]]:
    """Returns the files that go by value with a message, and those that go to the daemon before it (`give`)."""
    small, large, left = [], [], MESSAGE_MAX // 4 * 3 - LEFT
    for path in files:
        try:
            size = os.stat(path).st_size if os.path.isfile(path) else 0  # noqa: PTH113, PTH116 - pathlib takes 4 ms to import
        except OSError:
            size = 0  # reading it reports the error
        if size <= left:
            left -= size
            small.append(path)
        else:
            large.append(path)
    return small, large


def give(client: "Client", path: str) -> dict[str, Any]:
    """Returns the part that names the file, once the daemon has it. Raises UsageError, ApiError, MessageTooLarge if no
    fleet carries such files."""
    from mimetypes import guess_type

    name = _name(path)
    try:
        with open(path, "rb") as file:
            client.get("/fleet/hosts")  # nothing is sent without a fleet
            told = client.post("/fleet/files", {"name": name})
            offset, piece = 0, file.read(PIECE)
            while True:
                after = file.read(PIECE)
                body = {"offset": offset, "bytes": base64.b64encode(piece).decode("ascii"), "last": not after}
                told = client.post(f"/fleet/files/{told['id']}", body)
                offset += len(piece)
                if not after:
                    break
                piece = after
    except OSError as error:
        raise UsageError(f"--file: {named(path)}: {error.strerror}") from None
    except (ApiError, BadAnswer) as error:  # no fleet, or a daemon without such requests
        if isinstance(error, ApiError) and error.code not in ("NOT_IN_FLEET", "NOT_FOUND"):
            raise
        raise _too_large("the message with its files (a third more on the way)") from None
    kind = guess_type(path)[0] or "application/octet-stream"
    file_given = {"name": name, "mimeType": kind, "uri": told["uri"]}
    return {"type": "file", "file": file_given, "metadata": {"size": told["size"]}}


def _read_file(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            content = file.read(MESSAGE_MAX + 1)
    except OSError as error:
        raise UsageError(f"--file: {named(path)}: {error.strerror}") from None
    if len(content) > MESSAGE_MAX:
        raise _too_large(named(path))
    return content


def _file(path: str, content: bytes) -> dict[str, str]:
    from mimetypes import guess_type

    kind = guess_type(path)[0] or "application/octet-stream"
    return {"name": _name(path), "mimeType": kind, "bytes": base64.b64encode(content).decode("ascii")}


def _name(path: str) -> str:
    """Returns the file's name as text; a byte that is no UTF-8 becomes `\\xNN`."""
    name = os.path.basename(path)  # noqa: PTH119 - pathlib takes 4 ms to import
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _too_large(what: str) -> MessageTooLarge:
    limit = f"{MESSAGE_MAX // (1024 * 1024)} MB"
    return MessageTooLarge(
        f"{what} would be larger than {limit}: put it where the agent can read it, and name the path"
    )
