"""Checks the environment of the daemon: Python, configuration, proxy, service manager, PATH, the agents' programs."""

import os
import platform
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

from synapsectl.checkup.finding import NOTE, OK, WRONG, Finding
from synapsectl.checkup.loopback import look_at_main
from synapsectl.checkup.screens import look_at_screens
from synapsectl.context import CommandContext
from synapsectl.errors import CtlError
from synapsectl.service.available import this_machines
from synapsectl.service.manager import NoServiceManager, ServiceManager
from synapsectl.service.port import refusal, served
from synapsectl.service.settings import ConfiguredAgent, ServiceSettings, env_file, gather
from synapsectl.upgrading.extras import TUI_INSTALL, TUI_MISSING, for_this_installer, has_tui
from synapsectl.upgrading.installation import Installation, commands, find_installation
from synapsectl.verbs import packages_with
from synapsed import __version__, own_python
from synapsed.process.extras import MCP_INSTALL, MCP_MISSING, has_mcp
from synapsed.profiles.releases import drift, find, package_version
from synapsed.shared.counts import counted

NEEDED_PYTHON = (3, 12)

VERSION_TIMEOUT_S = 20.0
"""Seconds for a program's --version: some start a runtime of their own."""

PROXY_TIMEOUT_S = 5.0
ASKED_PROXY = b"CONNECT synapsed.invalid:443 HTTP/1.1\r\nHost: synapsed.invalid:443\r\n\r\n"
"""Request that every HTTP proxy answers: a proxy does not know that host, or wants a password first."""
WAY_OUT = "notifications, webhooks, external agents and traces"


def look_at_cache(installed: Installation) -> Iterator[Finding]:
    """Yields a note if a daemon of this installation would run from a cache."""
    if installed.cached:
        yield Finding("installation", NOTE, installed.cached, " && ".join(commands(installed)))


def look_around(ctx: CommandContext) -> Iterator[Finding]:
    yield _python()
    yield from look_at_cache(find_installation())
    if (untried := untried_system(sys.platform, platform.release())) is not None:
        yield untried
    yield look_at_screens(ctx.environ)
    try:
        settings = gather(ctx.paths, ctx.environ)
    except CtlError as error:
        yield Finding(
            "configuration", WRONG, str(error), f"correct it, then 'synapsed check-config' ({ctx.paths.config})"
        )
        return
    yield Finding("configuration", OK, f"{ctx.paths.config_file}, {counted(len(settings.agents), 'agent')}")
    for sentence in settings.missing:
        yield Finding(
            "extras", NOTE, for_this_installer(sentence), "install what is named there, or take the lines out"
        )
    if not has_mcp():
        yield Finding("agents' tools", NOTE, MCP_MISSING, for_this_installer(MCP_INSTALL))
    if not has_tui():
        yield Finding("top", NOTE, TUI_MISSING, for_this_installer(TUI_INSTALL))
    if settings.listen:
        yield from _port(settings.listen, served(ctx))
    yield look_at_proxy(ctx, settings.proxy)
    yield from (Finding(*found) for found in settings.findings)
    for package in packages_with("checks"):
        yield from _of_part(package, ctx, settings)
    try:
        manager = this_machines(ctx.environ)
    except NoServiceManager as error:
        yield Finding("service", NOTE, str(error))
        yield from _programs(settings, installed=False)
        return
    yield from _service(manager, settings)
    yield from _programs(settings, installed=manager.is_ours())


def _of_part(package: str, ctx: CommandContext, settings: ServiceSettings) -> Iterator[Finding]:
    """Yields the findings of parts' own checks. A failing check of another distribution is a finding, and the others go
    on."""
    try:
        yield from import_module(f"{package}.checks").look(ctx, settings)
    except Exception as error:
        if package.startswith("synapsed.parts."):
            raise
        yield Finding("part", WRONG, f"{package}.checks fails: {type(error).__name__}: {error}")


def _python() -> Finding:
    detail = f"{platform.python_version()} ({sys.executable}), synapsed {__version__} in {own_python.PACKAGES}"
    if sys.version_info[:2] < NEEDED_PYTHON:
        return Finding("python", WRONG, detail, "install synapsed with Python 3.12 or newer")
    return Finding("python", OK, detail)


def untried_system(system: str, release: str) -> Finding | None:
    """Returns a note for a system on which synapsed was never tried. `release` is the kernel's."""
    name = "macOS" if system == "darwin" else "WSL" if "microsoft" in release.lower() else None
    if name is None:
        return None
    return Finding("system", NOTE, f"{name}: synapsed is meant to work there, and was never tried there")


def _port(listen: str, served: list[str]) -> Iterator[Finding]:
    if listen in served:
        yield Finding("main port", OK, f"{' and '.join(served)}, the daemon's")
    elif (why := refusal(listen)) is None:
        yield Finding("main port", OK, f"{listen} is free")
    else:
        mend = "free it, or set another with 'listen' under [api] of config.toml; a daemon takes it once it is free"
        yield Finding("main port", WRONG, f"{listen} cannot be listened on: {why}", mend)
    yield from look_at_main(listen, served)


def _service(manager: ServiceManager, settings: ServiceSettings) -> Iterator[Finding]:
    if not manager.is_ours():
        other = manager.installed()
        detail = "installed for another home of synapsed" if other else "not installed: daemons start when needed"
        yield Finding("service", NOTE, detail, "synapsectl install --start")
        return
    if problem := manager.problem():
        yield Finding("service", WRONG, problem, "log in as this user, then 'synapsectl doctor'")
        return
    old = [file.path.name for file in manager.files(settings) if not file.is_current()]
    state = manager.state()
    if old:
        yield Finding(
            "service files", WRONG, f"not what they should be: {', '.join(old)}", "synapsectl install --start"
        )
    elif state.outdated:
        yield Finding("service files", WRONG, "newer than the service that runs", "synapsectl install --start")
    else:
        yield Finding("service files", OK, f"as they should be ({manager.name})")
    if not state.enabled:
        yield Finding("service", WRONG, "does not start with your session", "synapsectl install")
    elif not state.running:
        yield Finding("service", WRONG, f"{state.words}; see {manager.how_to_log()}", "synapsectl install --start")
    else:
        yield Finding("service", OK, f"runs, pid {state.pid}")
    advice = manager.advice()
    for why, what in advice:
        yield Finding("lingering", NOTE, why, what)
    if not advice and manager.name == "systemd":
        yield Finding("lingering", OK, "the service starts with the machine")


def _programs(settings: ServiceSettings, *, installed: bool) -> Iterator[Finding]:
    login = settings.login
    if login.problem:
        yield Finding("login shell", NOTE, login.problem, f"{login.shell} -lic true")
    else:
        directories = counted(len(login.path.split(os.pathsep)), "directory", "directories")
        yield Finding("login shell", OK, f"{login.shell}, {directories} on PATH")
    path = _service_path(settings) if installed else login.path
    for agent in settings.agents:
        yield _program(agent, settings, path)


def _service_path(settings: ServiceSettings) -> str:
    """Returns the PATH of the installed service."""
    try:
        text = env_file(settings.paths).read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return settings.login.path  # the missing file has a finding of its own
    lines = [line for line in text.splitlines() if line.startswith('PATH="')]
    return lines[0][len('PATH="') : -1].replace("\\", "") if lines else settings.login.path


def _program(agent: ConfiguredAgent, settings: ServiceSettings, path: str) -> Finding:
    what = f"agent {agent.name}"
    found = next(program for program in settings.login.programs if program.name == agent.command)
    if found.path is None:
        why = f": {found.remark}" if found.remark else f" by {settings.login.shell}, nor on this shell's PATH"
        mend = f"install it, or write its absolute path: [agents.{agent.name}] command"
        return Finding(what, WRONG, f"{agent.command} was not found{why}", mend)
    if "/" not in agent.command and shutil.which(agent.command, path=path) is None:
        return Finding(what, WRONG, f"{found.path} is not on the service's PATH", "synapsectl install --start")
    if agent.version is None:
        return Finding(what, OK, found.path)  # the profile has no way to ask for its version
    version = package_version(found.path) or _version(
        found.path, agent.version, {**settings.login.environ, "PATH": path}
    )
    differs = drift(version or "", verified=agent.version["verified"], since=agent.version["since"])
    if differs is not None:
        return Finding(what, NOTE, f"{found.path}: {differs}")
    return Finding(what, OK, f"{found.path}, {version or 'version unknown'}")


def _version(program: str, check: Mapping[str, Any], environ: Mapping[str, str]) -> str | None:
    try:
        done = subprocess.run(
            [program, *check["args"]],
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=VERSION_TIMEOUT_S,
            check=False,
            start_new_session=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return find(re.compile(check["pattern"], re.MULTILINE), done.stdout + done.stderr)


def look_at_proxy(ctx: CommandContext, proxy: tuple[str, int] | None) -> Finding:
    """Checks the `proxy` of the configuration, which the daemon has read at its start."""
    if proxy is not None:
        place = f"{proxy[0]}:{proxy[1]}"
        if (why := _silence(*proxy)) is None:
            return Finding("proxy", OK, f"{place} answers: {WAY_OUT} go through it")
        mend = "correct 'proxy' under [outgoing] of config.toml, and restart the daemon"
        return Finding("proxy", WRONG, f"{place} does not answer, and {WAY_OUT} go through it: {why}", mend)
    if unused := _unused_proxies(ctx):
        verb = "names a proxy, which is" if len(unused) == 1 else "name a proxy, which is"
        detail = f"{', '.join(unused)} {verb} not used: {WAY_OUT} go out directly"
        return Finding(
            "proxy", NOTE, detail, "if they should not: 'proxy' under [outgoing] of config.toml, and restart the daemon"
        )
    return Finding("proxy", OK, f"none is named: {WAY_OUT} go out directly")


def _unused_proxies(ctx: CommandContext) -> list[str]:
    """Returns unused proxy variables of the daemon's environment; if no daemon runs, of this shell's, from which one
    would be started."""
    try:
        return list(ctx.client.get("/control/status").get("unused_proxies", []))
    except CtlError:
        from synapsed.outgoing import proxies_in

        return proxies_in(ctx.environ)


def _silence(host: str, port: int) -> str | None:
    """Returns the reason why no HTTP server answers there; None if one does."""
    try:
        with socket.create_connection((host, port), timeout=PROXY_TIMEOUT_S) as connection:
            connection.settimeout(PROXY_TIMEOUT_S)
            connection.sendall(ASKED_PROXY)
            said = connection.recv(64)
    except TimeoutError:
        return f"nothing within {PROXY_TIMEOUT_S:g} s"
    except OSError as error:
        return error.strerror or str(error)
    return None if said.startswith(b"HTTP/1.") else "what is there is no HTTP proxy"
