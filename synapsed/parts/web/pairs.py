"""A certificate and its key for a listener: a pair of files from the user, or the daemon's own.

The daemon's own are one file each, which holds both, so that no certificate is ever beside another one's key.
"""

import os
import ssl
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from cryptography.exceptions import UnsupportedAlgorithm

from synapsed.errors import ConfigError
from synapsed.outgoing.certificates import Pem
from synapsed.parts.web.certificates import (
    RENEW_DAYS,
    SERVER_DAYS,
    ServerFacts,
    make_authority,
    make_server,
    read,
    vouches_for,
)
from synapsed.shared.files import read_private, write_private

FILE_MAX: Final = 1024 * 1024
NAMES_MAX: Final = 32
"""Most names of the daemon's own certificate: the present ones of this machine, then former ones."""
AUTHORITY: Final = "authority.pem"
_KEY: Final = "-----BEGIN PRIVATE KEY-----"


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate and its key. `told`: facts of the certificate; `authority`: the certificate (PEM) that has signed
    it, None if the certificate is not made by this daemon."""

    context: ssl.SSLContext
    told: ServerFacts
    authority: str | None = None


def load_given(certificate: Path, key: Path) -> Pair:
    """Returns the pair in two files. Blocks. Raises ConfigError that names the file."""
    told = _read(certificate)
    _look_at(key)
    return Pair(_context(certificate, key), told)


def stamp(paths: Iterable[Path]) -> tuple[object, ...]:
    """Returns a value that changes when any of these files is replaced, or has other content. Blocks."""
    found: list[object] = []
    for path in paths:
        try:
            info = path.stat()
        except OSError as error:
            found.append(error.errno)
        else:
            found.append((info.st_ino, info.st_mtime_ns, info.st_size, info.st_mode))
    return tuple(found)


def load_own(folder: Path, names: Iterable[str], *, given: Iterable[str] = (), host: str, now: datetime) -> Pair:
    """Returns the daemon's own pair for `names`; it is made, or made again, if it is missing, ends soon, or is for
    other names.

    A name that the authority may not sign for is left out; if it is `given` by the user, a new authority is made, which
    each device has to trust again. Blocks. Raises ConfigError if a file cannot be used, StoreError if one cannot be
    written.
    """
    names, given = list(dict.fromkeys(names)), set(given)
    required = [name for name in names if name in given]
    authority = _own_authority(folder / AUTHORITY, names, required, host=host, now=now)
    wanted = [name for name in names if vouches_for(authority.certificate, [name])]
    path = folder / "server.pem"
    told = _kept(path, authority)
    if told is None or not _is_good(told, now) or not set(wanted) <= set(told.names):
        before = [name for name in told.names if name not in wanted] if told is not None else []
        try:
            made = make_server(authority, [*wanted, *before][:NAMES_MAX], now=now)
        except (ValueError, TypeError, UnsupportedAlgorithm):
            raise _spoilt(folder / AUTHORITY) from None
        write_private(path, (made.certificate + made.key).encode())
        told = read(made.certificate)
    return Pair(_context(path, path), told, authority.certificate)


def _own_authority(path: Path, names: list[str], required: list[str], *, host: str, now: datetime) -> Pem:
    """Returns the authority. A new one, which each device has to trust again, is made only if the old one may not sign
    for `required`, or ends before a certificate that it signs now would."""
    try:
        found = _split(read_private(path, limit=FILE_MAX))
        if read(found.certificate).days_left(now) > SERVER_DAYS and vouches_for(found.certificate, required):
            return found
    except FileNotFoundError:
        pass
    except ValueError:
        raise _spoilt(path) from None
    made = make_authority(host, names, now=now)
    write_private(path, (made.certificate + made.key).encode())
    return made


def _spoilt(path: Path) -> ConfigError:
    return ConfigError(
        f"{path}: holds no certificate with its key; remove the file, and a new one is made: devices that trust the "
        "old one have to trust the new one, too",
        file=str(path),
    )


def _kept(path: Path, authority: Pem) -> ServerFacts | None:
    """Returns the facts of the present pair that was signed by `authority`; None if it has to be made again."""
    try:
        found = _split(read_private(path, limit=FILE_MAX))
        return read(found.certificate) if found.certificate.endswith(authority.certificate) else None
    except (FileNotFoundError, ValueError):
        return None


def _is_good(told: ServerFacts, now: datetime) -> bool:
    return told.begins <= now and told.days_left(now) > RENEW_DAYS


def _split(content: bytes) -> Pem:
    """Splits the content. Raises ValueError."""
    text = content.decode("ascii")
    at = text.index(_KEY)
    return Pem(text[:at], text[at:])


def _read(path: Path) -> ServerFacts:
    _look_at(path)
    try:
        return read(path.read_text(encoding="ascii", errors="replace"))
    except ValueError:
        raise ConfigError(f"{path}: holds no certificate in PEM", file=str(path)) from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}", file=str(path)) from error


def _look_at(path: Path) -> None:
    """Checks that the file can be read without a wait. Raises ConfigError."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}", file=str(path)) from error
    info = os.fstat(handle)
    os.close(handle)
    if not stat.S_ISREG(info.st_mode):
        raise ConfigError(f"{path}: is not a regular file", file=str(path))
    if info.st_size > FILE_MAX:
        raise ConfigError(f"{path}: has {info.st_size} bytes, at most {FILE_MAX} are read", file=str(path))


def _context(certificate: Path, key: Path) -> ssl.SSLContext:
    """Returns a context with TLS 1.2 and newer, and HTTP/1.1 in it. Raises ConfigError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    context.set_alpn_protocols(["http/1.1"])
    try:
        context.load_cert_chain(certificate, key, password=_refuse)
    except ssl.SSLError as error:
        raise ConfigError(_why(error, certificate, key), file=str(key)) from None
    except (OSError, ValueError) as error:
        raise ConfigError(f"{key}: holds no key in PEM without a pass phrase: {error}", file=str(key)) from error
    return context


def _why(error: ssl.SSLError, certificate: Path, key: Path) -> str:
    if error.reason in ("KEY_VALUES_MISMATCH", "KEY_TYPE_MISMATCH"):
        return f"{key}: is not the key of the certificate in {certificate}"
    if error.reason in ("EE_KEY_TOO_SMALL", "CA_KEY_TOO_SMALL", "CA_MD_TOO_WEAK"):
        return f"{certificate}: its key, or how it is signed, is too weak ({error.reason})"
    return f"{key}: holds no key in PEM for the certificate in {certificate} ({error.reason or 'unknown format'})"


def _refuse() -> str:
    """Returns no password: else OpenSSL would ask at the terminal."""
    raise ValueError("it has a pass phrase")
