"""What one turn costs in the daemon, counted and not timed: calls, changes of file, files, looks, commits.

python -m bench.trace [--source FOLDER] [--calls]        (FOLDER: another checkout; --calls: every call, in order)

Only functions of the package itself count, where they begin, in the loop's thread; so does the body of a generator
expression. A turn's stages end where a write is handed to the keeper (the text, then the key that submits it) and where
the task's completion is decided; what is done after that is told beside them.
"""

import argparse
import json
import os
import tempfile
import textwrap
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

from bench.figures import environment
from tests.support.daemon import Daemon, eventually

CONFIG = """
[api]
listen = "127.0.0.1:0"
agent_ports = false
[agents.dummy]
autostart = true
"""
TURN_S = 3.0
STAGES = ("HTTP body → text at the keeper", "→ submit key at the keeper", "→ completed", "after it")

HOOK = textwrap.dedent('''
    """Imported by the daemon at its start: writes every call from a send on, until its trace is asked for."""

    import json
    import os
    import sys
    import threading
    from pathlib import Path

    PACKAGE = os.environ["TRACED_PACKAGE"] + "/"
    WHERE = Path(os.environ["TRACE_FILE"])
    calls = []
    known = {}

    def profile(frame, event, _):
        code = frame.f_code
        if event != "call" or frame.f_lineno != code.co_firstlineno:  # a coroutine or a generator that goes on
            return
        name = known.get(code)
        if name is None:
            path = code.co_filename
            name = known[code] = (path.removeprefix(PACKAGE), code.co_qualname) if path.startswith(PACKAGE) else ()
        if not name:
            return
        if not calls and name[1] != "read_model":
            return
        job = ""
        if name[1] == "SqliteStore.commit":
            job = "+".join(
                [event.data.type for event in frame.f_locals["events"]]
                + [each for each in ("tasks", "turn", "turn_ended", "agents") if frame.f_locals.get(each)]
            )
        calls.append((*name, threading.current_thread() is threading.main_thread(), job))
        if name == ("api/routes/status.py", "status"):
            sys.setprofile(None)
            threading.setprofile_all_threads(None)
            WHERE.with_suffix(".new").write_text(json.dumps(calls))
            WHERE.with_suffix(".new").rename(WHERE)

    threading.setprofile_all_threads(profile)
    sys.setprofile(profile)
''')


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", type=Path, default=Path(__file__).parent.parent)
    parser.add_argument("--calls", action="store_true")
    wanted = parser.parse_args()
    calls = traced_turn(wanted.source.resolve())
    for stage, (name, part) in enumerate(zip(STAGES, stages(calls), strict=True)):
        print(f"{name:<32} {told(part)}")
        if wanted.calls:
            for file, function, _, job in part:
                print(f"    {stage} {file} {function} {job}")
    print(f"{'the whole turn':<32} {told([call for part in stages(calls)[:3] for call in part])}")
    print("commits:", "; ".join(call[3] for call in calls if call[3]))


def traced_turn(source: Path) -> list[list[Any]]:
    """Every call of the package from a send on: its file, its name, whether in the loop's thread, what it commits."""
    with tempfile.TemporaryDirectory(prefix="synapsed-trace-") as folder:
        home = Path(folder)
        trace = home / "trace.json"
        (home / "hook").mkdir()
        (home / "hook" / "sitecustomize.py").write_text(HOOK)
        environ = {
            **environment(),
            "PYTHONPATH": f"{home / 'hook'}{os.pathsep}{source}",
            "TRACED_PACKAGE": str(source / "synapsed"),
            "TRACE_FILE": str(trace),
        }
        running = Daemon(home / "home", environ=environ, config=CONFIG, source=source)
        try:
            running.start()
            running.ready("dummy")
            body = {"message": {"role": "user", "parts": [{"type": "text", "text": "echo one"}]}}
            running.post("/agents/dummy/tasks/send", body)
            time.sleep(TURN_S)  # whoever asked for it meanwhile would be counted too
            running.get("/agents/dummy/status")  # its call ends the trace
            eventually(trace.exists, "the trace is written")
            calls: list[list[Any]] = json.loads(trace.read_text())
            return calls
        finally:
            running.end()


def stages(calls: list[list[Any]]) -> list[list[list[Any]]]:
    """The calls of each of the `STAGES`."""
    ends = [n for n, call in enumerate(calls) if call[1] == "KeeperClient.write"][:2]
    ends.append(next(n for n, call in enumerate(calls) if call[1] == "completed"))
    bounds = [0, *(end + 1 for end in ends), len(calls)]
    return [calls[begin:end] for begin, end in pairwise(bounds)]


def told(part: list[list[Any]]) -> str:
    in_loop = [call for call in part if call[2]]
    changes = sum(one[0] != other[0] for one, other in pairwise(in_loop))
    looks = sum(call[1] in ("TerminalObserver.look", "RemoteStage.look") for call in part)
    judged = sum(call[1] in ("TerminalObserver._look", "RemoteStage._read_look") for call in part)
    commits = sum(call[1] == "SqliteStore.commit" for call in part)
    return (
        f"{len(in_loop):5} calls, {changes:4} changes of file, {len({call[0] for call in in_loop}):3} files, "
        f"{looks:2} looks ({judged} judged), {commits:2} commits"
    )


if __name__ == "__main__":
    main()
