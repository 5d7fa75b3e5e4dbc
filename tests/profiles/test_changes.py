"""Differences of a profile, and which of them decide what is run or typed."""

import pytest

from synapsed.profiles.changes import READING, changes
from synapsed.profiles.profile import Profile

BEFORE = Profile.model_validate({"name": "fake", "command": "sh", "args": ["-i"], "busy": {"screen": ["^busy"]}})


def changed(**keys: object) -> list[tuple[str, bool]]:
    data = BEFORE.model_dump(mode="json", exclude_defaults=True) | keys
    return [(change.key, change.runs) for change in changes(BEFORE, Profile.model_validate(data))]


def test_nothing_changed() -> None:
    assert changed() == []


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({"command": "env"}, [("command", True)]),
        ({"args": ["-i", "-x"]}, [("args", True)]),
        ({"env": {"PATH": "/tmp"}}, [("env.PATH", True)]),
        ({"unset_env": ["PATH"]}, [("unset_env", True)]),
        ({"mcp": {"args": ["x"]}}, [("mcp.args", True)]),
        ({"version": {"args": ["x"]}}, [("version.args", True)]),
        ({"interrupt": {"keys": "rm -rf ~\r"}}, [("interrupt.keys", True)]),
        ({"delivery": {"submit": "x"}}, [("delivery.submit", True)]),
        ({"rights": ["stop_agents"]}, [("rights", True)]),
        ({"model": True}, [("model", True)]),
        ({"versions": [{"below": "2.0", "args": []}]}, [("versions", True)]),
        ({"versions": [{"below": "2.0", "busy": {"screen": ["x"]}}]}, [("versions", False)]),
        ({"busy": {"screen": ["^works"]}}, [("busy.screen", False)]),
        ({"verified": "3.0"}, [("verified", False)]),
        ({"description": "x"}, [("description", False)]),
    ],
)
def test_what_changed_and_whether_it_runs(keys: dict[str, object], told: list[tuple[str, bool]]) -> None:
    assert changed(**keys) == told


def test_of_a_new_profile_all_is_told() -> None:
    assert {(change.key, change.runs) for change in changes(None, BEFORE)} == {
        ("command", True),
        ("args", True),
        ("busy.screen", False),
    }


def test_what_is_run_is_shown_to_its_end_and_hides_no_letter() -> None:
    text = "x" * 5000 + "\u202e; rm"
    after = BEFORE.model_copy(update={"args": [text], "description": "d" * 5000})
    shown = {change.key: change.after or "" for change in changes(BEFORE, after)}
    assert shown["args"].endswith('\\u202e; rm"]')
    assert len(shown["description"]) < 500


def test_every_key_that_only_reads_is_one() -> None:
    assert Profile.model_fields.keys() >= READING
