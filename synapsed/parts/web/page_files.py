"""The files of the page, as they are in the package: the form in which each is sent, and the page of all of them."""

import asyncio
import gzip
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from types import MappingProxyType
from typing import Final

from synapsed.shared.regex import regex

__all__ = ["INDEX", "POLICY", "TYPES", "WORKER", "PageFile", "Pages", "below", "page_files", "pages", "together"]

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
"""Policy: scripts and styles of the page's own files, and no others; no text ever becomes markup."""

TYPES: Final[Mapping[str, str]] = MappingProxyType(
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
_COMMENTS: Final = regex(
    r"^[ \t]*//.*\n|(?<=;) // .*|^[ \t]*/\*(?s:.*?)\*/[ \t]*\n|/\*\* @(?:type|param)(?s:.*?)\*/ ?|^[ \t]+|\n+(?=\n)",
    re.MULTILINE,
)
"""Parts of the page's own files that only readers of the source need, a sixth of the bytes: comments, types,
indentation. Nothing else in the files matches (tests/web/test_files.py)."""

_BLANKS: Final = regex(r"(?<=[{;:,]) +| +(?=[{}])")
"""Blanks of style sheets without effect."""

INDEX: Final = "index.html"
WORKER: Final = "sw.js"
"""The service worker, which may be allowed to answer for all of the page."""
VERSION_CHARS: Final = 16

_LINKS: Final = regex(rb'"web/(?=(?:js|vendor)/|\w+\.css")')
"""Links in the HTML to scripts and styles. Files that these load stand beside them."""


@dataclass(frozen=True, slots=True)
class PageFile:
    body: bytes
    gzip: bytes | None
    """Content compressed with gzip; None for a type that is compressed already."""
    brotli: bytes | None
    """Content compressed with brotli; None unless the package has such a file beside it."""
    media: str
    etag: str


@dataclass(frozen=True, slots=True)
class Pages:
    version: str
    """Identifies these files: it changes with each of them, and with the policy. Scripts and styles are requested below
    it, so that those of two installations are never mixed in a browser."""
    files: Mapping[str, PageFile]
    """Files by their path below `/web/`."""


async def pages() -> Pages:
    """Returns the pages. Packing takes longer than the event loop has: the first call does it in a thread."""
    return page_files() if page_files.cache_info().currsize else await asyncio.to_thread(page_files)


@cache
def page_files() -> Pages:
    """Returns the pages, read once: an installation does not change while it runs."""
    return together(_read(files("synapsed.parts.web") / "static", ""))


def together(found: Mapping[str, tuple[bytes, bytes | None]]) -> Pages:
    """Returns the page that is made of `found`: the body of each file, and the same with brotli, by its path."""
    digest = hashlib.sha256(POLICY.encode())
    for name, (body, _) in sorted(found.items()):
        digest.update(b"%s %d\n%s" % (name.encode(), len(body), body))
    version = digest.hexdigest()[:VERSION_CHARS]
    kept = [name for name in sorted(found) if _is_kept(name)]
    told = json.dumps({"version": version, "files": kept}).encode()
    index = _LINKS.sub(b'"web/%s/' % version.encode(), found[INDEX][0])
    worker = b"self.PAGE = %s;\n%s" % (told, found[WORKER][0])
    bodies = {**found, INDEX: (index, None), WORKER: (worker, None)}
    return Pages(version, MappingProxyType({name: _file(name, *given) for name, given in bodies.items()}))


def below(prefix: str) -> PageFile:
    """Returns the HTML for a page that a proxy has under `prefix`, with or without a slash at its end."""
    page = page_files().files[INDEX]
    return _file(INDEX, page.body.replace(b'"web/', b'"%s/web/' % prefix.encode("ascii")), None) if prefix else page


def _is_kept(name: str) -> bool:
    """Returns True if it belongs to the page that opens offline: all of its own, and Preact. A terminal is of no use
    then."""
    own = name.startswith("js/") or name in ("vendor/preact.mjs", "vendor/hooks.mjs")
    return own or name == INDEX or (name.endswith(".css") and "/" not in name)


def _read(folder: Traversable, prefix: str) -> dict[str, tuple[bytes, bytes | None]]:
    """Returns the body of each file, and the same with brotli if there is such a file beside it, by its path."""
    found: dict[str, tuple[bytes, bytes | None]] = {}
    for entry in folder.iterdir():
        if entry.is_dir():
            found |= _read(entry, f"{prefix}{entry.name}/")
        elif _suffix(entry.name) in TYPES:
            body = entry.read_bytes()
            if _suffix(entry.name) in _COMMENTED and not prefix.startswith("vendor/"):
                text = _COMMENTS.sub("", body.decode())
                body = (_BLANKS.sub("", text) if entry.name.endswith(".css") else text).encode()
            beside = folder / f"{entry.name}.br"
            found[prefix + entry.name] = (body, beside.read_bytes() if beside.is_file() else None)
    return found


def _file(name: str, body: bytes, brotli: bytes | None) -> PageFile:
    gzipped = gzip.compress(body, 9, mtime=0) if _suffix(name) in _PACKED else None
    return PageFile(body, gzipped, brotli, TYPES[_suffix(name)], hashlib.sha256(body).hexdigest()[:32])


def _suffix(name: str) -> str:
    return name[name.rfind(".") :]
