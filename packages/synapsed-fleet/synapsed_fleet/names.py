"""Names of the fleet: hosts, classes, ids, and the subjects that are made of them. Pure.

::

    syn.to.<dst>.<src>.<kind>      a message between hosts: msg, upd, ctl, rcpt
    syn.work.<class>.<src>         work for any host that takes the class
    syn.claim.<src>.<task>.<round> the host that took it
    syn.ev.<host>.<type>           an event of that host
    syn.say.<dst>.<src>            text of an answer that still grows, kept nowhere
    syn.file.<dst>.<src>.<id>.<n>  chunk n of content that is too large for a message
    $KV.SYN_HOSTS.<host>           a host's record

The broker enforces which subjects a host may publish; only the signature proves which host wrote a message.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Self

from synapsed.errors import InvalidRequest
from synapsed.shared.regex import regex

HOST: Final = regex(r"[a-z0-9][a-z0-9-]{0,30}")
CLASS: Final = regex(r"[a-z0-9][a-z0-9-]{0,62}")
EVENT: Final = regex(r"[a-zA-Z][a-zA-Z0-9]{0,39}")
ID: Final = regex(r"[A-Za-z0-9][A-Za-z0-9_-]{7,63}(?:/[0-9]{1,12})?")
"""Pattern of the id of a task, or of a host's message; an update's is `<task>/<n>`."""
ANY: Final = "any:"
TEAM: Final = "team:"
HOSTS_PREFIX: Final = "$KV.SYN_HOSTS."
ANYONE: Final = "_any"
"""Stands for a host in the subjects of files that go with work for any; no host's name begins with an underscore."""
URGENT: Final = "-hi"
"""End of the class of work of priority 4 and 5, which is requested first."""
URGENT_FROM: Final = 4


class MailKind(StrEnum):
    """Kinds of messages between hosts."""

    MESSAGE = "msg"
    UPDATE = "upd"
    CONTROL = "ctl"
    RECEIPT = "rcpt"


class BadName(ValueError):
    """Error for a text that is no name, or no subject, of the fleet."""


@dataclass(frozen=True, slots=True)
class MailSubject:
    """Subject of mail for one host: `syn.to.<dst>.<src>.<kind>`."""

    dst: str
    src: str
    kind: MailKind

    def __str__(self) -> str:
        return f"syn.to.{self.dst}.{self.src}.{self.kind}"

    @classmethod
    def parse(cls, subject: str) -> Self:
        """Parses a subject. Raises BadName."""
        tokens = subject.split(".")
        if len(tokens) != 5 or tokens[:2] != ["syn", "to"] or tokens[4] not in list(MailKind):
            raise BadName("it is no subject of the mail between hosts")
        return cls(host(tokens[2]), host(tokens[3]), MailKind(tokens[4]))


@dataclass(frozen=True, slots=True)
class WorkSubject:
    """Subject of work for any host of a class: `syn.work.<class>.<src>`."""

    cls: str
    src: str

    def __str__(self) -> str:
        return f"syn.work.{self.cls}.{self.src}"

    @classmethod
    def parse(cls, subject: str) -> Self:
        """Parses a subject. Raises BadName."""
        tokens = subject.split(".")
        if len(tokens) != 4 or tokens[:2] != ["syn", "work"] or CLASS.fullmatch(tokens[2]) is None:
            raise BadName("it is no subject of work for any")
        return cls(tokens[2], host(tokens[3]))


@dataclass(frozen=True, slots=True)
class SaySubject:
    """Subject of the text of an answer that still grows, which the broker does not store: `syn.say.<dst>.<src>`."""

    dst: str
    src: str

    def __str__(self) -> str:
        return f"syn.say.{self.dst}.{self.src}"

    @classmethod
    def parse(cls, subject: str) -> Self:
        """Parses a subject. Raises BadName."""
        tokens = subject.split(".")
        if len(tokens) != 4 or tokens[:2] != ["syn", "say"]:
            raise BadName("it is no subject of live text")
        return cls(host(tokens[2]), host(tokens[3]))


@dataclass(frozen=True, slots=True)
class EventSubject:
    """Subject of a host's events: `syn.ev.<host>.<type>`. The agent is not in it: names of agents may have dots."""

    src: str
    type: str

    def __str__(self) -> str:
        return f"syn.ev.{self.src}.{self.type}"

    @classmethod
    def parse(cls, subject: str) -> Self:
        """Parses a subject. Raises BadName."""
        tokens = subject.split(".")
        if len(tokens) != 4 or tokens[:2] != ["syn", "ev"] or EVENT.fullmatch(tokens[3]) is None:
            raise BadName("it is no subject of an event")
        return cls(host(tokens[2]), tokens[3])


def host(text: str) -> str:
    """Returns `text` if it is a host's name. Raises BadName."""
    if HOST.fullmatch(text) is None:
        raise BadName("it is no name of a host: at most 31 of a-z, 0-9 and '-'")
    return text


def identity(text: str) -> str:
    """Returns `text` if it is an id. Raises BadName."""
    if ID.fullmatch(text) is None:
        raise BadName("it is no id of the fleet")
    return text


def claim(src: str, task_id: str, round_: int) -> str:
    """Returns the subject of the claims of one round of a task of the host `src`: another host's task may have the same
    id."""
    return f"syn.claim.{src}.{task_id}.{round_}"


def chunk(dst: str, src: str, parcel: str, n: int) -> str:
    """Returns the subject of one chunk of a parcel (`parcel`); `dst` is a host, or `any:CLASS`."""
    return f"syn.file.{ANYONE if dst.startswith(ANY) else dst}.{src}.{parcel}.{n}"


def record(name: str) -> str:
    """Returns the subject of a host's record."""
    return f"{HOSTS_PREFIX}{name}"


def parse_update(identity_: str) -> tuple[str, int]:
    """Returns the task and the number of an update's id; the number is -1 for any other id."""
    task_id, _, n = identity_.partition("/")
    return task_id, int(n) if n else -1


def urgent(name: str) -> str:
    """Returns the class of the urgent work of a class."""
    return f"{name}{URGENT}"


def class_of(address: str, priority: int) -> str:
    """Returns the class in the subjects for `any:CLASS` at this priority. Raises InvalidRequest."""
    name = address.removeprefix(ANY)
    if CLASS.fullmatch(name) is None or name.endswith(URGENT):
        raise InvalidRequest(
            f"{address[:80]!r}: behind 'any:' stands a profile or a skill, at most 63 of a-z, 0-9 and '-'",
            field="agent",
        )
    return urgent(name) if priority >= URGENT_FROM else name
