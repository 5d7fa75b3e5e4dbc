"""`tailscale serve`: the page for the devices of one's tailnet, over TLS, with a certificate that they trust."""

import json
import shutil
import subprocess
from typing import Any

from synapsectl.context import CommandContext
from synapsectl.errors import NotAllowed, NotInstalled

PATIENCE_S = 60.0
"""For `tailscale serve`, which gets a certificate the first time."""


def serve(ctx: CommandContext) -> str:
    """Have it bring requests to the daemon's main listener, and the daemon take them; gives the name. Raises
    NotInstalled, NotAllowed with what tailscale said. What only the tailnet reaches stays so: no funnel is opened."""
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
    try:
        told: Any = json.loads(status)
        name = str(told["Self"]["DNSName"]).rstrip(".")
    except (ValueError, KeyError, TypeError):
        name = ""
    if not name:
        raise NotAllowed("tailscale tells no name of this machine: switch MagicDNS and HTTPS on in its admin console")
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
    except subprocess.TimeoutExpired:
        raise NotAllowed(f"'tailscale {command[1]}' did not end within {PATIENCE_S:g} s") from None
    except OSError as error:
        raise NotInstalled(f"{command[0]}: {error.strerror}") from None
    if done.returncode:
        said = " ".join((done.stderr or done.stdout).split())[:500]
        raise NotAllowed(f"'tailscale {command[1]}' ended with exit code {done.returncode}: {said}")
    return done.stdout
