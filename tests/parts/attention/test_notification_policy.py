"""Whether a person is told of an item, and in which words."""

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from synapsed.config.config_files import load_config
from synapsed.config.paths import Paths
from synapsed.errors import ConfigError
from synapsed.interfaces import ConfigChange
from synapsed.model.attention import AttentionItem
from synapsed.model.task import PromptOption
from synapsed.parts.attention.face import FACE
from synapsed.parts.attention.notification_policy import HOLD_S, QUESTION_MAX, Now, notice, verdict
from synapsed.parts.attention.notify import NotifyConfig, is_quiet
from synapsed.parts.config import config_with
from synapsed.supervisor.reload import differences

YES_NO = [PromptOption(key="1", label="Yes"), PromptOption(key="2", label="No")]
NOON = datetime.fromisoformat("2026-06-01T12:00:00+02:00")


def item(**changes: Any) -> AttentionItem:
    made = AttentionItem(
        id="i1", agent="api", agent_id="synapse-claude-8100", cwd="/src/api", kind="permission", question="Run ls?",
        command="ls -la", options=YES_NO, since="2026-06-01T10:00:00Z", prompt_id="p1", prompt_type="permission",
    )  # fmt: skip
    return made.model_copy(update=changes)


def config(**changes: Any) -> NotifyConfig:
    sinks = {"desk": {"type": "desktop"}}
    return NotifyConfig.model_validate({"sinks": sinks} | changes)


def rule(**changes: Any):
    made = config(**changes)
    return made.rule(made.sinks["desk"])


def now(**changes: Any) -> Now:
    return Now(**({"open_s": 60.0, "idle_s": 0.0, "local": NOON} | changes))


@pytest.mark.parametrize(
    ("told", "given", "at", "expected"),
    [
        ({}, {}, {}, "tell"),
        ({"looked_at": True}, {}, {}, "wait"),
        ({}, {}, {"open_s": HOLD_S / 2}, "wait"),
        ({}, {"idle": 120}, {"idle_s": 119}, "wait"),
        ({}, {"idle": 120}, {"idle_s": 120}, "tell"),
        ({}, {"quiet": ["11:00-13:00"]}, {}, "wait"),
        ({}, {"quiet": ["13:00-14:00"]}, {}, "tell"),
        ({}, {"kinds": ["question"]}, {}, "never"),
        ({}, {"agents": ["web", "a?i"]}, {}, "tell"),
        ({}, {"agents": ["synapse-claude-*"]}, {}, "tell"),
        ({}, {"agents": ["web"]}, {}, "never"),
    ],
)
def test_when_a_sink_is_told(told: dict[str, Any], given: dict[str, Any], at: dict[str, Any], expected: str) -> None:
    assert verdict(item(**told), rule(**given), now(**at)) == expected


def test_a_sink_may_have_rules_of_its_own() -> None:
    desk = {"type": "desktop", "kinds": ["permission"], "quiet": [], "content": "full"}
    made = rule(kinds=["finished"], quiet=["00:00-00:00"], sinks={"desk": desk})
    assert (made.kinds, made.quiet, made.content, made.agents) == (["permission"], [], "full", ["*"])


@pytest.mark.parametrize(
    ("hours", "at", "quiet"),
    [
        ("22:00-07:00", "21:59", False), ("22:00-07:00", "22:00", True), ("22:00-07:00", "03:00", True),
        ("22:00-07:00", "07:00", False), ("12:00-13:00", "12:30", True), ("12:00-13:00", "13:00", False),
        ("00:00-00:00", "15:00", True),
    ],
)  # fmt: skip
def test_quiet_hours(hours: str, at: str, quiet: bool) -> None:
    assert is_quiet([hours], datetime.fromisoformat(f"2026-06-01T{at}:00+02:00")) is quiet


def test_how_much_leaves_this_machine() -> None:
    kind = notice(item(), "kind")
    assert (kind.title, kind.body, kind.answers) == ("api asks for a permission", "", None)
    assert set(kind.data) == {"id", "agent", "kind", "since"}
    question = notice(item(), "question")
    assert question.body == "Run ls?"
    assert question.data["question"] == "Run ls?"
    assert "command" not in question.data
    full = notice(item(), "full")
    assert full.body.split("\n") == ["Run ls?", "$ ls -la", "in /src/api", "1: Yes", "2: No"]
    assert (full.data["command"], full.data["cwd"]) == ("ls -la", "/src/api")


def test_yes_and_no_only_where_all_is_shown() -> None:
    assert notice(item(), "full").answers == ("1", "2")
    assert notice(item(), "question").answers is None, "the command is not told"
    assert notice(item(command=None, diff="+x"), "question").answers is None
    assert notice(item(question="Run ls -la?"), "question").answers == ("1", "2")
    assert notice(item(command=None), "question").answers == ("1", "2")
    assert notice(item(question="x" * (QUESTION_MAX + 1)), "full").answers is None
    assert notice(item(command="x" * (QUESTION_MAX + 1)), "question").answers is None
    assert notice(item(kind="question"), "full").answers is None
    assert notice(item(options=[PromptOption(key="1", label="Later")]), "full").answers is None


def test_what_nobody_would_see_is_made_visible() -> None:
    hostile = "rm -rf \u202ex\x00\x1b[8m\x9b\u200b\ud800"
    told = notice(item(question=hostile, command=hostile, options=[PromptOption(key="1", label=hostile)]), "full")
    shown = "rm -rf \\u202ex\\x00\\x1b[8m\\x9b\\u200b\\ud800"
    assert told.body.split("\n") == [shown, f"$ {shown}", "in /src/api", f"1: {shown}"]
    assert hostile not in str(told.data)
    assert "tab\tline\nüñ 👩‍💻" in notice(item(question="tab\tline\nüñ 👩‍💻"), "question").body


def test_a_clock_that_was_set_back_puts_nothing_off() -> None:
    assert verdict(item(), rule(), now(open_s=-3600.0)) == "tell"
    assert verdict(item(), rule(), now(open_s=-0.1)) == "wait"


HOOK = '[notify.sinks.hook]\ntype = "webhook"\nurl = "https://example.com"\n'
WRONG = {
    '[notify]\nkinds = ["permision"]': "notify.kinds",
    '[notify]\nquiet = ["22-7"]': "two times of a day",
    '[notify.sinks.x]\ntype = "pager"': "pager",
    '[notify.sinks.x]\ntype = "desktop"\nurl = "https://example.com"': "url",
    '[notify.sinks."a b"]\ntype = "desktop"': "cannot name a place to be told",
    HOOK: "secret_file",
    '[notify.sinks.n]\ntype = "ntfy"': "topic",
    '[notify.sinks.n]\ntype = "ntfy"\ntopic = "t"\nanswers = "https://me.example.com"': "nobody can approve",
    '[notify.sinks.m]\ntype = "mail"\nhost = "h"\nsender = "a"\nto = ["b@c"]': "mail address",
    '[notify.sinks.m]\ntype = "mail"\nhost = "h"\nsender = "a@b"\nto = ["b@c"]\nuser = "u"': "password",
    '[notify.sinks.m]\ntype = "mail"\nhost = "h"\nsender = "a@b"\nto = ["b@c"]\nuser = "u"\npassword_env = "P"\n'
    'security = "none"': "without encryption",
}


MODEL = config_with([FACE])


@pytest.mark.parametrize("text", WRONG)
def test_what_is_wrong_is_told_with_its_place(tmp_path: Path, text: str) -> None:
    paths = Paths.from_environ({"SYNAPSED_HOME": str(tmp_path), "HOME": str(tmp_path)})
    paths.config.mkdir(parents=True)
    paths.config_file.write_text(text)
    with pytest.raises(ConfigError) as raised:
        load_config(paths, MODEL)
    assert WRONG[text] in raised.value.message
    assert "config.toml" in raised.value.message


@pytest.mark.parametrize(
    ("new", "where"), [({"sinks": {"desk": {"type": "desktop"}}}, "desk"), ({"content": "full"}, "nowhere")]
)
def test_a_reload_tells_where_a_person_is_told(new: dict[str, object], where: str) -> None:
    changes = differences([], MODEL(), MODEL.model_validate({"notify": new}), lambda _: None, lambda _: None)
    assert changes == [ConfigChange(None, "update", f"[notify] changed: you are told at {where}")]


def test_an_edit_is_told_whole_or_without_buttons() -> None:
    told = notice(item(command=None, diff="--- f\n+++ f\n-a\u202e\n+b"), "full")
    assert "-a\\u202e\n+b\nin /src/api" in told.body
    assert (told.data["command"], told.data["diff"]) == (None, "--- f\n+++ f\n-a\\u202e\n+b")
    assert told.answers is not None
    long = notice(item(command=None, diff="x" * (QUESTION_MAX + 1)), "full")
    assert long.answers is None
