"""Permissions at the broker: the templates of the roles, which are all the rights of a member.

`{{name()}}` is the name in the user's token, that is, the host's. A host publishes in its own name only, reads its own
mail only, and makes, changes and deletes no streams. docs/fleet.md says what subjects cannot separate: a host can ack
work that another host took, and can have answers of the broker sent to any subject, which is why receivers check the
signature first.
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
"""Inbox for the broker's answers to an invitation. It is not the inbox of the host of that name: an invitation must not
allow to read a member's answers."""

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
    """Returns the roles, with the public keys that sign for them."""
    return [
        Scope(host, HOST, HOST_PUBLISHES, HOST_SUBSCRIBES, SUBSCRIPTIONS_MAX, BODY_MAX),
        Scope(join, JOIN, (f"syn.adm.join.{ME}",), (JOIN_INBOX,), 4, 16 * 1024),
    ]
