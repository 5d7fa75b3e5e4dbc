"""The table of a fleet's streams and consumers at the broker, and comparisons with it.

Pure: documents of JetStream's API as dictionaries, made and compared. The module `admin` sends them. Only the fleet's
administrator may create consumers: a host that may create one can have the broker deliver to any subject.

No stream is the only copy of a message: what the broker loses, its sender publishes again. All have `deny_delete`, and
none allows rollups, schedules or republishes: a rollup header of one host would erase messages of others.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

IN: Final = "SYN_IN"
WORK: Final = "SYN_WORK"
CLAIM: Final = "SYN_CLAIM"
EVENTS: Final = "SYN_EV"
HOSTS: Final = "KV_SYN_HOSTS"
FILES: Final = "SYN_FILES"

MIB: Final = 1 << 20
GIB: Final = 1 << 30
DAY_S: Final = 86_400
NANOSECONDS: Final = 1_000_000_000
STORE_MAX: Final = 20 * GIB
"""Bytes of the store without a setting."""
STORE_MIN: Final = 256 * MIB
"""Least bytes of the store: below it the shares of the streams are of no use."""

MEMBERS_MAX: Final = 2000
"""Most hosts of a fleet: each has a consumer of the mail."""
CLASSES_MAX: Final = 512
"""Most classes of work: each has a consumer of the work."""
MAIL_MAX: Final = 10_000
"""Most messages of one kind from one host to another that are not taken yet; the broker refuses further ones."""
TURNS_MAX: Final = 10 * MAIL_MAX
"""Most messages that one host was given and has not acked, most of them because their turn comes later (`mail_turns`):
as many as ten members can send. Mail behind them waits until some are done."""
BODY_MAX: Final = 1 * MIB
EVENT_MAX: Final = 32 * 1024
"""Most bytes of an event with its headers."""

type Document = dict[str, Any]


class Kept(NamedTuple):
    """One stream. `share` of the broker's store is reserved for it, at most `bytes_max`: the broker refuses streams
    that together may become larger than its store."""

    name: str
    subjects: tuple[str, ...]
    retention: str
    discard: str
    days: float
    bytes_max: int
    share: float
    per_subject: int = -1
    per_subject_refused: bool = False
    """True if messages beyond `per_subject` are refused; otherwise they replace the oldest."""
    direct: bool = False
    """True if members may read single messages by subject, without a consumer."""
    consumers: int = -1
    """Most consumers. If the number is not given, the broker has its own limit: 1,000 since nats-server 2.15."""
    message_max: int = BODY_MAX
    duplicates_s: float = 120.0
    ttl: bool = False
    """True if a message may have a lifetime: a message that is not needed any more is replaced by one that expires
    after a second."""
    relaxed: bool = False
    """True if the broker, without replicas, need not sync each write: the content is published again soon."""


STREAMS: Final = (
    Kept(
        IN,
        ("syn.to.>",),
        "workqueue",
        "new",
        14,
        4 * GIB,
        0.40,
        per_subject=MAIL_MAX,
        per_subject_refused=True,
        consumers=MEMBERS_MAX,
    ),
    Kept(WORK, ("syn.work.>",), "workqueue", "new", 14, 256 * MIB, 0.04, consumers=CLASSES_MAX),
    Kept(
        CLAIM,
        ("syn.claim.>",),
        "limits",
        "new",
        30,  # longer than WORK keeps what may be claimed
        256 * MIB,
        0.04,
        per_subject=1,
        per_subject_refused=True,
        direct=True,
    ),
    Kept(EVENTS, ("syn.ev.>",), "limits", "old", 7, 8 * GIB, 0.10, direct=True, message_max=EVENT_MAX),
    Kept(FILES, ("syn.file.>",), "limits", "old", 7, 20 * GIB, 0.30, per_subject=1, direct=True, ttl=True),
    Kept(HOSTS, ("$KV.SYN_HOSTS.>",), "limits", "old", 0, 64 * MIB, 0.05, per_subject=1, direct=True, relaxed=True),
)


def stream(kept: Kept, *, replicas: int, store: int, consumers: int = -1) -> Document:
    """Returns the configuration of one stream at brokers that keep `store` bytes each, and allow an account at most
    `consumers` consumers of a stream (-1: any number)."""
    document: Document = {
        "name": kept.name,
        "subjects": list(kept.subjects),
        "retention": kept.retention,
        "storage": "file",
        "num_replicas": replicas,
        "discard": kept.discard,
        "discard_new_per_subject": kept.per_subject_refused,
        "max_age": int(kept.days * DAY_S) * NANOSECONDS,
        "max_bytes": min(kept.bytes_max, int(store * kept.share)),
        "max_msgs": -1,
        "max_consumers": min(kept.consumers, consumers) if consumers > 0 else kept.consumers,
        "max_msgs_per_subject": kept.per_subject,
        "max_msg_size": kept.message_max,
        "duplicate_window": int(kept.duplicates_s * NANOSECONDS),
        "deny_delete": True,
        "deny_purge": False,  # the admin empties a removed host's mail
        "allow_rollup_hdrs": False,
        "allow_direct": kept.direct,
        "allow_msg_schedules": False,
        "allow_msg_ttl": kept.ttl,
    }
    if kept.relaxed and replicas == 1:
        document["persist_mode"] = "async"
    return document


def streams(*, replicas: int, store: int, consumers: int = -1) -> list[Document]:
    """Returns the configurations of all streams."""
    return [stream(kept, replicas=replicas, store=store, consumers=consumers) for kept in STREAMS]


def mail_of(host: str, *, replicas: int) -> Document:
    """Returns the consumer of the mail to `host`, which acks a message once it is committed there."""
    return _consumer(host, f"syn.to.{host}.>", ack_wait_s=5, pending=TURNS_MAX, replicas=replicas)


def work_of(name: str, *, replicas: int) -> Document:
    """Returns the consumer of the work of one class, which all hosts of the class share."""
    return _consumer(name, f"syn.work.{name}.>", ack_wait_s=10, pending=1024, replicas=replicas)


def _consumer(name: str, subject: str, *, ack_wait_s: int, pending: int, replicas: int) -> Document:
    return {
        "durable_name": name,
        "name": name,
        "filter_subject": subject,
        "deliver_policy": "all",
        "ack_policy": "explicit",
        "replay_policy": "instant",
        "ack_wait": ack_wait_s * NANOSECONDS,
        "max_ack_pending": pending,
        "max_deliver": -1,
        "num_replicas": replicas,
        "max_waiting": 512,
    }


FORBIDDEN: Final = ("republish", "mirror", "sources", "subject_transform", "placement", "sealed", "first_seq")
"""Settings that no stream of the fleet may have, whoever made it."""


class Difference(NamedTuple):
    """A setting that differs from the table."""

    key: str
    wanted: Any
    found: Any

    def __str__(self) -> str:
        return f"{self.key} is {self.found!r}, should be {self.wanted!r}"


def differences(wanted: Mapping[str, Any], found: Mapping[str, Any]) -> list[Difference]:
    """Returns the differences of a broker's stream or consumer from the table. A missing value counts as its zero."""
    told = []
    for key, value in wanted.items():
        there = found.get(key, _zero(value))
        if there != value:
            told.append(Difference(key, value, there))
    told += [Difference(key, None, found[key]) for key in FORBIDDEN if found.get(key)]
    return told


def unchangeable(found: Iterable[Difference]) -> list[Difference]:
    """Returns the differences that no update changes: the stream must be made again, which only a person decides."""
    return [one for one in found if one.key in {"retention", "storage", "persist_mode", "mirror", "sealed"}]


def _zero(value: Any) -> Any:
    return type(value)() if isinstance(value, bool | int | str) else None
