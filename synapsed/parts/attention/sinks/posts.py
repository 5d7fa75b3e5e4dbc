"""Sinks that are reached by HTTP: a receiver of signed events, and ntfy. Addresses are screened as those of push
notifications are (`synapsed.outgoing.screening`)."""

import json
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

from synapsed.clock import iso
from synapsed.kernel import Kernel
from synapsed.outgoing.poster import HttpPoster
from synapsed.parts.attention.notification_policy import Notice
from synapsed.parts.attention.sinks.base import Buttons, Untold

NTFY_MAX: Final = 3500
"""Most bytes of a message: ntfy turns one of more than 4,096 into a file."""

_TAGS: Final = {"permission": "key", "limit": "hourglass", "finished": "white_check_mark", "crash_loop": "boom"}
URGENT: Final = frozenset({"permission", "question", "plan", "sign_in", "account", "unreadable", "crash_loop"})

TRIED_AGAIN: Final = frozenset({408, 425, 429})
"""Statuses of clients' errors that pass by themselves."""


class HttpCalls:
    """Calls to one receiver."""

    def __init__(self, poster: HttpPoster, kernel: Kernel) -> None:
        self._poster = poster
        self.outgoing = kernel.outgoing
        self.clock = kernel.clock

    async def call(self, method: str, url: str, body: bytes, headers: Mapping[str, str]) -> None:
        """Makes a request. Raises Untold."""
        receipt = await self._poster.send(method, url, [body], {"User-Agent": self.outgoing.user_agent, **headers})
        if not receipt.accepted:
            status = receipt.status
            refused = status is not None and 400 <= status < 500 and status not in TRIED_AGAIN
            raise Untold(receipt.problem, after=self.outgoing.asked(receipt), refused=refused)

    async def close(self) -> None:
        await self._poster.close()


class WebhookPort:
    """Sink for Standard Webhooks: `attention.opened` and `attention.closed`. A repeated event has the same
    `webhook-id`."""

    once = False
    withdraws = True
    sure = False

    def __init__(self, url: str, key: bytes, calls: HttpCalls) -> None:
        self._url = url
        self._key = key
        self._calls = calls

    async def tell(self, notice: Notice, buttons: Buttons | None) -> str:
        await self._post("attention.opened", notice.id, {**notice.data})
        return ""

    async def withdraw(self, item_id: str, ref: str, outcome: Mapping[str, Any]) -> None:
        await self._post("attention.closed", item_id, {"id": item_id, **outcome})

    async def _post(self, kind: str, item_id: str, data: Mapping[str, Any]) -> None:
        now = self._calls.clock.wall()
        body = json.dumps({"type": kind, "timestamp": iso(now), "data": data}, ensure_ascii=False).encode()
        webhook_id = f"{item_id}_{kind.rpartition('.')[2]}"
        headers = self._calls.outgoing.headers(self._key, webhook_id=webhook_id, at=int(now), body=body)
        await self._calls.call("POST", self._url, body, headers)

    async def close(self) -> None:
        await self._calls.close()


class NtfyPort:
    """Sink for a topic of an ntfy server. The item's id is the sequence id: a repeated notice replaces the first one,
    and a notice that is taken back is deleted if the server can do so (2.16 and newer)."""

    once = False
    withdraws = True
    sure = False

    def __init__(self, url: str, topic: str, token: str | None, calls: HttpCalls) -> None:
        self._url = url
        self._topic = topic
        self._headers = {"Authorization": f"Bearer {token}"} if token is not None else {}
        self._calls = calls

    async def tell(self, notice: Notice, buttons: Buttons | None) -> str:
        words = notice.body or notice.title
        message = _clipped(words)
        told: dict[str, Any] = {
            "topic": self._topic,
            "title": notice.title,
            "message": message,
            "tags": [_TAGS.get(notice.kind, "bell")],
            "priority": 4 if notice.kind in URGENT else 3,
            "sequence_id": _sequence(notice.id),
        }
        if buttons is not None and message == words:  # nobody can approve what is not shown
            told["actions"] = [_button("Approve", buttons.approve), _button("Deny", buttons.deny)]
        body = json.dumps(told, ensure_ascii=False).encode()
        await self._calls.call("POST", self._url, body, {"Content-Type": "application/json", **self._headers})
        return _sequence(notice.id)

    async def withdraw(self, item_id: str, ref: str, outcome: Mapping[str, Any]) -> None:
        url = f"{self._url}/{quote(self._topic)}/{quote(ref)}"
        await self._calls.call("DELETE", url, b"", self._headers)

    async def close(self) -> None:
        await self._calls.close()


def _sequence(item_id: str) -> str:
    """Returns a valid sequence id for ntfy: at most 64 letters, digits, `-` and `_`."""
    return "".join(char if char.isascii() and (char.isalnum() or char in "-_") else "-" for char in item_id)[:64]


def _button(label: str, url: str) -> dict[str, Any]:
    call = {"url": url, "method": "POST", "headers": {"Content-Type": "application/json"}, "body": "{}"}
    return {"action": "http", "label": label, **call, "clear": True}


def _clipped(text: str) -> str:
    encoded = text.encode()
    return text if len(encoded) <= NTFY_MAX else encoded[:NTFY_MAX].decode(errors="ignore") + "…"
