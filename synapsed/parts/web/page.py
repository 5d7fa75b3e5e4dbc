"""`GET /`, `GET /web/{file}`: the page, one HTML file and its scripts, as they are in the package (docs/web.md).

It is a view of this API and contains no data of a person: every client that may connect gets it, and its requests have
the rights of their sender.
"""

import re
from typing import Final

from aiohttp import hdrs, web

from synapsed.api import CONTEXT
from synapsed.api.operation import Response, operation
from synapsed.parts.web.page_files import INDEX, POLICY, TYPES, WORKER, below, pages

_ASKED_AGAIN: Final = "no-cache"
_FOR_GOOD: Final = "public, max-age=31536000, immutable"
"""Header for an address with the version: a browser does not request it twice."""


@operation("The page", Response("the page", str, media=("text/html",)))
async def page(request: web.Request) -> web.StreamResponse:
    return await _serve(request, INDEX)


@operation("A file of the page", Response("the file", str, media=tuple(sorted(set(TYPES.values())))))
async def file(request: web.Request) -> web.StreamResponse:
    """Returns a file below the page's version (`/web/VERSION/js/main.js`), valid for ever; another version's are
    NOT_FOUND."""
    return await _serve(request, request.match_info["file"])


async def _serve(request: web.Request, name: str) -> web.StreamResponse:
    """Sends the file. Raises HTTPNotFound."""
    page = await pages()
    inner = name.removeprefix(f"{page.version}/")
    found = page.files.get(inner)
    if found is None:
        raise web.HTTPNotFound
    if inner == INDEX:
        found = below(request.app[CONTEXT].security.prefix(request))
    headers = {
        hdrs.CACHE_CONTROL: _FOR_GOOD if inner != name else _ASKED_AGAIN,
        hdrs.VARY: "Accept-Encoding, X-Forwarded-Prefix" if inner == INDEX else "Accept-Encoding",
        "Content-Security-Policy": POLICY,
        "Cross-Origin-Opener-Policy": "same-origin",
        "Permissions-Policy": "camera=(), geolocation=(), usb=(), serial=()",
    }
    if name == WORKER:
        headers["Service-Worker-Allowed"] = "../"  # where the page is, under whichever path
    answer = web.Response(headers=headers)
    answer.etag = found.etag
    if any(tag.value in (found.etag, "*") for tag in request.if_none_match or ()):
        answer.set_status(304)
        return answer
    answer.headers[hdrs.CONTENT_TYPE] = found.media
    taken = _taken(request.headers.get(hdrs.ACCEPT_ENCODING, ""))
    for name, body in (("br", found.brotli), ("gzip", found.gzip)):
        if body is not None and name in taken:
            answer.headers[hdrs.CONTENT_ENCODING] = name
            answer.body = body
            return answer
    answer.body = found.body
    return answer


def _taken(header: str) -> set[str]:
    """Returns the encodings of an `Accept-Encoding`, without those that it refuses (`q=0`)."""
    found = set()
    for part in header.lower().split(","):
        name, _, weight = part.partition(";")
        if not re.fullmatch(r"\s*q=0(\.0*)?\s*", weight):
            found.add(name.strip())
    return found
