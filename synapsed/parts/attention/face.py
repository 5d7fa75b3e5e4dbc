"""Items that wait for the person, over all agents, and the notifications about them.

`running` puts the part together, `routes` have the requests. `inbox` keeps the items in step with the log (`board`: all
open items; `consequences`: items that no program asks for). `notifier` sends them to each of the `sinks` (the places
where a person is notified) and to browsers (`browsers`, `webpush`, `vapid`); `notification_policy` decides when and in
which words, `notify` is its configuration, and `sent_notices` keeps the notices that each sink has got.
"""

from collections.abc import Sequence
from typing import Final

from synapsed.config.config import ConfigKey
from synapsed.interfaces import RIGHTS
from synapsed.kernel import Face, Route, WantedBy
from synapsed.parts.attention.notify import NotifyConfig


def _changes(old: NotifyConfig, new: NotifyConfig) -> Sequence[str]:
    where = ", ".join(new.sinks) or "nowhere"
    return [f"[notify] changed: you are told at {where}"]


KEY_FILE: Final = "push-key.pem"
"""Name of the file in the state directory with the key that signs web pushes."""

_LOOK = frozenset({"look"})
_ANY = frozenset(RIGHTS)

FACE = Face(
    name="attention",
    opens="synapsed.parts.attention.running",
    wanted=WantedBy(
        config=lambda config: bool(config.notify.sinks),
        agents=lambda _: True,
        rows=("SELECT 1 FROM open_attention",),
        files=lambda paths: [paths.state / KEY_FILE],
    ),
    sections={"notify": ConfigKey(NotifyConfig, NotifyConfig(), changes=_changes)},
    routes=(
        Route(method="GET", path="/inbox", handler="inbox.inbox", needs=_LOOK),
        Route(method="POST", path="/inbox/{item}/seen", handler="inbox.seen", needs=frozenset({"answer"})),
        Route(method="POST", path="/control/notify/test", handler="notify.test"),
        Route(method="POST", path="/answers/{token}", handler="notify.answer", public=True),
        Route(method="POST", path="/web/push", handler="webpush.subscribe", needs=_LOOK, of_caller=True),
        Route(method="DELETE", path="/web/push", handler="webpush.unsubscribe", needs=_ANY, of_caller=True),
    ),
    routes_in="synapsed.parts.attention.routes",
)
"""Description of this part for the daemon, which reads it without loading the part's code."""
