"""`synapsed report`: reads a JSON request from stdin, makes a report of an agent, writes it as JSON to stdout."""

import argparse
import json
import os
import platform
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import psutil

from synapsed import __version__, own_python
from synapsed.clock import SystemClock
from synapsed.errors import InvalidRequest, NotReady
from synapsed.parts.profile_tools.reports.private_values import names, secret_values
from synapsed.parts.profile_tools.reports.private_words import Word
from synapsed.parts.profile_tools.reports.report import DrawnOutput, ReportedState, ReportVersions, StateReport, written
from synapsed.profiles.library import Profile, ProfileLibrary
from synapsed.shared.regex import regex

if TYPE_CHECKING:
    from synapsectl.verbs import Surroundings

DRAWN_S: Final = 500.0
AT_LAUNCH_S: Final = 1.05
"""Seconds by which output may seem older than it is: a recording begins at a whole second."""
READS: Final = frozenset(
    {
        *("transport", "cols", "rows", "verified", "unverified", "status_records", "ready", "busy", "background"),
        *("waiting", "error", "limit", "composer", "delivery", "interrupt", "answer", "stream", "prompts", "model"),
    }
)
"""Tables and keys of a profile that say how a screen is read. The others say how the program is started and what it is
given; these belong to the person, and are left out."""
_VERSION = regex(r"\d[0-9A-Za-z.+-]{0,63}")


def configure(parser: argparse.ArgumentParser) -> None:
    del parser


def run(args: argparse.Namespace, around: "Surroundings") -> None:
    """Makes the report. Raises SynapsedError."""
    del args
    body = json.loads(sys.stdin.read() or "{}")
    profile = ProfileLibrary.one(around.paths.user_profiles, body["status"]["type"], around.stand_ins)
    json.dump(report(body, profile.at(body["status"].get("version")), os.environ), sys.stdout)


def report(body: Mapping[str, Any], profile: Profile, environ: Mapping[str, str]) -> dict[str, Any]:
    """Returns the report as a text, and the parts of it that are shown to a person. `body` has the agent's `status`,
    its output as a `cast` (asciicast) of at most `limit` bytes, the person's words (`says`), the right state
    (`should_be`), and `words` that are to be masked. Raises SynapsedError."""
    status = body["status"]
    if profile.transport == "pipes":
        raise InvalidRequest(
            f"{status['name']} speaks a protocol, so no screen is read, rightly or wrongly; "
            f"'synapsectl status {status['name']} --explain' shows what it reports"
        )
    began, *its_own = process_facts(status.get("pid"))
    size, pieces, whole_launch = _pieces(body["cast"], began, body["limit"])
    if not pieces:
        raise NotReady(f"{status['name']} has written nothing yet: there is nothing to report")
    whole = profile.model_dump(mode="json", exclude_none=True)
    drawn = _drawn(
        profile=whole,
        size=body.get("size") or size,
        pieces=pieces,
        now=SystemClock().wall(),
        words=[
            *(Word(word, "your words") for word in body["words"]),
            *names(environ),
            *secret_values([dict(environ), *its_own, whole]),
        ],
        says=body["says"],
        screen=status["screen"] if status["state"] == "running" else None,
        texts={
            "told": {key: status[key] for key in ReportedState.model_fields if key in status},
            "profile": {key: value for key, value in whole.items() if key in READS},
            "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        },
    )
    made = StateReport(
        made=datetime.now(UTC).isoformat(timespec="seconds"),
        profile_name=profile.name,
        says=drawn["says"] or None,
        should_be=body["should_be"],
        versions=ReportVersions(
            synapsed=__version__,
            program=_version(status.get("version")),
            verified=_version(profile.verified),
            python=platform.python_version(),
            system=drawn["texts"]["system"],
        ),
        told=drawn["texts"]["told"],
        recording=DrawnOutput(
            size=body.get("size") or size, start="launch" if whole_launch else "later", **_known(drawn)
        ),
        profile=drawn["texts"]["profile"],
        masked=drawn["masked"],
    )
    shown = {key: drawn[key] for key in ("seen", "full", "masked", "altered", "drawn", "reads")}
    return {
        **shown,
        "report": written(made).decode(),
        "name": status["name"],
        "lines": drawn["lines"],
        "bytes": len(made.raw()),
        "start": made.recording.start,
        "told": drawn["texts"]["told"],
    }


def _known(drawn: Mapping[str, Any]) -> dict[str, Any]:
    return {key: drawn[key] for key in ("drawn", "altered", "output", "end", "reads")} | {"screen": drawn["lines"]}


def _version(text: str | None) -> str | None:
    found = _VERSION.match(text or "")
    return found[0] if found is not None else None


def process_facts(pid: int | None) -> tuple[float, dict[str, str], list[str]]:
    """Returns the time at which the agent's program began, its variables and its arguments, as far as they can be
    known."""
    try:
        process = psutil.Process(pid) if pid else None
        if process is not None:
            return process.create_time(), process.environ(), process.cmdline()
    except (psutil.Error, OSError):
        pass
    return 0.0, {}, []


def _pieces(cast: str, began: float, limit: int) -> tuple[tuple[int, int], list[tuple[float, str]], bool]:
    """Returns the size of the terminal, the output since `began` in pieces with their times, and True if that is all of
    it."""
    head, *lines = cast.removesuffix("\n").split("\n")  # its texts may have other ends of lines in them
    about = json.loads(head)
    at, pieces = float(about["timestamp"]), list[tuple[float, str]]()
    for pause, kind, text in map(json.loads, lines):
        at += pause
        if kind == "o":
            pieces.append((at, text))
    since = [(at, text) for at, text in pieces if at >= began - AT_LAUNCH_S]
    whole = len(since) < len(pieces) or sum(len(text.encode()) for _, text in pieces) < limit
    return (about["term"]["cols"], about["term"]["rows"]), since, whole


def _drawn(**asked: Any) -> dict[str, Any]:
    """Returns the screens, drawn and masked by a process without rights. Raises NotReady."""
    try:
        done = subprocess.run(
            own_python.command("synapsed.parts.profile_tools.reports.drawing"),
            input=json.dumps(asked).encode(),
            env=own_python.bare_environment(),
            cwd=own_python.PACKAGES,
            capture_output=True,
            timeout=DRAWN_S,
            check=False,
        )
        found: dict[str, Any] = json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        raise NotReady(
            "its output cannot be drawn, and so not searched for secrets: no report is made of it; "
            "'synapsectl doctor' may say more"
        ) from None
    return found
