"""The hosts that a person has added, and a tunnel to each."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Final
from urllib.parse import quote

import structlog
from pydantic import ValidationError

from synapsed.clock import iso
from synapsed.errors import InvalidRequest, NameTaken, QueueFull, UnknownAgent
from synapsed.interfaces import AgentView, AttentionItem, HostSaid, refuse_reserved_host
from synapsed.model.external import host_of
from synapsed.parts.elsewhere.addressbook import read_private
from synapsed.parts.elsewhere.external_agent import ExternalAgent
from synapsed.parts.elsewhere.hosts import inboxes
from synapsed.parts.elsewhere.hosts.host import Host, HostView
from synapsed.parts.elsewhere.hosts.ssh import check_socket, check_target
from synapsed.parts.elsewhere.hosts.tunnel import Tunnel, TunnelDeps
from synapsed.shared.files import write_private
from synapsed.shared.regex import regex

HOSTS_MAX: Final = 100
NAME_PATTERN: Final = regex(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,30}")
"""Pattern of a host's name: short, since the name of a socket contains it."""

log = structlog.stdlib.get_logger("synapsed.hosts")


class HostBook:
    """The directory of the saved hosts; every method blocks."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def load(self) -> list[Host]:
        """Returns the saved hosts; skips a file that is no entry, and logs that."""
        found = []
        for path in sorted(self._directory.glob("*.json")) if self._directory.is_dir() else ():
            try:
                host = Host.model_validate_json(read_private(path))
            except (OSError, ValidationError) as error:
                log.warning("a host's file cannot be read", file=str(path), error=str(error)[:200])
                continue
            if host.name == path.stem:
                found.append(host)
        return found

    def save(self, host: Host) -> None:
        write_private(self._directory / f"{host.name}.json", host.model_dump_json(indent=2).encode())

    def remove(self, name: str) -> None:
        (self._directory / f"{name}.json").unlink(missing_ok=True)


class Hosts:
    """All hosts and their tunnels. `own_name` is this host's name for others. `restore` once, `start`, and `close` at
    the end; `on_up` is called with a host's name whenever its daemon answers (again)."""

    def __init__(self, *, book: HostBook, means: TunnelDeps, own_name: str) -> None:
        self.own_name = own_name
        self.on_up: Callable[[str], None] = lambda _: None
        self._book = book
        self._means = means
        self._tunnels: dict[str, Tunnel] = {}
        self._changing = asyncio.Lock()

    # --- from one daemon to the next ---

    async def restore(self) -> None:
        for host in await asyncio.to_thread(self._book.load):
            self._tunnels[host.name] = self._tunnel(host)

    def start(self) -> None:
        for tunnel in self._tunnels.values():
            tunnel.start()

    async def close(self) -> None:
        await asyncio.gather(*(tunnel.close() for tunnel in self._tunnels.values()))

    def _tunnel(self, host: Host) -> Tunnel:
        return Tunnel(host, self._means, on_up=lambda: self.on_up(host.name))

    # --- the hosts ---

    def names(self) -> list[str]:
        return sorted(self._tunnels)

    def knows(self, name: str) -> bool:
        return name in self._tunnels

    def tunnel(self, name: str) -> Tunnel:
        """Returns the tunnel to a host. Raises UnknownAgent."""
        if (tunnel := self._tunnels.get(name)) is None:
            known = ", ".join(self.names()) or "none; 'synapsectl host add NAME ssh://…' adds one"
            raise UnknownAgent(f"no host {name[:64]!r}: there are {known}", host=name[:64])
        return tunnel

    def view(self, name: str, *, waiting: int) -> HostView:
        """Returns the host with the state of its connection; `waiting` counts the tasks under way to it. Raises
        UnknownAgent."""
        tunnel = self.tunnel(name)
        return HostView(
            **tunnel.host.model_dump(),
            state=tunnel.state,
            since=iso(tunnel.since),
            error=tunnel.error,
            retry_at=None if tunnel.retry_at is None else iso(tunnel.retry_at),
            local=str(tunnel.local),
            waiting=waiting,
        )

    async def add(self, name: str, target: str, *, socket: str | None, synapsectl: str | None) -> Host:
        """Saves a host and connects to it. A known name must have the same target. Raises InvalidRequest, NameTaken,
        QueueFull."""
        if not NAME_PATTERN.fullmatch(name):
            raise InvalidRequest(
                f"{name[:80]!r} cannot name a host: use letters, digits, '_', '.' and '-', at most 31, beginning with "
                "a letter or digit",
                field="name",
            )
        refuse_reserved_host(name)
        check_target(target)
        if socket is not None:
            check_socket(socket)
        async with self._changing:
            if (known := self._tunnels.get(name)) is not None and known.host.target != target:
                raise NameTaken(f"{name} is {known.host.target}: remove it first, or choose another name", name=name)
            if known is None and len(self._tunnels) >= HOSTS_MAX:
                raise QueueFull(f"there are {HOSTS_MAX} hosts; remove some", limit=HOSTS_MAX)
            host = Host(
                name=name,
                target=target,
                socket=socket,
                synapsectl=synapsectl or "synapsectl",
                added_at=iso(self._means.clock.wall()) if known is None else known.host.added_at,
            )
            await asyncio.to_thread(self._book.save, host)
            if known is not None:
                await known.close()
            tunnel = self._tunnels[name] = self._tunnel(host)
            tunnel.start()
            log.info("host added", host=name, target=target)
            return host

    async def remove(self, name: str) -> Host:
        """Forgets a host and closes its tunnel. Raises UnknownAgent."""
        async with self._changing:
            tunnel = self.tunnel(name)
            del self._tunnels[name]
            await asyncio.to_thread(self._book.remove, name)
            await tunnel.close()
            return tunnel.host

    # --- their agents ---

    async def agents(self) -> list[AgentView]:
        """Returns the agents of every host that answers."""
        found = await asyncio.gather(*(self._tunnels[name].agents() for name in self.names()))
        return [agent for each in found for agent in each]

    async def teams(self) -> dict[str, list[str]]:
        """Returns no teams: hosts do not report their teams over ssh."""
        return {}

    async def inboxes(self) -> tuple[list[AttentionItem], list[HostSaid]]:
        """Returns the items that wait for a person on the hosts, and each host's state."""
        return await inboxes.everywhere([self._tunnels[name] for name in self.names()])

    def agent(self, address: str) -> ExternalAgent:
        """Returns the agent `name@host`, for A2A over the host's socket. Raises UnknownAgent for an unknown host; an
        unknown agent is noticed at the first request."""
        name, host = host_of(address) or (address, "")
        tunnel = self.tunnel(host)
        return ExternalAgent(
            alias=address,
            name=name,
            description=f"{name} on {host}",
            url=tunnel.host.target,
            card_url="",
            endpoint=f"http://localhost/agents/{quote(name, safe='')}/a2a",
            binding="JSONRPC",
            protocol_version="1.0",
            streaming=True,
            skills=[],
            authenticated=False,
            added_at=tunnel.host.added_at,
            last_seen=iso(tunnel.since),
        )
