"""Makes the lines and rows about a fleet that a person sees."""

import time
from collections.abc import Iterator, Mapping
from typing import Any

from synapsectl.ages import age

HOST_HEADINGS = ("HOST", "STATE", "SEEN", "VERSION", "AGENTS")
FILE_HEADINGS = ("ID", "STATE", "TO", "SIZE", "FOR", "FILE")
GIB = 1 << 30
DAY_S = 86_400
EXPIRES_SOON_DAYS = 60


def status_lines(told: Mapping[str, Any]) -> Iterator[str]:
    """Yields the lines of `fleet status`. `told`: the answer of `synapsed fleet status`; its `daemon` is None if no
    daemon answers for the fleet."""
    if (member := told.get("member")) is not None:
        yield f"this host   {member['name']}, a member{_until(member['expires'])}"
        yield f"broker at   {', '.join(member['urls'])}"
        if told["daemon"] is None:
            yield f"connection  {told.get('problem') or 'no daemon runs here'}"
    if (broker := told.get("broker")) is not None:
        yield from _of_broker(broker, told)
    if (given := told.get("given")) is not None:
        answers = f"pid {given['pid']}" if given["pid"] else "nobody: 'synapsectl fleet broker restart'"
        yield f"broker of   somebody else's, account {given['account']}; who answers hosts that join: {answers}"
        yield from _streams(told)
    if (hosts := told.get("hosts")) is not None:
        yield f"members     {', '.join(host['name'] for host in hosts)}"


def daemon_lines(daemon: Mapping[str, Any]) -> Iterator[str]:
    """Yields the lines about the daemon's answer `daemon`."""
    where = (
        f"connected to {daemon['broker']}" if daemon.get("connected") else f"no broker: {daemon.get('problem') or ''}"
    )
    yield f"connection  {where}"
    if daemon.get("connected") and daemon.get("problem"):
        yield f"trouble     {daemon['problem']}"
    counts = daemon.get("outbox") or {}
    oldest = f", the oldest for {age(daemon['oldest'])}" if daemon.get("oldest") else ""
    yield f"under way   {sum(counts.values())} without a receipt{oldest}"
    if mail := daemon.get("mail"):
        yield "waits here  " + ", ".join(f"{count} of {host}" for host, count in mail.items())
    for file in daemon.get("files") or ():
        yield f"            {on_its_way(file)}"
    if daemon.get("quarantined"):
        yield f"refused     {daemon['quarantined']}: 'synapsectl fleet quarantine' shows them"


def on_its_way(file: Mapping[str, Any]) -> str:
    """Returns a line about a file, or a long message, under way: its progress, and the reason for a delay."""
    what = "a message" if file["message"] else file["name"] or f"file {file['id'][:8]}"
    where = f"{'to' if file['state'] == 'going' else 'from'} {file['host']}"
    problem = f"; {file['problem']}" if file["problem"] else ""
    return f"{what} {where}: {size_of(file['have'])} of {size_of(file['size'])}, for {age(file['since'])}{problem}"


def size_of(size: int) -> str:
    for unit, name in ((GIB, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit:
            return f"{size / unit:.1f} {name}"
    return f"{size} B"


def file_row(file: Mapping[str, Any]) -> tuple[Any, ...]:
    """Returns a row of the table; `ID` is the argument of `get` and `remove`."""
    came = file["state"] in ("coming", "here")
    have = "" if file["have"] == file["size"] else f"{size_of(file['have'])} of "
    what = "(a message)" if file["message"] else file["name"] or "-"
    return (
        f"{file['host']}/{file['id']}" if came else file["id"],
        file["state"],
        "-" if came else file["host"] or "-",
        f"{have}{size_of(file['size'])}",
        age(file["since"]),
        f"{what}: {file['problem']}" if file["problem"] else what,
    )


def _of_broker(broker: Mapping[str, Any], told: Mapping[str, Any]) -> Iterator[str]:
    state = (
        "healthy" if broker["healthy"] else broker["says"] or ("does not answer" if broker["pid"] else "does not run")
    )
    server = f", nats-server {broker['server']}" if broker["server"] else f", {broker['problem']}"
    yield f"broker here {state}, at {broker['listen']}{server}, {broker['free'] / GIB:.1f} GiB free"
    if broker["certificate_days"] < EXPIRES_SOON_DAYS:
        days = broker["certificate_days"]
        yield f"            its certificate is valid for {days} days: restart it where the keys are"
    yield from _streams(told)


def _streams(told: Mapping[str, Any]) -> Iterator[str]:
    for stream in told.get("streams") or ():
        replicas = "".join(f", {one['name']} {_replica(one)}" for one in stream["replicas"])
        leader = f" led by {stream['leader']}{replicas}" if stream["replicas"] else ""
        size = f"{stream['bytes'] >> 10} KiB of {stream['bytes_max'] / GIB:.1f} GiB"
        yield f"            {stream['name']:<13}{stream['messages']:>8} messages, {size}{leader}"


def _replica(one: Mapping[str, Any]) -> str:
    return "offline" if one["offline"] else "current" if one["current"] else "behind"


def _until(expires: int | None) -> str:
    if expires is None:
        return ""
    return f" until {time.strftime('%Y-%m-%d', time.gmtime(expires))}"


def host_row(host: Mapping[str, Any]) -> tuple[Any, ...]:
    agents = ", ".join(agent["name"] for agent in host.get("agents") or ()) or "-"
    seen = host.get("seen")
    return host["host"], host["state"], age(seen) if seen else "-", host.get("version") or "-", agents
