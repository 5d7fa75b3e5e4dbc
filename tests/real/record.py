"""Records real runs of the agent programs: golden material for what recognises their screens.

    python -m tests.real.record [CLI …] [--only SCENARIO …] [--into FOLDER]

Each scenario is a fresh program with a home of its own, in a plain terminal of 120 by 40, before the scripted model.
It leaves ``<cli>-<version>/<scenario>.raw`` (every byte that the program wrote), ``.json`` (`chunks`: [seconds,
offset] after every read; `marks`: [seconds, offset, label]; `requests`: what the model was asked), and ``.txt``
(title, OSC 7501 and the visible screen at every mark, for people). ``hooks/<cli>/<scenario>.jsonl`` is what hooks
were given, or what the program's own event stream said, in order; ``hooks/<cli>/<event>.json`` a sample of each.
"""

import argparse
import json
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.real import netns, programs, shipped
from tests.real.programs import PROGRAMS
from tests.real.questions import PLANNING
from tests.real.recorded import SCENARIOS, is_possible
from tests.real.session import Session, launched, untrusted, without_account
from tests.real.terminal import COLUMNS, ROWS, Mark, render, statuses_in, titles_in

__all__ = ["INTO", "RECORDED", "main"]

RECORDED = (*PROGRAMS, *(name for name, program in shipped.PROGRAMS.items() if program.terminal))
INTO = Path(__file__).parent.parent / "recordings"
NOISE = frozenset({"plugin.added", "server.heartbeat"})  # events of opencode that say nothing of turns


def version(cli: str) -> str:
    return (shipped if cli in shipped.PROGRAMS else programs).version(cli)


def _save(session: Session, scenario: str, into: Path, number: str) -> None:
    folder = into / f"{session.cli}-{number}"
    folder.mkdir(parents=True, exist_ok=True)
    terminal = session.terminal
    raw = bytes(terminal.raw)
    (folder / f"{scenario}.raw").write_bytes(raw)
    requests = [
        {
            "user": r.user,
            "results": [result.text[:600] for result in r.all_results],
            "notes": [note[:200] for note in r.notes if "interrupt" in note.lower() or "abort" in note.lower()],
            "side": r.side,
            "reply": r.reply,
            "outcome": r.outcome,
        }
        for r in session.model.requests(side=True)
    ]
    facts = {
        "cli": session.cli,
        "version": number,
        "size": [COLUMNS, ROWS],
        "marks": [[round(mark.at, 6), mark.offset, mark.label] for mark in terminal.marks],
        "chunks": [[round(at, 6), offset] for at, offset in terminal.chunks],
        "titles": terminal.titles(),
        "statuses": terminal.statuses(),
        "hooks": [path.stem.partition("-")[2] for path in sorted(session.hooks.glob("*.json"))],
        "requests": requests,
    }
    (folder / f"{scenario}.json").write_text(json.dumps(facts, ensure_ascii=False) + "\n")
    seen = [_seen(mark, raw[: mark.offset]) for mark in terminal.marks]
    (folder / f"{scenario}.txt").write_text("\n".join(seen))
    _save_reports(session, into / "hooks" / session.cli, scenario)


def _seen(mark: Mark, raw: bytes) -> str:
    title, status = (titles_in(raw) or [""])[-1], (statuses_in(raw) or [""])[-1]
    heads = [
        f"=== {mark.label}, {mark.at:.2f} s, offset {mark.offset}",
        f"title {title.strip()!r}, OSC 7501 {status!r}",
    ]
    return "\n".join([*heads, render(raw), ""])


def _save_reports(session: Session, folder: Path, scenario: str) -> None:
    """Keeps what hooks were given, or the event stream said: all of it in order, and a sample of each kind."""
    folder.mkdir(parents=True, exist_ok=True)
    reports = [(at, event, payload) for at, event, payload in _reports(session) if event not in NOISE]
    lines = [
        json.dumps({"at": at, "event": event, "payload": payload}, ensure_ascii=False) for at, event, payload in reports
    ]
    (folder / f"{scenario}.jsonl").write_text("".join(line + "\n" for line in lines))
    for _, event, payload in reports:
        sample = folder / f"{event}.json"
        if not sample.exists():
            sample.write_text(json.dumps(payload, indent=1, ensure_ascii=False) + "\n")


def _reports(session: Session) -> Iterator[tuple[float, str, dict[str, Any]]]:
    for path in sorted(session.hooks.glob("*.json")):
        written, _, event = path.stem.partition("-")
        yield round(int(written) / 1e9 - session.terminal.started_at, 3), event, json.loads(path.read_text())
    for at, data in session.events:
        event = json.loads(data)
        yield round(at, 3), event["type"], event


def record(
    cli: str, scenario: str, into: Path, base: Path, *, number: str = "", programs_in: Path | None = None
) -> None:
    """Runs one scenario and keeps what was seen, also when the scenario fails (which it then reports). `programs_in`:
    the folder of a program of version `number`, in the place of the pinned one."""
    shutil.rmtree(base, ignore_errors=True)
    configure = {"trust": untrusted, "sign-in": without_account}.get(scenario)
    extra = PLANNING.get(cli, ()) if scenario == "plan" else ()
    with launched(cli, base, configure=configure, extra=extra, programs_in=programs_in) as session:
        session.mark("started")
        try:
            SCENARIOS[scenario](session)
        except TimeoutError as late:
            session.mark("failed")
            print(f"{cli} {scenario}: {late}", file=sys.stderr)
        session.terminal.kill()
        _save(session, scenario, into, number or version(cli))
        print(f"{cli} {scenario}: {len(session.terminal.raw)} bytes in {session.terminal.now:.1f} s", flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.real.record", description="Records real runs.")
    parser.add_argument("cli", nargs="*", choices=[*RECORDED, []], default=[])
    parser.add_argument("--only", nargs="+", choices=list(SCENARIOS), default=list(SCENARIOS))
    parser.add_argument("--into", type=Path, default=INTO)
    parser.add_argument(
        "--base", type=Path, default=Path.home() / ".cache" / "synapsed" / "recording", help="homes and projects"
    )
    options = parser.parse_args(arguments)
    netns.enter()
    for cli in options.cli or RECORDED:
        for scenario in options.only:
            if is_possible(cli, scenario):
                record(cli, scenario, options.into, options.base / cli)


if __name__ == "__main__":
    main()
