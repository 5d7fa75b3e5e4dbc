"""The listener with TLS: its certificate and key, and whether it is served."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from synapsectl.checkup.finding import NOTE, OK, WRONG, Finding, command
from synapsectl.context import CommandContext
from synapsectl.errors import CtlError, NoDaemon
from synapsectl.service.settings import TlsFiles
from synapsed.errors import ConfigError

SOON_DAYS = 14
"""certbot renews 30 days before the end."""
RENEW = "renew it, as with 'certbot renew'; the daemon takes the new one by itself"


def look_at_tls(ctx: CommandContext, files: TlsFiles) -> Iterator[Finding]:
    if files.cert is not None and files.key is not None:
        yield from _given(Path(files.cert), Path(files.key))
    else:
        yield _own(ctx.paths.tls)
    yield from _served(ctx, files.listen)


def _given(cert: Path, key: Path) -> Iterator[Finding]:
    from synapsed.access.pairs import load_given

    try:
        told = load_given(cert, key).told
    except ConfigError as error:
        yield Finding("certificate", WRONG, str(error), "correct tls_cert and tls_key under [api] of config.toml")
        return
    now = datetime.now(UTC)
    left, names = told.days_left(now), ", ".join(told.names)
    detail = f"{cert}, for {names or 'no name'}, until {told.ends:%Y-%m-%d}"
    if left < 0:
        yield Finding("certificate", WRONG, f"{detail}, which is over: no browser takes it", RENEW)
    elif told.begins > now:
        detail = f"{cert} counts from {told.begins:%Y-%m-%d %H:%M} UTC on, and it is {now:%Y-%m-%d %H:%M} here"
        yield Finding("certificate", WRONG, detail, "set this machine's clock")
    elif not names:
        detail = f"{cert} has no names (subjectAltName): no browser takes it"
        yield Finding("certificate", WRONG, detail, "get one for the name under which you open the page")
    elif left < SOON_DAYS:
        yield Finding("certificate", NOTE, f"{detail}: {left:.0f} days", RENEW)
    else:
        yield Finding("certificate", OK, detail)
    if key.stat().st_mode & 0o007:
        yield Finding("key of the certificate", WRONG, f"{key} is open to all", command("chmod", "o=", key))


def _own(folder: Path) -> Finding:
    from synapsed.access.certificates import read
    from synapsed.files import read_private

    path = folder / "server.pem"
    try:
        told = read(read_private(path, limit=1 << 20).decode("ascii", "replace"))
        read_private(folder / "authority.pem", limit=1 << 20)
    except FileNotFoundError:
        return Finding("certificate", NOTE, f"{folder}: none yet; the daemon makes it when it starts")
    except ConfigError as error:
        return Finding("certificate", WRONG, str(error), command("chmod", "go=", *folder.glob("*.pem")))
    except ValueError:
        return Finding("certificate", WRONG, f"{path}: holds no certificate", command("rm", path))
    return Finding("certificate", OK, f"the daemon's own, until {told.ends:%Y-%m-%d}; SHA-256 {told.fingerprint}")


def _served(ctx: CommandContext, listen: str) -> Iterator[Finding]:
    try:
        status = ctx.client.get("/control/status")
    except NoDaemon:
        return
    except CtlError:
        return  # the daemon's own line says it
    if status.get("secure"):
        yield Finding("page over TLS", OK, ", ".join(status["secure"]))
        return
    alerts = [alert for alert in status["alerts"] if "TLS" in alert]
    if alerts:
        yield Finding("page over TLS", WRONG, "; ".join(alerts), "correct it; the daemon tries again every 10 s")
    else:
        yield Finding("page over TLS", WRONG, f"{listen} is configured and not served", "restart the daemon")
