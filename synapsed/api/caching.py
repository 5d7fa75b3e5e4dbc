"""Answers with documents that clients may keep: with an ETag of the bytes, and the time of the last change.
`If-None-Match` is answered 304, and `If-Modified-Since` if that is missing."""

import hashlib
from collections import OrderedDict
from datetime import UTC, datetime
from typing import Final

from aiohttp import hdrs, web

from synapsed.clock import Clock

MAX_AGE = 60
"""Seconds for which a client may keep one."""
KEPT: Final = 256
"""Documents whose last change is remembered; a forgotten one counts as changed."""


class ChangeTimes:
    """Times of the last changes of this daemon's documents."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._known: OrderedDict[str, tuple[str, datetime]] = OrderedDict()

    def since(self, url: str, etag: str) -> datetime:
        """Returns the time since which the document at `url` has this `etag`; in whole seconds, as HTTP has them."""
        known = self._known.pop(url, None)
        if known is None or known[0] != etag:
            known = (etag, datetime.fromtimestamp(int(self._clock.wall()), UTC))
        self._known[url] = known
        if len(self._known) > KEPT:
            self._known.popitem(last=False)
        return known[1]


def document(
    request: web.Request,
    changes: ChangeTimes,
    body: bytes,
    content_type: str = "application/json",
    *,
    vary: str = hdrs.HOST,
) -> web.Response:
    etag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    since = changes.since(str(request.url), etag)
    if request.if_none_match is not None:
        fresh = any(tag.value in ("*", etag.strip('"')) for tag in request.if_none_match)
    else:
        fresh = request.if_modified_since == since
    response = web.Response(status=304) if fresh else web.Response(body=body)
    response.headers.update({"ETag": etag, "Cache-Control": f"max-age={MAX_AGE}", "Vary": vary})
    response.last_modified = since
    if not fresh:
        response.headers[hdrs.CONTENT_TYPE] = content_type
    return response
