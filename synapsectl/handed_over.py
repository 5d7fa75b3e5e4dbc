"""Shows the files and data that a task handed over besides text, with type and size, and saves them in a folder.

A name from an agent is never used as a path: parts that could lead elsewhere, be hidden or control a terminal are
removed, no file is overwritten, and no other user can read it (0600). An address is shown, and not fetched.
"""

import base64
import binascii
import json
import os
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from synapsectl.errors import CtlError, UsageError
from synapsectl.output import CommandOutput, named, short_id

FILES_MAX: Final = 1_000
"""Most files and data of one task that are saved."""
BYTES_MAX: Final = 256 * 1024 * 1024
"""Largest size in bytes of all saved files of one task."""
NAME_MAX: Final = 150
"""Most bytes of a name."""
END_MAX: Final = 16
"""Most characters behind the last dot of a name that are kept when it is shortened."""
TRIES: Final = 10_000
_UNSAFE: Final = re.compile(r"[^\w.,+=@ ()\[\]-]")
_UNITS: Final = ("bytes", "KiB", "MiB", "GiB")


class NotSaved(CtlError):
    """A file could not be written, or there are too many; the message says which."""

    exit_code = 1
    code = "NOT_SAVED"


class HandedOver(NamedTuple):
    """A file, with its content or its address (`uri`), or data. `size` is in bytes, None for an address."""

    name: str
    kind: str
    size: int | None
    content: bytes | None = None
    uri: str = ""

    @property
    def words(self) -> str:
        """Returns a description on one line."""
        facts = [self.kind] if self.kind else []
        facts += [sized(self.size)] if self.size is not None else []
        told = f"{named(self.name)} ({', '.join(facts)})" if facts else named(self.name)
        return f"{told} at {named(self.uri)}" if self.uri else told


def handed_over(task: Mapping[str, Any]) -> list[HandedOver]:
    """Returns the parts besides text, in their order."""
    return list(_all(task))


def _all(task: Mapping[str, Any]) -> Iterator[HandedOver]:
    for artifact in task.get("artifacts") or []:
        for part in artifact.get("parts") or []:
            if part.get("type") == "file":
                yield _file(part["file"], artifact)
            elif part.get("type") == "data":
                text = json.dumps(part.get("data"), ensure_ascii=False, indent=2).encode("utf-8", "replace")
                yield HandedOver(f"{artifact.get('name') or 'data'}.json", "application/json", len(text), text)


def _file(file: Mapping[str, Any], artifact: Mapping[str, Any]) -> HandedOver:
    kind = str(file.get("mimeType") or "")
    name = str(file.get("name") or "") or _named_after(str(artifact.get("name") or "file"), kind)
    if file.get("bytes") is None:
        return HandedOver(name, kind, None, uri=str(file.get("uri") or ""))
    try:
        content = base64.b64decode(file["bytes"], validate=True)
    except (binascii.Error, ValueError):
        content = str(file["bytes"]).encode("utf-8", "replace")  # content that is no base64 is kept as it came
    return HandedOver(name, kind, len(content), content)


def _named_after(name: str, kind: str) -> str:
    from mimetypes import guess_extension

    return f"{name}{guess_extension(kind) or ''}"


def tell(out: CommandOutput, task: Mapping[str, Any]) -> None:
    """Names the files that were handed over, and how to save them; says nothing without files."""
    found = handed_over(task)
    for one in found:
        out.remark(f"handed over: {one.words}")
    if any(one.content is not None for one in found):
        out.remark(f"'synapsectl task {short_id(str(task['id']))} --save DIR' saves it")


def prepare(folder: str) -> None:
    """Makes the folder, before the daemon gets any request. Raises UsageError."""
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)  # noqa: PTH103 - pathlib takes 4 ms to import
    except OSError as error:
        raise UsageError(f"--save: {named(folder)}: {error.strerror}") from None


def save(out: CommandOutput, task: Mapping[str, Any], folder: str) -> list[str]:
    """Writes everything that has content, with a note for each file; returns the paths. Raises NotSaved."""
    paths, left = list[str](), BYTES_MAX
    for number, one in enumerate(handed_over(task), 1):
        if one.content is None:
            out.note(f"not fetched: {one.words}")
            continue
        left -= len(one.content)
        if number > FILES_MAX or left < 0:
            raise NotSaved(f"more than {FILES_MAX} files, or {sized(BYTES_MAX)}: the rest is not saved")
        try:
            path = _written(folder, safe(one.name), one.content)
        except OSError as error:
            raise NotSaved(f"{named(one.name)} is not saved: {error.strerror}") from None
        out.note(f"saved {named(path)} ({sized(len(one.content))})")
        paths.append(path)
    return paths


def _written(folder: str, name: str, content: bytes) -> str:
    """Writes the content under the name, or the next that is free; returns the path. Raises OSError."""
    base, dot, end = name.rpartition(".") if "." in name[1:] else (name, "", "")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    for number in range(1, TRIES):
        path = os.path.join(folder, name if number == 1 else f"{base}-{number}{dot}{end}")  # noqa: PTH118 - see above
        try:
            fd = os.open(path, flags, 0o600)
        except FileExistsError:
            continue
        try:
            with os.fdopen(fd, "wb") as file:
                file.write(content)
        except OSError:
            os.unlink(path)  # noqa: PTH108 - see above
            raise
        return path
    raise OSError(0, "there are too many of that name")


def safe(name: str) -> str:
    """Returns a file's name, made from one that another chose: it is no path, not hidden, and has nothing that a
    terminal obeys."""
    last = name.replace("\\", "/").rstrip("/").rpartition("/")[2]
    clean = _UNSAFE.sub("_", last).lstrip(". -").rstrip(". ") or "file"
    kept = clean.encode("utf-8", "replace")
    if len(kept) <= NAME_MAX:
        return clean
    base, dot, end = clean.rpartition(".")
    if not dot or len(end) > END_MAX:
        base, dot, end = clean, "", ""
    room = NAME_MAX - len((dot + end).encode())
    return base.encode()[:room].decode("utf-8", "ignore").rstrip(". ") + dot + end


def sized(size: int) -> str:
    """Returns the size in words for a person."""
    value, unit = float(size), 0
    while value >= 1024 and unit < len(_UNITS) - 1:
        value, unit = value / 1024, unit + 1
    return f"{size} {_UNITS[0]}" if unit == 0 else f"{value:.1f} {_UNITS[unit]}"
