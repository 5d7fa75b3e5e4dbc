"""Documents that clients keep: with an ETag of their bytes; `If-None-Match` is answered 304."""

import hashlib

from aiohttp import hdrs, web

__all__ = ["MAX_AGE", "document"]

MAX_AGE = 60
"""Seconds for which a client may keep one."""


def document(
    request: web.Request, body: bytes, content_type: str = "application/json", *, vary: str = hdrs.HOST
) -> web.Response:
    etag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    headers = {"ETag": etag, "Cache-Control": f"max-age={MAX_AGE}", "Vary": vary}
    if any(tag.value in ("*", etag.strip('"')) for tag in request.if_none_match or ()):
        return web.Response(status=304, headers=headers)
    return web.Response(body=body, headers={**headers, hdrs.CONTENT_TYPE: content_type})
