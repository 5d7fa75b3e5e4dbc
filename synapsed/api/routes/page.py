"""`GET /`, `GET /web/{file}`: the page, one HTML file and its scripts, as they are in the package (docs/web.md).

It is a view of this API and holds nothing of anybody: whoever may connect is given it, and what it shows then is asked
for with the rights of whoever asks.
"""

import gzip
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from types import MappingProxyType
from typing import Final

from aiohttp import hdrs, web

from synapsed.api.describe import Response
from synapsed.api.operation import operation
from synapsed.api.security import public

POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        *(f"{what}-src 'self'" for what in ("script", "style", "connect", "manifest", "worker")),
        "img-src 'self' data:",
        "frame-ancestors 'none'",
        "base-uri 'none'",
        "form-action 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types page",
    )
)
"""Scripts and styles of the page's own files, and no others; no text ever becomes markup."""

_TYPES: Final[Mapping[str, str]] = MappingProxyType(
    {
        ".html": "text/html; charset=utf-8",
        ".css": "text/css; charset=utf-8",
        ".js": "text/javascript; charset=utf-8",
        ".mjs": "text/javascript; charset=utf-8",
        ".webmanifest": "application/manifest+json; charset=utf-8",
        ".svg": "image/svg+xml; charset=utf-8",
        ".png": "image/png",
        ".txt": "text/plain; charset=utf-8",
    }
)
_PACKED: Final = frozenset({".html", ".css", ".js", ".mjs", ".webmanifest", ".svg", ".txt"})

_COMMENTED: Final = frozenset({".js", ".css"})
_COMMENTS: Final = re.compile(
    r"^[ \t]*//.*\n|^[ \t]*/\*(?s:.*?)\*/[ \t]*\n|/\*\* @(?:type|param)(?s:.*?)\*/ ?|^[ \t]+|\n+(?=\n)", re.MULTILINE
)
"""Of the page's own files a sixth is for those who read them here: comments, types, indentation. No text of theirs
looks so (tests/web/test_files.py)."""

WORKER: Final = "sw.js"
"""The service worker, which may be asked to answer for all of the page."""


@dataclass(frozen=True, slots=True)
class PageFile:
    body: bytes
    packed: bytes | None
    """With gzip, where that is worth it."""
    squeezed: bytes | None
    """With brotli, for what lies beside it so."""
    media: str
    etag: str


@cache
def page_files() -> Mapping[str, PageFile]:
    """By their path below `/web/`. Read once: an installation does not change while it runs."""
    return MappingProxyType(dict(_read(files("synapsed") / "web", "")))


def _read(folder: Traversable, prefix: str) -> list[tuple[str, PageFile]]:
    found: list[tuple[str, PageFile]] = []
    for entry in folder.iterdir():
        suffix = entry.name[entry.name.rfind(".") :]
        if entry.is_dir():
            found += _read(entry, f"{prefix}{entry.name}/")
        elif suffix in _TYPES:
            body = entry.read_bytes()
            if suffix in _COMMENTED and not prefix.startswith("vendor/"):
                body = _COMMENTS.sub("", body.decode()).encode()
            packed = gzip.compress(body, 9, mtime=0) if suffix in _PACKED else None
            etag = hashlib.sha256(body).hexdigest()[:32]
            beside = folder / f"{entry.name}.br"
            squeezed = beside.read_bytes() if beside.is_file() else None
            found.append((prefix + entry.name, PageFile(body, packed, squeezed, _TYPES[suffix], etag)))
    return found


def routes() -> list[web.RouteDef]:
    return [web.get("/", page), web.get("/web/{file:.+}", file)]


@public
@operation("The page", Response("the page", str, media=("text/html",)))
async def page(request: web.Request) -> web.StreamResponse:
    return _serve(request, "index.html")


@public
@operation("A file of the page", Response("the file", str, media=tuple(sorted(set(_TYPES.values())))))
async def file(request: web.Request) -> web.StreamResponse:
    return _serve(request, request.match_info["file"])


def _serve(request: web.Request, name: str) -> web.StreamResponse:
    """Raises HTTPNotFound."""
    found = page_files().get(name)
    if found is None:
        raise web.HTTPNotFound
    headers = {
        hdrs.CACHE_CONTROL: "no-cache",
        hdrs.VARY: "Accept-Encoding",
        "Content-Security-Policy": POLICY,
        "Cross-Origin-Opener-Policy": "same-origin",
        "Permissions-Policy": "camera=(), geolocation=(), usb=(), serial=()",
    }
    if name == WORKER:
        headers["Service-Worker-Allowed"] = "/"
    answer = web.Response(headers=headers)
    answer.etag = found.etag
    if any(tag.value in (found.etag, "*") for tag in request.if_none_match or ()):
        answer.set_status(304)
        return answer
    answer.headers[hdrs.CONTENT_TYPE] = found.media
    taken = _taken(request.headers.get(hdrs.ACCEPT_ENCODING, ""))
    for name, body in (("br", found.squeezed), ("gzip", found.packed)):
        if body is not None and name in taken:
            answer.headers[hdrs.CONTENT_ENCODING] = name
            answer.body = body
            return answer
    answer.body = found.body
    return answer


def _taken(header: str) -> set[str]:
    """Encodings of an `Accept-Encoding`, but for those that it refuses (`q=0`)."""
    found = set()
    for part in header.lower().split(","):
        name, _, weight = part.partition(";")
        if not re.fullmatch(r"\s*q=0(\.0*)?\s*", weight):
            found.add(name.strip())
    return found
