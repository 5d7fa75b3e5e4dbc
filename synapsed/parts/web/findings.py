"""Checks the certificate and the key of the listener with TLS, for `doctor`."""

import shlex
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from synapsed.errors import ConfigError
from synapsed.parts.web.certificates import read
from synapsed.parts.web.pairs import load_given
from synapsed.parts.web.tls import FOLDER
from synapsed.shared.files import read_private

type Finding = tuple[str, str, str, str]
OK, NOTE, WRONG = "ok", "note", "wrong"

SOON_DAYS = 14
"""certbot renews 30 days before the end."""
RENEW = "renew it, as with 'certbot renew'; the daemon takes the new one by itself"


def findings(config: Any, state: Path) -> Iterator[Finding]:
    """Yields nothing if no such listener is wanted."""
    api = config.api
    if api.tls_listen is None:
        return
    if api.tls_cert is not None:
        yield from _given(Path(api.tls_cert), Path(api.tls_key))
    else:
        yield _own(state / FOLDER)


def _given(cert: Path, key: Path) -> Iterator[Finding]:
    try:
        facts = load_given(cert, key).told
    except ConfigError as error:
        yield _found("certificate", WRONG, str(error), "correct tls_cert and tls_key under [api] of config.toml")
        return
    now = datetime.now(UTC)
    left, names = facts.days_left(now), ", ".join(facts.names)
    detail = f"{cert}, for {names or 'no name'}, until {facts.ends:%Y-%m-%d}"
    if left < 0:
        yield _found("certificate", WRONG, f"{detail}, which is over: no browser takes it", RENEW)
    elif facts.begins > now:
        detail = f"{cert} counts from {facts.begins:%Y-%m-%d %H:%M} UTC on, and it is {now:%Y-%m-%d %H:%M} here"
        yield _found("certificate", WRONG, detail, "set this machine's clock")
    elif not names:
        detail = f"{cert} has no names (subjectAltName): no browser takes it"
        yield _found("certificate", WRONG, detail, "get one for the name under which you open the page")
    elif left < SOON_DAYS:
        yield _found("certificate", NOTE, f"{detail}: {left:.0f} days", RENEW)
    else:
        yield _found("certificate", OK, detail)
    if key.stat().st_mode & 0o007:
        yield _found("key of the certificate", WRONG, f"{key} is open to all", shlex.join(["chmod", "o=", str(key)]))


def _own(folder: Path) -> Finding:
    path = folder / "server.pem"
    try:
        facts = read(read_private(path, limit=1 << 20).decode("ascii", "replace"))
        read_private(folder / "authority.pem", limit=1 << 20)
    except FileNotFoundError:
        return _found("certificate", NOTE, f"{folder}: none yet; the daemon makes it when it starts")
    except ConfigError as error:
        return _found("certificate", WRONG, str(error), shlex.join(["chmod", "go=", *map(str, folder.glob("*.pem"))]))
    except ValueError:
        return _found("certificate", WRONG, f"{path}: holds no certificate", shlex.join(["rm", str(path)]))
    return _found("certificate", OK, f"the daemon's own, until {facts.ends:%Y-%m-%d}; SHA-256 {facts.fingerprint}")


def _found(what: str, status: str, detail: str, mend: str = "") -> Finding:
    return what, status, detail, mend
