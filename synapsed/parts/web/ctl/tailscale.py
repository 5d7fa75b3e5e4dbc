"""`tailscale serve`: the page for the devices of one's tailnet, over TLS, with a certificate that they trust."""

import shutil
import subprocess

from synapsectl.context import CommandContext
from synapsectl.errors import NotAllowed, NotInstalled
from synapsed.shared.outside_json import NotJson, read_object

PATIENCE_S = 60.0
"""Seconds for `tailscale serve`, which gets a certificate the first time, and waits if a person has to allow it
first."""
SAID_MAX = 500
"""Characters of tailscale's output that are passed on."""

NOT_RUNNING = {
    "NeedsLogin": "tailscale is not logged in: 'tailscale up'",
    "NeedsMachineAuth": "this machine waits to be approved in tailscale's admin console",
    "Stopped": "tailscale is stopped: 'tailscale up'",
    "NoState": "tailscale has not started yet: try again, or 'tailscale up'",
    "Starting": "tailscale has not started yet: try again, or 'tailscale up'",
}
"""Advice by the state in `tailscale status --json`."""


def serve(ctx: CommandContext) -> str:
    """Makes tailscale bring requests to the daemon's main listener, and the daemon take them; returns the name. Raises
    NotInstalled, NotAllowed with tailscale's message. Only the tailnet can reach it: no funnel is opened."""
    program = shutil.which("tailscale", path=ctx.environ.get("PATH"))
    if program is None:
        raise NotInstalled("there is no 'tailscale' in PATH: install it, and 'tailscale up'")
    listen = ctx.client.get("/control/status")["listen"]
    if not listen:
        raise NotAllowed("the daemon listens at no address: 'synapsectl doctor' says why")
    name = _name(_run(ctx, [program, "status", "--json"]))
    port = listen[0].rpartition(":")[2]
    _run(ctx, [program, "serve", "--bg", f"http://127.0.0.1:{port}"])
    ctx.client.post("/control/web/serve", {"name": name})
    ctx.out.note(f"https://{name}/ is served to your tailnet until 'tailscale serve reset'")
    return name


def _name(status: str) -> str:
    """Returns the name. Raises NotAllowed with advice if tailscale does not run, or gives no certificate."""
    try:
        told = read_object(status)
    except NotJson:
        told = {}
    own = told.get("Self")
    name = str(own.get("DNSName") or "").rstrip(".") if isinstance(own, dict) else ""
    if state := NOT_RUNNING.get(str(told.get("BackendState"))):
        raise NotAllowed(state)
    if not name:
        raise NotAllowed(
            "tailscale reports no name for this machine: switch MagicDNS and HTTPS on in its admin console"
        )
    if not told.get("CertDomains", [name]):
        raise NotAllowed("your tailnet gives no certificates: switch HTTPS on in tailscale's admin console, under DNS")
    return name


def _run(ctx: CommandContext, command: list[str]) -> str:
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            timeout=PATIENCE_S,
            check=False,
            env=dict(ctx.environ),
        )
    except subprocess.TimeoutExpired as late:
        said = _words(*(part.decode(errors="replace") for part in (late.stderr, late.stdout) if part))
        waits = f", and said: {said}" if said else ""
        raise NotAllowed(f"'tailscale {command[1]}' did not end within {PATIENCE_S:g} s{waits}") from None
    except OSError as error:
        raise NotInstalled(f"{command[0]}: {error.strerror}") from None
    if done.returncode:
        said = _words(done.stderr or done.stdout)
        if "not defined: -bg" in said:
            raise NotAllowed("this tailscale is too old, its 'serve' has no '--bg': 1.52 or a newer one is needed")
        raise NotAllowed(f"'tailscale {command[1]}' ended with exit code {done.returncode}: {said}")
    return done.stdout


def _words(*texts: str) -> str:
    return " ".join(" ".join(texts).split())[:SAID_MAX]
