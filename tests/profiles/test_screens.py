"""The built-in profiles' patterns against recordings of the real programs, at every moment that a recording marks."""

import json
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from synapsed.errors import InvalidChoice
from synapsed.profiles.library import ProfileLibrary
from synapsed.profiles.profile import Profile
from synapsed.profiles.screen_spec import Signs
from synapsed.terminal.composer import ComposerState, read_composer
from synapsed.terminal.emulated_screen import Screen
from synapsed.terminal.prompts import Asked, find_prompt, keys_for
from synapsed.terminal.snapshot import ScreenSnapshot
from synapsed.terminal.verdict import screen_sign, title_sign

pytestmark = pytest.mark.recorded

RECORDINGS = Path(__file__).parent.parent / "recordings"

RESTING = ("ready", "answered", "answered again", "after interrupt", "after error", "after rejection", "after trust")
WORKING = ("streaming", "busy", "held", "retrying")
DRAFTS = ("draft", "pasted two lines")


@dataclass(frozen=True)
class Moment:
    profile: Profile
    scenario: str
    label: str
    screen: ScreenSnapshot

    @property
    def asked(self) -> Asked | None:
        return find_prompt(self.profile.prompts, self.screen)

    @property
    def composer(self) -> ComposerState:
        return read_composer(self.profile.composer, self.screen)

    def has(self, pattern: str) -> bool:
        return any(re.search(pattern, line) for line in self.screen.lines)


def _sign(signs: Signs, screen: ScreenSnapshot) -> str | None:
    return title_sign(signs, screen) or screen_sign(signs, screen)


def _moments(*labels: str, scenario: str | None = None) -> list[object]:
    """Parameters: every moment of the recordings with one of these labels."""
    library = ProfileLibrary.standard(RECORDINGS / "no user profiles")
    found: list[object] = []
    for path in sorted(RECORDINGS.glob("*-[0-9]*/*.json")):
        record = json.loads(path.read_text())
        if scenario is not None and path.stem != scenario:
            continue
        for n, (_, offset, label) in enumerate(record["marks"]):
            if label in labels:
                name = f"{record['cli']}-{path.stem}-{n}"
                found.append(
                    pytest.param((library.get(record["cli"]).at(record["version"]), path, offset, label), id=name)
                )
    return found


@pytest.fixture
def moment(request: pytest.FixtureRequest) -> Moment:
    profile, path, offset, label = request.param
    screen = Screen(120, 40)
    screen.feed(path.with_suffix(".raw").read_bytes()[:offset])
    return Moment(profile, path.stem, label, screen.snapshot())


@pytest.mark.parametrize("moment", _moments(*RESTING), indirect=True)
def test_program_at_rest_asks_nothing_and_takes_a_message(moment: Moment) -> None:
    if (moment.profile.name, moment.scenario, moment.label) == ("gemini", "limit", "after error"):
        assert moment.asked is not None  # whether to try on: it does not rest
        return
    assert moment.asked is None
    assert _sign(moment.profile.waiting, moment.screen) is None
    assert _sign(moment.profile.busy, moment.screen) is None
    early = moment.scenario == "interrupt-early" and moment.label == "after interrupt"
    gives_back = early and moment.profile.name == "claude"  # it puts a prompt that had no answer into the composer
    assert moment.composer.state == ("draft" if gives_back else "empty")


@pytest.mark.parametrize("moment", _moments(*WORKING), indirect=True)
def test_program_at_work_asks_nothing_and_shows_that_it_works(moment: Moment) -> None:
    assert moment.asked is None
    assert _sign(moment.profile.waiting, moment.screen) is None
    assert _sign(moment.profile.busy, moment.screen) is not None


@pytest.mark.parametrize("moment", _moments(*DRAFTS), indirect=True)
def test_draft_of_a_person_is_seen(moment: Moment) -> None:
    assert moment.asked is None
    assert moment.composer.state == "draft"


PERMISSIONS = [p for name in ("accept", "reject") for p in _moments("dialog settled", scenario=name)]


@pytest.mark.parametrize("moment", PERMISSIONS, indirect=True)
def test_permission_dialog_is_read_and_deny_denies(moment: Moment) -> None:
    asked = moment.asked
    assert asked is not None
    assert asked.dialog is not None
    assert asked.prompt.type == "permission"
    keys = {option.key: option.label for option in asked.prompt.options}
    assert len(keys) >= 3
    for word in ("no", "n", "deny", "reject"):
        _, chosen = keys_for(asked, word)
        assert chosen in asked.dialog.refusal
        assert keys[chosen].startswith(("No", "Reject"))
    for word in ("yes", "y", "allow", "approve"):
        _, chosen = keys_for(asked, word)
        assert chosen is not None
        assert keys[chosen].startswith(("Yes", "Allow once"))
        assert chosen not in asked.dialog.refusal
    with pytest.raises(InvalidChoice):
        keys_for(asked, "perhaps")


@pytest.mark.parametrize("moment", PERMISSIONS, indirect=True)
def test_permission_dialog_says_what_it_is_about(moment: Moment) -> None:
    assert moment.asked is not None
    assert "made-by-tool" in moment.asked.prompt.prompt
    assert "Tip:" not in moment.asked.prompt.prompt
    assert "───" not in moment.asked.prompt.prompt


TRUSTS = _moments("dialog", "dialog settled", scenario="trust")


@pytest.mark.parametrize("moment", TRUSTS, indirect=True)
def test_trust_dialog(moment: Moment) -> None:
    asked = moment.asked
    assert asked is not None
    assert asked.prompt.type == "trust"
    labels = {option.key: option.label for option in asked.prompt.options}
    yes, no = (keys_for(asked, word)[1] for word in ("yes", "no"))
    assert yes is not None
    assert no is not None
    assert "rust" in labels[yes]
    assert labels[no].startswith(("No", "Don't", "Back"))


@pytest.mark.parametrize("moment", _moments("answered", scenario="quotes"), indirect=True)
def test_answer_that_quotes_dialogs_and_errors_is_prose(moment: Moment) -> None:
    assert moment.asked is None
    assert not any(moment.has(error.pattern) for error in moment.profile.error)


@pytest.mark.parametrize("moment", _moments("after error", scenario="error-400"), indirect=True)
def test_error_is_seen_in_the_programs_own_chrome(moment: Moment) -> None:
    if moment.profile.error:  # opencode's server tells them
        assert any(moment.has(error.pattern) for error in moment.profile.error)


@pytest.mark.parametrize("moment", _moments("answered", "answered again", scenario="turn"), indirect=True)
def test_no_error_where_there_was_none(moment: Moment) -> None:
    assert not any(moment.has(error.pattern) for error in moment.profile.error)
    assert moment.profile.interrupt.screen is not None
    assert not moment.has(moment.profile.interrupt.screen)


@pytest.mark.parametrize("moment", _moments("after interrupt", scenario="interrupt"), indirect=True)
def test_interrupt_is_confirmed_on_the_screen(moment: Moment) -> None:
    assert moment.profile.interrupt.screen is not None
    assert moment.has(moment.profile.interrupt.screen)


def test_there_are_recordings_of_every_program() -> None:
    programs = {path.name.rpartition("-")[0] for path in RECORDINGS.glob("*-[0-9]*")}
    assert {"claude", "codex", "gemini", "opencode"} <= programs
