"""The proxy: named and not used, or used and away."""

import socket

from synapsectl.checkup.finding import NOTE, OK, WRONG, Finding
from synapsectl.context import CommandContext
from synapsectl.errors import CtlError

TIMEOUT_S = 5.0
ASKED = b"CONNECT synapsed.invalid:443 HTTP/1.1\r\nHost: synapsed.invalid:443\r\n\r\n"
"""Every HTTP proxy answers that it knows no such host, or wants a password first."""
WAY_OUT = "notifications, webhooks, external agents and traces"


def look_at_proxy(ctx: CommandContext, proxy: tuple[str, int] | None) -> Finding:
    """`proxy` is that of the configuration, which the daemon has read when it was started."""
    if proxy is not None:
        place = f"{proxy[0]}:{proxy[1]}"
        if (why := _silence(*proxy)) is None:
            return Finding("proxy", OK, f"{place} answers: {WAY_OUT} go through it")
        mend = "correct 'proxy' under [outgoing] of config.toml, and restart the daemon"
        return Finding("proxy", WRONG, f"{place} does not answer, and {WAY_OUT} go through it: {why}", mend)
    if unused := _unused(ctx):
        verb = "names a proxy, which is" if len(unused) == 1 else "name a proxy, which is"
        detail = f"{', '.join(unused)} {verb} not used: {WAY_OUT} go out directly"
        return Finding(
            "proxy", NOTE, detail, "if they should not: 'proxy' under [outgoing] of config.toml, and restart the daemon"
        )
    return Finding("proxy", OK, f"none is named: {WAY_OUT} go out directly")


def _unused(ctx: CommandContext) -> list[str]:
    """Variables of the daemon's environment; where none runs, of the one that it would be started from."""
    try:
        return list(ctx.client.get("/control/status").get("unused_proxies", []))
    except CtlError:
        from synapsed.outgoing import proxies_in

        return proxies_in(ctx.environ)


def _silence(host: str, port: int) -> str | None:
    """Why nothing that speaks HTTP is there; None where something is."""
    try:
        with socket.create_connection((host, port), timeout=TIMEOUT_S) as connection:
            connection.settimeout(TIMEOUT_S)
            connection.sendall(ASKED)
            said = connection.recv(64)
    except TimeoutError:
        return f"nothing within {TIMEOUT_S:g} s"
    except OSError as error:
        return error.strerror or str(error)
    return None if said.startswith(b"HTTP/1.") else "what is there is no HTTP proxy"
