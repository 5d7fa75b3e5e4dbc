"""The browser of one device as a sink: Web Push (RFC 8030), encrypted for it alone (RFC 8291), signed (RFC 8292).

The push service keeps a message while the browser is away; a later message about the same item replaces it (`Topic`),
so that an item that is over is not shown. The service worker (`sw.js` of the part web) shows it.
"""

import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from synapsed.interfaces import PushPlace, Subscriber
from synapsed.kernel import Kernel
from synapsed.parts.attention.notification_policy import Notice
from synapsed.parts.attention.sinks.base import Buttons, Untold
from synapsed.parts.attention.sinks.posts import URGENT
from synapsed.parts.attention.vapid import PushKey, base64url
from synapsed.parts.attention.webpush import PLAIN_MAX, sealed

TTL_S: Final = 7 * 86_400
"""Seconds for which a push service keeps a message for a browser that is away."""

SHOWN: Final = 400
"""Most characters of a text that a notification shows, as a browser counts them (in UTF-16). Only a text that is shown
whole can be approved."""

TITLE_MAX: Final = 120
GONE: Final = frozenset({404, 410})
"""Statuses by which a push service says that the browser no longer exists (RFC 8030, 7.3)."""

REFUSED: Final = frozenset({401, 403})


class BrowserPort:
    """Sink of one browser. `forget` is called once the push service says that the browser is gone."""

    once = False
    withdraws = True
    sure = True

    def __init__(
        self,
        browser: Subscriber,
        *,
        key: PushKey,
        contact: str | None,
        kernel: Kernel,
        forget: Callable[[Subscriber], Awaitable[None]],
    ) -> None:
        self._browser = browser
        self._key = key
        self._contact = contact or contact_of(browser.place)
        self._outgoing = kernel.outgoing
        self._poster = kernel.outgoing.poster()
        self._clock = kernel.clock
        self._forget = forget

    async def tell(self, notice: Notice, buttons: Buttons | None) -> str:
        urgency = "high" if notice.kind in URGENT else "normal"
        await self._push(notice.id, told(notice, answers=self._browser.answers), urgency)
        return ""

    async def withdraw(self, item_id: str, ref: str, outcome: Mapping[str, Any]) -> None:
        if outcome.get("who") != f"device:{self._browser.id}":  # it has removed its own notification
            await self._push(item_id, {"id": item_id, "state": "gone"}, "normal")

    async def _push(self, item_id: str, said: Mapping[str, Any], urgency: str) -> None:
        """Posts a message to the push service. Raises Untold."""
        place = self._browser.place
        body = sealed(fitted(said), place)
        service = urlsplit(place.endpoint)
        headers = {
            "Authorization": self._key.authorization(
                f"{service.scheme}://{service.netloc}", now=self._clock.wall(), contact=self._contact
            ),
            "Content-Encoding": "aes128gcm",
            "Content-Type": "application/octet-stream",
            "TTL": str(TTL_S),
            "Topic": topic(item_id),
            "Urgency": urgency,
        }
        receipt = await self._poster.send("POST", place.endpoint, [body], headers)
        if receipt.accepted:
            return
        if receipt.status in GONE:
            await self._forget(self._browser)
            raise Untold("the push service does not know this browser any more: its notifications are off")
        problem = receipt.problem
        if receipt.status in REFUSED:
            problem += ": turn notifications off and on again in the settings of the page there"
        raise Untold(problem, after=self._outgoing.asked(receipt))

    async def close(self) -> None:
        await self._poster.close()


def told(notice: Notice, *, answers: bool) -> dict[str, Any]:
    """Returns the message for the service worker about an open item. `answers`: it may be answered there."""
    said: dict[str, Any] = {
        "id": notice.id,
        "state": "opened",
        "kind": notice.kind,
        "agent": notice.data["agent"],
        "title": notice.title[:TITLE_MAX],
        "body": notice.body,
        **({"elsewhere": True} if notice.elsewhere else {}),
    }
    if answers and notice.answers is not None and len(notice.body.encode("utf-16-le", "replace")) // 2 <= SHOWN:
        yes, no = notice.answers
        said |= {"task": notice.task, "prompt_id": notice.prompt_id}
        said["options"] = [{"key": yes, "label": "Approve"}, {"key": no, "label": "Deny"}]
    return said


def fitted(said: Mapping[str, Any]) -> bytes:
    """Returns JSON that a push can carry; a text that is too long is cut, and loses its answers."""
    body = _json(said)
    if len(body) <= PLAIN_MAX:
        return body
    kept = {name: value for name, value in said.items() if name not in ("options", "prompt_id", "task")}
    text = str(kept.get("body", ""))
    room = PLAIN_MAX - len(_json(kept | {"body": "…"}))
    low, high = 0, len(text)
    while low < high:  # the longest beginning that fits: JSON makes some characters longer
        middle = (low + high + 1) // 2
        low, high = (middle, high) if len(_json(text[:middle])) - 2 <= room else (low, middle - 1)
    return _json(kept | {"body": f"{text[:low]}…"})


def contact_of(place: PushPlace) -> str:
    """Returns the address of the page where the pushes were turned on."""
    host = urlsplit(place.page).hostname or "localhost"
    return f"https://[{host}]" if ":" in host else f"https://{host}"


def topic(item_id: str) -> str:
    """Returns 32 characters of base64url, the form of a topic (RFC 8030, 5.4), from which the push service learns
    nothing."""
    return base64url(hashlib.sha256(item_id.encode()).digest())[:32]


def _json(content: object) -> bytes:
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
