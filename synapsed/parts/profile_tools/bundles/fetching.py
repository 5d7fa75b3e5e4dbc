"""Gets a bundle from the place that the person names: reads a file, or makes one request to one URL. Blocks."""

import ssl
import time
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import httpx

from synapsed.errors import InvalidRequest, TooLarge, Unreachable
from synapsed.outgoing import OutgoingConfig, address_of
from synapsed.parts.profile_tools.bundles.archive import PACKED_MAX
from synapsed.shared.files import open_regular

SIZE_MAX: Final = PACKED_MAX + 256
FETCH_S: Final = 120.0
"""Seconds for the whole request."""
SILENCE_S: Final = 20.0
"""Longest time in seconds without a byte."""


def get(source: str, outgoing: OutgoingConfig) -> bytes:
    """Returns the content at a path or a URL. Raises InvalidRequest, TooLarge, Unreachable."""
    found = _fetched(source, outgoing) if "://" in source else _read(Path(source))
    if len(found) > SIZE_MAX:
        raise TooLarge(f"{shown(source)} is larger than a bundle may be ({SIZE_MAX >> 20} MiB)")
    return found


def shown(source: str) -> str:
    """Returns the source without parts that may be secret."""
    if "://" not in source:
        return source
    try:
        url = urlsplit(source)
    except ValueError:
        return "what is no address"
    return f"{url.scheme}://{url.netloc.rpartition('@')[2]}{url.path}"


def _read(file: Path) -> bytes:
    try:
        with open_regular(file) as opened:
            return opened.read(SIZE_MAX + 1)
    except OSError as error:
        raise InvalidRequest(f"{file}: cannot be read: {error.strerror}", file=str(file)) from None


def _check(source: str) -> str:
    """Returns the host of an allowed URL. Raises InvalidRequest."""
    try:
        url = urlsplit(source)
        host, _ = url.hostname, url.port
    except ValueError:
        host = None
    if host is None or url.scheme not in ("http", "https") or url.username is not None:
        raise InvalidRequest(f"--from {shown(source)}: must be a file, or an address that begins with https://")
    address = address_of(host)
    loopback = address.is_loopback if address is not None else host == "localhost"
    if url.scheme == "http" and not loopback:
        raise InvalidRequest(f"--from {shown(source)}: http:// is for this machine only; https:// is needed")
    return host


def _fetched(source: str, outgoing: OutgoingConfig) -> bytes:
    host = _check(source)
    until = time.monotonic() + FETCH_S
    where = shown(source)
    try:
        with (
            httpx.Client(
                proxy=outgoing.proxy_for(host),
                trust_env=False,
                verify=ssl.create_default_context(),
                timeout=httpx.Timeout(SILENCE_S),
                follow_redirects=False,
            ) as client,
            client.stream("GET", source, headers={"Accept-Encoding": "identity"}) as answer,
        ):
            if answer.is_redirect:
                to = shown(answer.headers.get("location", ""))
                raise Unreachable(
                    f"{where} redirects to {to[:200]!r}, which is not followed: give that address, or fetch "
                    "it with 'curl -L -o FILE URL' and give the file, if you trust that place"
                )
            if answer.status_code != httpx.codes.OK:
                raise Unreachable(f"{where} answered {answer.status_code}")
            return _body(answer, where, until)
    except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as error:
        raise Unreachable(f"{where} cannot be fetched ({type(error).__name__})") from None


def _body(answer: httpx.Response, where: str, until: float) -> bytes:
    found = bytearray()
    for piece in answer.iter_raw():
        found += piece
        if len(found) > SIZE_MAX:
            raise TooLarge(f"{where} is larger than a bundle may be ({SIZE_MAX >> 20} MiB)")
        if time.monotonic() > until:
            raise Unreachable(f"{where} was not there within {FETCH_S:g} s")
    return bytes(found)
