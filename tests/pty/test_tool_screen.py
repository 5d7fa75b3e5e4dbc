"""Tool calls read off the screens of real programs, as they were recorded: theirs are told, and nothing else is."""

import json
from functools import partial
from pathlib import Path

import pytest

from synapsed.model.facts import ToolBegan, ToolsShown
from synapsed.parts.work_events.shown_calls import ShownCalls
from synapsed.profiles.channel_spec import ShownTools
from synapsed.profiles.library import ProfileLibrary
from synapsed.profiles.profile import Profile
from synapsed.pty.tool_screen import ToolScreen
from synapsed.pty.turn import PtyTurn
from synapsed.pty.turn_types import Phase, TurnState
from synapsed.terminal.delivery import type_message
from synapsed.terminal.observer import TerminalObserver
from tests.pty.playbook import delivery_of

pytestmark = pytest.mark.recorded

RECORDINGS = Path(__file__).parent.parent / "recordings"

_BOX = r"(?P<tool>Shell) +(?P<command>\S.*?)"
SHOWN = {
    "codex": ShownTools(
        tool="shell",
        started=[r"^• Running (?P<command>\S.*)$"],
        completed=[r"^• Ran (?P<command>\S.*)$(?:\n  └ (?P<output>.+)$)?"],
        failed=[r"^• (?P<error>Exited \(status \d+\)) (?P<command>\S.*)$"],
    ),
    "gemini": ShownTools(
        started=[rf"^╭─o──{_BOX}─+╮$", rf"^│ [o⊷]  {_BOX} +│$", rf"^│ \? {_BOX} +│$"],
        completed=[rf"^│ ✓  {_BOX} +│$"],
        failed=[rf"^│ [x-]  {_BOX} +│$"],
        denied=r"^│ -",
    ),
}
"""What a person would write who had neither hooks nor a server of them."""

TOUCH = "touch made-by-tool"
CALLS = {
    "accept": [f"started {TOUCH}", f"completed {TOUCH}"],
    "reject": [f"started {TOUCH}", f"failed {TOUCH}"],
    "unanswered": [f"started {TOUCH}", f"failed {TOUCH}"],
}
"""By scenario; in all others no tool is called."""

EVERY = [
    (cli, recording.stem, recording)
    for cli in SHOWN
    for recording in sorted(RECORDINGS.glob(f"{cli}-*/*.json"))
    if any(label == "submitted" for *_, label in json.loads(recording.read_text())["marks"])
]


def told(recording: Path, profile: Profile) -> list[str]:
    """All that is told while the recording plays."""
    raw, facts = recording.with_suffix(".raw").read_bytes(), json.loads(recording.read_text())
    begins = [offset for _, offset, label in facts["marks"] if label == "submitted"]
    turns = [request["user"] for request in facts["requests"] if request["side"] is None]
    turns = list(dict.fromkeys(turns))
    observer = TerminalObserver(profile, cols=facts["size"][0], rows=facts["size"][1], offset=0)
    shown: list[ToolsShown] = []
    screen, number, done = ToolScreen(profile, shown.append), -1, 0
    for now, offset in facts["chunks"]:
        if screen.due is not None and screen.due < now:  # the daemon looks then, though nothing has come
            screen.seen(observer.look(screen.due), screen.due)
        observer.feed(done, raw[done:offset], now)
        done = offset
        current = min(sum(offset > begin for begin in begins), len(turns)) - 1
        if current != number:
            number = current
            screen.last(observer.screen.snapshot().text(), now)
            screen.end()
            compose = partial(type_message, profile.delivery, bracketed=True)
            state = TurnState(phase=Phase.WORKING, submitted=True)
            told = delivery_of(turns[number], task=str(number))
            screen.begin(PtyTurn(profile, told, compose, state, channels_tell=False))
        if not observer.mid_frame(now):
            screen.seen(observer.look(now), now)
    screen.last(observer.screen.snapshot().text(), now)
    calls = ShownCalls()
    news = [one for fact in shown for one in calls.seen(fact)]
    return [
        f"{'started' if isinstance(one, ToolBegan) else 'completed' if one.error is None else 'failed'} "
        f"{one.input['command']}"
        for one in news
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cli", "scenario", "recording"), EVERY, ids=lambda value: "" if isinstance(value, Path) else value
)
def test_of_a_real_program_s_screens(cli: str, scenario: str, recording: Path) -> None:
    profile = ProfileLibrary.standard(Path("/nonexistent")).get(cli)
    profile = profile.model_copy(update={"channels": {}, "tools": SHOWN[cli]})
    assert told(recording, profile) == CALLS.get(scenario, [])
