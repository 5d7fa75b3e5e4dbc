"""Checks that the page is served over TLS, if it is configured."""

from collections.abc import Iterator

from synapsectl.checkup.finding import OK, WRONG, Finding
from synapsectl.context import CommandContext
from synapsectl.errors import CtlError
from synapsectl.service.settings import ServiceSettings


def look(ctx: CommandContext, settings: ServiceSettings) -> Iterator[Finding]:
    """Yields nothing if no daemon answers: that has a line of its own."""
    listen = settings.api.get("tls_listen")
    if listen is None:
        return
    try:
        status = ctx.client.get("/control/status")
    except CtlError:
        return
    if status.get("secure"):
        yield Finding("page over TLS", OK, ", ".join(status["secure"]))
        return
    alerts = [alert for alert in status["alerts"] if "TLS" in alert]
    if alerts:
        yield Finding("page over TLS", WRONG, "; ".join(alerts), "correct it; the daemon tries again every 10 s")
    else:
        yield Finding("page over TLS", WRONG, f"{listen} is configured and not served", "restart the daemon")
