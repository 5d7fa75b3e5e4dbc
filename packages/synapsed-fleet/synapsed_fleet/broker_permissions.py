"""Permissions at the broker: the templates of the roles, which are the whole right of a member.

`{{name()}}` is the name in the user's token, that is the host's. A host says things as itself only, reads its own
mail only, makes, changes and deletes nothing. What subjects cannot keep apart is said in docs/fleet.md: one who acks
work that another host took, and answers of the broker that go to a subject of one's own choice, which is why receivers
ask for a signature first.
"""

from typing import Final

from synapsed_fleet.jwt import NAME, Scope
from synapsed_fleet.names import ANYONE
from synapsed_fleet.streams import BODY_MAX, CLAIM, EVENTS, FILES, HOSTS, IN, WORK

HOST: Final = "host"
JOIN: Final = "join"
"""Role of a host with an invitation: it may ask for a token once, while the invitation is valid."""

INBOX: Final = f"_INBOX_{NAME}.>"
JOIN_INBOX: Final = f"_JOIN_{NAME}.>"
"""Not the inbox of a host of that name: an invitation must not let read what a member is answered."""

ME: Final = NAME

HOST_PUBLISHES: Final = (
    f"syn.to.*.{ME}.>",
    f"syn.work.*.{ME}",
    "syn.claim.>",
    f"syn.say.*.{ME}",
    f"syn.ev.{ME}.>",
    f"syn.file.*.{ME}.>",
    f"$KV.SYN_HOSTS.{ME}",
    f"$JS.API.CONSUMER.MSG.NEXT.{IN}.{ME}",
    f"$JS.API.CONSUMER.INFO.{IN}.{ME}",
    f"$JS.ACK.{IN}.{ME}.>",
    f"$JS.API.CONSUMER.MSG.NEXT.{WORK}.*",
    f"$JS.API.CONSUMER.INFO.{WORK}.*",
    f"$JS.ACK.{WORK}.>",
    f"$JS.API.STREAM.INFO.{IN}",
    f"$JS.API.STREAM.INFO.{WORK}",
    f"$JS.API.STREAM.INFO.{HOSTS}",
    f"$JS.API.STREAM.INFO.{EVENTS}",
    *(f"$JS.API.DIRECT.GET.{name}{rest}" for name in (HOSTS, CLAIM, EVENTS) for rest in ("", ".>")),
    f"$JS.API.STREAM.INFO.{FILES}",
    f"$JS.API.DIRECT.GET.{FILES}.syn.file.{ME}.>",
    f"$JS.API.DIRECT.GET.{FILES}.syn.file.{ANYONE}.>",
    f"syn.adm.renew.{ME}",
    f"syn.adm.classes.{ME}",
    f"syn.adm.broker.{ME}",
)
HOST_SUBSCRIBES: Final = (INBOX, f"syn.say.{ME}.>")

SUBSCRIPTIONS_MAX: Final = 256
"""Most subscriptions of one connection."""


def scopes(*, host: str, join: str) -> list[Scope]:
    """The roles, with the public keys that sign for them."""
    return [
        Scope(host, HOST, HOST_PUBLISHES, HOST_SUBSCRIBES, SUBSCRIPTIONS_MAX, BODY_MAX),
        Scope(join, JOIN, (f"syn.adm.join.{ME}",), (JOIN_INBOX,), 4, 16 * 1024),
    ]
