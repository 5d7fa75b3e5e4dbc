"""`synapsectl web [--phone]`: the page in a browser, which is paired by a one-time code."""

import argparse
import html
import io
import ipaddress
import shutil
import subprocess
import sys
from typing import Any
from urllib.parse import urlsplit

from synapsectl.context import CommandContext
from synapsectl.daemon import ensure_daemon
from synapsectl.errors import DONE, CtlError, NotInstalled, UsageError
from synapsed.parts.web.ctl.tailscale import serve
from synapsed.parts.web.ctl.token import rights_in

EXAMPLES = (
    ("synapsectl web", "open the page in this machine's browser"),
    ("synapsectl web --tailscale --phone", "serve it in your tailnet, and show a QR code for the phone"),
    ("synapsectl web --phone --rights look", "a phone that may look, and answer nothing"),
    ("synapsectl web --rights look,answer,type,manage", "one that may start, stop and restart agents, too"),
    ("synapsectl web --no-open", "print the address: for a browser that is reached some other way"),
)

DESK = ["look", "answer", "type"]
PHONE = ["look", "answer"]

WHITE_ON_BLACK, AS_BEFORE = "\x1b[38;5;231;48;5;16m", "\x1b[0m"

OPENERS = ("xdg-open", "open", "wslview")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--phone", action="store_true", help="show the address as a QR code, for another device")
    parser.add_argument(
        "--tailscale", action="store_true", help="have 'tailscale serve' bring the page to the devices of your tailnet"
    )
    parser.add_argument(
        "--rights",
        metavar="R[,R…]",
        help="what the device may: look, answer, type (default: these three; with --phone look and answer), manage",
    )
    parser.add_argument("--name", metavar="NAME", help="what 'synapsectl devices list' calls it")
    parser.add_argument("--no-open", action="store_true", help="print the address and open nothing")
    parser.add_argument("--json", action="store_true", help="print a JSON document of the code and its addresses")


def run(args: argparse.Namespace, ctx: CommandContext) -> int:
    ensure_daemon(ctx, spawn=True)
    rights = rights_in(args.rights) if args.rights else PHONE if args.phone else DESK
    if "look" not in rights:
        raise UsageError(f"--rights {args.rights}: a browser that may not look shows nothing; add look")
    if args.tailscale:
        serve(ctx)
    opener = None if args.phone or args.json or args.no_open else _opener(ctx)
    # Every user of this machine can read the arguments of an opener and a browser (`ps`).
    body: dict[str, Any] = {"rights": rights, "here": opener is not None} | ({"name": args.name} if args.name else {})
    made = ctx.client.post("/control/web/code", body)
    addresses = [f"{address}#code={made['code']}" for address in made["addresses"]]
    if args.json:
        ctx.out.document({**made, "addresses": addresses})
        return DONE
    if args.phone:
        return _show(ctx, address := _reachable(addresses), _certificate_of(address, made))
    return _open(ctx, _local(addresses), opener)


def _certificate_of(address: str, made: dict[str, Any]) -> dict[str, str] | None:
    """Returns the daemon's own certificate, if this address uses it."""
    own: dict[str, str] | None = made.get("certificate")
    return own if own is not None and _origin(address) == _origin(own["download"]) else None


def _origin(address: str) -> tuple[str, str]:
    split = urlsplit(address)
    return split.scheme, split.netloc


def qr_rows(address: str) -> list[str]:
    """Returns the QR code, in half blocks that every terminal has, and in colours of its own: those of a terminal with
    a light background would be inverted, and few cameras read that."""
    import segno

    drawn = io.StringIO()
    segno.make(address, error="l", micro=False).terminal(out=drawn, compact=True)
    return [f"{WHITE_ON_BLACK}{row}{AS_BEFORE}" for row in drawn.getvalue().splitlines()]


def _show(ctx: CommandContext, address: str, certificate: dict[str, str] | None) -> int:
    if ctx.out.on_terminal:
        ctx.out.control("".join(f"{row}\n" for row in qr_rows(address)))
    ctx.out.line(address)
    ctx.out.note("good once, for two minutes; 'synapsectl devices list' shows what was paired")
    if certificate is not None:
        ctx.out.note("the phone will warn: this daemon has made its certificate itself; SHA-256 of the right one:")
        ctx.out.remark(f"  {certificate['fingerprint']}")
        ctx.out.remark("iPhones, and notifications on every phone, need it trusted (docs/web.md): there, install")
        ctx.out.remark(f"  {certificate['download']}")
        ctx.out.remark("which is the right authority if its SHA-256 is")
        ctx.out.remark(f"  {certificate['authority']}")
    return DONE


def _opener(ctx: CommandContext) -> str | None:
    """Returns the program that opens addresses; None without one, or without a desktop on which to see it."""
    seen = any(ctx.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "WSL_DISTRO_NAME")) or _has_desktop()
    found = (shutil.which(name, path=ctx.environ.get("PATH")) for name in OPENERS)
    return next((each for each in found if each), None) if seen else None


def _open(ctx: CommandContext, address: str, opener: str | None) -> int:
    if opener is not None:
        try:
            subprocess.Popen(
                [opener, address if _daemon_finds_user() else _redirect(ctx, address)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                env=dict(ctx.environ),
            )
        except (OSError, CtlError):
            pass
        else:
            ctx.out.note(f"{address.partition('#')[0]} opens in your browser")
            return DONE
    ctx.out.line(address)
    ctx.out.note("open it in a browser of this machine: good once, for two minutes")
    return DONE


def _daemon_finds_user() -> bool:
    """Returns True if the daemon can find out which user has opened a local connection (on Linux only). Other users,
    who can read the code in the browser's arguments, then cannot use it."""
    return sys.platform == "linux"


def _redirect(ctx: CommandContext, address: str) -> str:
    """Returns the address of a file, readable only by the user, that redirects a browser to `address`. (On Linux a
    browser in a sandbox of its own could not read the file.) Raises CtlError."""
    from synapsectl.service.files import WantedFile

    file = ctx.paths.run / "web.html"
    text = f'<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0;url={html.escape(address)}">\n'
    WantedFile(file, text, mode=0o600).write()
    return file.as_uri()


def _has_desktop() -> bool:
    return sys.platform == "darwin"


def _reachable(addresses: list[str]) -> str:
    """Returns the first address that another device may reach. Raises UsageError if no address is reachable."""
    for address in addresses:
        if not _is_local(address):
            return address
    raise UsageError(
        "no other device reaches the page yet: 'tls_listen = \"0.0.0.0:8443\"' under [api] of config.toml, "
        "'synapsectl web --phone --tailscale', or a reverse proxy with TLS (docs/web.md)"
    )


def _local(addresses: list[str]) -> str:
    """Returns the address on this machine, which needs no certificate; else the first. Raises NotInstalled for an empty
    list."""
    if not addresses:
        raise NotInstalled("the daemon listens at no address: 'synapsectl doctor' says why")
    return next((address for address in addresses if _is_local(address)), addresses[0])


def _is_local(address: str) -> bool:
    host = urlsplit(address).hostname or ""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
