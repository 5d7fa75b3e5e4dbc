"""A message as it is typed, and the files that go with it.

What a terminal takes well is typed: text, small data as JSON, a file's address. What it does not (long text, large
data, the content of files) is written into the agent's inbox, and the typed text names the path. `compose` is pure, and
gives the same letter for the same task each time: a delivery that is taken up again after a restart finds its own files
and its own words. `agents.message_files` puts the files there.
"""

import base64
import binascii
import json
import mimetypes
import re
import unicodedata
from dataclasses import dataclass
from pathlib import Path

from synapsed.errors import InvalidRequest, TooLarge
from synapsed.model.kept_file import SIZE, KeptFile, is_kept
from synapsed.model.task import DataPart, FilePart, Message, Task, TextPart
from synapsed.profiles.screen_spec import DeliverySpec
from synapsed.tasks import sender_mark
from synapsed.tasks.sender_mark import SHORT_ID
from synapsed.tasks.transitions import is_command
from synapsed.terminal.delivery import is_blank

TEXT_MAX = 1 << 20
"""Bytes of a message's text, data included. What is longer is a file, and should be sent as one."""

DATA_TYPED_MAX = 8 << 10
"""Bytes of one data part that are typed; a larger one becomes a file."""

FILES_MAX = 64
"""Files of one message."""

NAME_MAX = 100
"""Bytes of a file's name, as it came."""

_UNSAFE = re.compile(r"[^\w.+=,@~-]+")


@dataclass(frozen=True, slots=True)
class Enclosure:
    """A file of the inbox; `name` has no separators. What is kept already (`model.kept_file`) has its place, `kept`, in
    place of the content."""

    name: str
    content: bytes = b""
    kept: str | None = None


@dataclass(frozen=True, slots=True)
class Letter:
    text: str
    enclosures: tuple[Enclosure, ...] = ()
    command: bool = False
    """The text is a command of the program."""


def compose(task: Task, spec: DeliverySpec, inbox: Path) -> Letter:
    """What is typed for `task`, marked with the sender where one is told, and what is put into `inbox`.

    Raises InvalidRequest for an empty message and for a part that is no file, TooLarge beyond TEXT_MAX, and for a
    command of the program that cannot be typed whole.
    """
    writer = _Writer(task, spec, inbox)
    text = writer.text(task.message)
    mark = sender_mark.mark(task)
    ending = sender_mark.provenance(task) if spec.provenance else ""
    if mark and not sender_mark.is_ours(task):
        text = sender_mark.neutralised(text)
    if len(f"{mark}{spec.neutral_prefix}{text}{ending}".encode()) > spec.max_bytes:
        if is_command(task):
            raise TooLarge(f"a command of the program can have at most {spec.max_bytes} bytes", limit=spec.max_bytes)
        text = writer.note(spec.long_text, "message.txt", text.encode())
    return Letter(mark + text + ending, tuple(writer.enclosures), is_command(task))


def note(task: Task, text: str) -> Letter:
    """What synapsed itself says in the task's turn."""
    return Letter(sender_mark.system_mark(task.id) + text)


class _Writer:
    def __init__(self, task: Task, spec: DeliverySpec, inbox: Path) -> None:
        self.enclosures: list[Enclosure] = []
        self._prefix = task.id[:SHORT_ID]
        self._spec = spec
        self._inbox = inbox

    def text(self, message: Message) -> str:
        pieces = []
        for index, part in enumerate(message.parts):
            match part:
                case TextPart():
                    pieces.append(part.text)
                case DataPart():
                    pieces.append(self._data(part))
                case FilePart():
                    pieces.append(self._file(part, f"message.parts[{index}].file"))
        text = "\n".join(pieces)
        if len(text) > TEXT_MAX or len(text.encode()) > TEXT_MAX:  # a character has at least one byte
            raise TooLarge(f"the message's text has more than {TEXT_MAX} bytes: send it as a file", limit=TEXT_MAX)
        if is_blank(text):
            raise InvalidRequest("the message is empty", field="message.parts")
        return text

    def note(self, wording: str, name: str, content: bytes) -> str:
        """Enclose a file; the words that refer to it."""
        return self._enclosed(wording, name, str(len(content)), content, None)

    def _enclosed(self, wording: str, name: str, size: str, content: bytes, kept: str | None) -> str:
        names = {enclosure.name for enclosure in self.enclosures}
        unique = f"{self._prefix}-{name}"
        number = 1
        while unique in names:
            number += 1
            unique = f"{self._prefix}-{number}-{name}"
        if len(self.enclosures) >= FILES_MAX:
            raise TooLarge(f"a message can have at most {FILES_MAX} files", limit=FILES_MAX)
        self.enclosures.append(Enclosure(unique, content, kept))
        return wording.replace("{bytes}", size).replace("{path}", str(self._inbox / unique))

    def _data(self, part: DataPart) -> str:
        text = json.dumps(part.data, ensure_ascii=False, indent=2)
        if len(text.encode()) > DATA_TYPED_MAX:
            return self.note(self._spec.file_text, "data.json", text.encode())
        return f"```json\n{text}\n```"

    def _file(self, part: FilePart, where: str) -> str:
        file = part.file
        if file.bytes is None:
            if not file.uri:
                raise InvalidRequest(f"{where}: needs bytes or uri", field=where)
            if is_kept(part):
                return self._kept(part, where)
            address = " ".join(file.uri.split())
            return f"{' '.join(file.name.split())}: {address}" if file.name else address
        try:
            content = base64.b64decode(file.bytes, validate=True)
        except (binascii.Error, ValueError) as error:
            raise InvalidRequest(f"{where}.bytes: is not base64 ({error})", field=f"{where}.bytes") from None
        return self.note(self._spec.file_text, safe_name(file.name, file.mime_type), content)

    def _kept(self, part: FilePart, where: str) -> str:
        kept = KeptFile.of(part.file.uri)
        if kept is None:
            raise InvalidRequest(f"{where}.uri: is no file that is kept here", field=f"{where}.uri")
        size = (part.metadata or {}).get(SIZE)
        name = safe_name(part.file.name, part.file.mime_type)
        return self._enclosed(self._spec.file_text, name, str(size) if isinstance(size, int) else "?", b"", kept.path)


def safe_name(name: str | None, mime_type: str | None = None) -> str:
    """`name` without folders, control characters, blanks, leading dots and dashes, in at most NAME_MAX bytes; its
    ending is kept where it is cut."""
    last = unicodedata.normalize("NFC", name or "").replace("\\", "/").rstrip("/").rpartition("/")[2]
    clean = _UNSAFE.sub("_", last).lstrip(".-_")
    if not clean:
        return f"file{mimetypes.guess_extension(mime_type or '') or ''}"
    stem, dot, ending = clean.rpartition(".")
    if not stem or len(ending.encode()) > NAME_MAX // 4:
        stem, dot, ending = clean, "", ""
    room = NAME_MAX - len((dot + ending).encode())
    return stem.encode()[:room].decode("utf-8", "ignore") + dot + ending
