"""Says the consequences of an upgrade, and the commands for it. Pure: facts go in, sentences and command lines come
out."""

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from synapsectl.upgrading.installation import NAME, Installation, Installer, commands
from synapsectl.upgrading.offer import Offer, compared

UNITS = {
    "systemd": "systemctl --user restart synapsed",
    "launchd": f"launchctl kickstart -k gui/{os.getuid()}/synapsed",
}
"""Command that restarts the daemon, by the service manager; the agents go on."""


CACHED = {
    Installer.UVX: "runs the version again that its cache has: 'uvx --refresh --from …' looks for a newer one (in no "
    "checkout), and 'uv cache clean' and 'prune' remove files from under a daemon that runs; those of an installed "
    "tool stay",
    Installer.PIPX_RUN: "runs the version again that its cache has, for 14 days: 'pipx run --no-cache …' looks for a "
    "newer one, and then the files go, from under a daemon that runs too; those of an installed program stay",
}
"""Words about a synapsed that is run out of a cache."""


class UpgradeFacts(NamedTuple):
    """Everything that the advice rests on."""

    installed: Installation
    version: str
    commit: str
    numbers: Mapping[str, Any]
    """`store` and `keeper` of `synapsed version --json`; empty if they are unknown."""
    running: tuple[str, str] | None
    """Version and commit of the daemon that runs."""
    agents: tuple[str, ...]
    """Names of the agents whose programs live."""
    service: str
    """Name of the manager of this home's service; empty without a service."""
    parts: tuple[str, ...]
    """Parts of other distributions."""
    offer: Offer | None


def newer(facts: UpgradeFacts) -> bool | None:
    """Returns True if the offer is newer than what is installed, or another build of the same version; None without an
    offer."""
    if facts.offer is None:
        return None
    return compared(facts.offer.version, facts.version) > 0 or _another_build(facts)


def _another_build(facts: UpgradeFacts) -> bool:
    offer = facts.offer
    same = offer is not None and compared(offer.version, facts.version) == 0
    return same and offer is not None and bool(offer.commit and facts.commit and offer.commit != facts.commit)


def _is_way_back(facts: UpgradeFacts) -> bool:
    """Returns True for a file with an older version, which a person has chosen; an index may just be behind."""
    offer = facts.offer
    return offer is not None and bool(offer.file) and compared(offer.version, facts.version) < 0


def verdict(facts: UpgradeFacts) -> str:
    """Returns one sentence: the comparison of the offer with what is installed."""
    offer = facts.offer
    if offer is None:
        return "nothing was asked: '--index' asks your installer's index for the newest version, '--wheel FILE' a file"
    order = compared(offer.version, facts.version)
    if order > 0:
        return "newer than what is installed"
    if order < 0:
        return "older than what is installed: this would be a way back"
    if _another_build(facts):
        return "another build of the installed version"
    return "not newer: it is what is installed"


def is_behind(facts: UpgradeFacts) -> bool:
    """Returns True if the daemon that runs is not the installed one."""
    if facts.running is None:
        return False
    version, commit = facts.running
    return version != facts.version or bool(commit and facts.commit and commit != facts.commit)


def effects(facts: UpgradeFacts) -> Iterator[tuple[str, str]]:
    """Yields the subjects, each with what an upgrade does to it."""
    yield "agents", _agents(facts)
    yield "hooks", _hooks(facts)
    yield "service", _service(facts)
    yield "database", _database(facts)
    if facts.parts:
        named = ", ".join(facts.parts)
        yield "parts", f"{named}: pinned to this version, so install the same new version along (docs/upgrading.md)"
    installer = facts.installed.installer
    if installer in CACHED:
        yield str(installer), CACHED[installer]
    if installer in (Installer.UV_TOOL, Installer.PIPX, *CACHED):
        yield (
            "extras",
            "those installed along ('synapsed[…]', '--with') are named again in the command, or go",
        )


def _hooks(facts: UpgradeFacts) -> str:
    return (
        f"each launch has its own copy of the hook client, which {facts.installed.python} runs: agents that live keep "
        "theirs, the next launch gets the new one; a report that falls into the seconds in which the environment is "
        "replaced is lost, and the screen is read instead"
    )


def _agents(facts: UpgradeFacts) -> str:
    if facts.running is None:
        return "no daemon runs here: agents that live on without one ('synapsectl list' names them) are the next one's"
    if not facts.agents:
        return "none lives now"
    named = f"{len(facts.agents)} live ({', '.join(facts.agents)})"
    if why := _not_taken_up(facts):
        return f"{named}; {why}"
    known = facts.offer is not None and facts.offer.numbers
    on = "" if known else ", as between any two versions that follow each other"
    return (
        f"{named}: they and their turns go on while files are replaced and the daemon restarts{on}; messages wait, and "
        "what agents say meanwhile is read afterwards"
    )


def _not_taken_up(facts: UpgradeFacts) -> str:
    """Returns the reason why the offered daemon would not take up all agents that live; empty if it does."""
    offer = facts.offer
    if offer is None or not offer.numbers or not facts.numbers:
        return ""
    now, then = facts.numbers["keeper"], offer.numbers["keeper"]
    if not then["oldest"] <= now["protocol"] <= then["protocol"]:
        return (
            f"{offer.version} does NOT take them up (with what holds their terminals its daemon speaks "
            f"{then['oldest']} to {then['protocol']}, this one {now['protocol']}): install a version between, or stop "
            "them first"
        )
    if then["oldest"] > now["oldest"]:
        return (
            f"{offer.version} takes up those that were started by {facts.version}: restart older ones first "
            "('synapsectl restart AGENT --when-idle')"
        )
    return ""


def _service(facts: UpgradeFacts) -> str:
    if not facts.service:
        return "none is installed: a daemon that runs goes on with the old files in memory until it is restarted"
    return (
        f"its files ({facts.service}) name the Python and the folder of this installation; the daemon goes on with the "
        "old files in memory until it is restarted, and agents go on through that"
    )


def _database(facts: UpgradeFacts) -> str:
    offer = facts.offer
    if offer is None or not offer.numbers or not facts.numbers:
        return (
            "upgraded when the new daemon first opens it; the version before works on it still, or refuses and says so"
        )
    now, then = facts.numbers["store"], offer.numbers["store"]
    if then["schema"] < now["schema"]:
        if then["schema"] >= now["oldest"]:
            return f"{offer.version} works on it as it is (form {now['schema']}, it needs {now['oldest']} at most)"
        return f"{offer.version} does NOT work on it: it knows form {then['schema']}, and this needs {now['oldest']}"
    if then["schema"] == now["schema"]:
        return "of the same form: back is as easy as forth"
    back = "works on it still" if now["schema"] >= then["oldest"] else "does NOT work on it any more"
    return f"upgraded from form {now['schema']} to {then['schema']} when it is first opened; {facts.version} {back}"


def steps(facts: UpgradeFacts) -> Sequence[tuple[str, str]]:
    """Returns the command lines in their order, each with its purpose; none if there is nothing to do."""
    told = _bringing(facts) if newer(facts) is not False or _is_way_back(facts) else []
    if not told and not is_behind(facts):
        return []
    if facts.service:
        told.append(
            ("synapsectl install --dry-run", "shows if the service's files differ; without --dry-run writes them")
        )
    if facts.service in UNITS:
        told.append((UNITS[facts.service], "the agents go on"))
    elif facts.running is not None:
        told += [("synapsectl shutdown --keep-agents", "the agents go on"), ("synapsectl up", "takes them up again")]
    return [*told, ("synapsectl doctor", "checks the installation, and says what mends it")]


def _bringing(facts: UpgradeFacts) -> list[tuple[str, str]]:
    offer = facts.offer
    file = offer.file if offer is not None else ""
    installed = facts.installed
    if offer is not None and offer.origin == "index" and installed.installer is not Installer.CHECKOUT:
        # uv and pipx upgrade from the source that they remember.
        file = f"{NAME}=={offer.version}" if installed.source else file
        installed = installed._replace(source="")
    lines = commands(installed, file, same_version=_another_build(facts))
    return [*((line, "fetches what is newer") for line in lines[:-1]), (lines[-1], "installs it")]
