"""Differences of a profile, and which of them decide what is run or typed."""

from datetime import date
from pathlib import Path

import pytest

from synapsed.parts.profile_tools.changes import OTHER, READING, Change, changes
from synapsed.profiles.library import ProfileLibrary
from synapsed.profiles.profile import Profile

BEFORE = Profile.model_validate({"name": "fake", "command": "sh", "args": ["-i"], "busy": {"screen": ["^busy"]}})

NOTES = [(f"prompts.{key}", True) for key in ("denial_note", "limit_note", "menus", "refusal_note")]


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
        ({"version": {}}, [("version", True)]),
        ({"limit": [{"pattern": "Do you want", "answer": "1"}]}, [("limit", True)]),
        ({"prompts": {"refusal_note": "x", "denial_note": "y", "limit_note": "z", "menus": False}}, NOTES),
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
    assert shown["args[0]"].endswith('\\u202e; rm"')
    assert len(shown["description"]) < 500


DIALOG = {"type": "permission", "when": ["Do you want"], "option": "(?P<key>[0-9])\\. (?P<label>.*)"}


def profile(**keys: object) -> Profile:
    return Profile.model_validate({"name": "fake", "command": "sh", **keys})


@pytest.mark.parametrize(
    "keys",
    [
        {"aliases": {"deny": "1"}},
        {"keys": {"1": "rm\r"}},
        {"options": [{"key": "1", "label": "No", "keys": "rm\r"}]},
        {"submit": "\r"},
        {"leave": "\r"},
        {"type": "trust"},
        {"option": "(?P<key>[1-9])\\. (?P<label>.*)"},
        {"when": ["Do"]},
    ],
)
def test_what_answers_a_dialog_counts_as_what_is_typed(keys: dict[str, object]) -> None:
    others = [{"type": "text", "when": [f"{number}" * 100]} for number in range(9)]
    before, after = (profile(prompts={"dialogs": [*others, dialog]}) for dialog in (DIALOG, DIALOG | keys))
    told = changes(before, after)
    assert [(change.key.split(".")[1], change.runs) for change in told] == [("dialogs[9]", True)]
    assert told[0].before != told[0].after
    assert len(told[0].after or "") < 100, "the other dialogs are not shown again"


def test_an_item_more_is_shown_alone() -> None:
    others = [{"type": "text", "when": [f"{number}" * 100]} for number in range(9)]
    before = profile(prompts={"dialogs": others})
    after = profile(prompts={"dialogs": [*others[:4], DIALOG, *others[4:]]})
    assert {change.key.rpartition(".")[0] for change in changes(before, after)} == {"prompts.dialogs[4]"}


def test_what_is_long_is_shown_from_where_it_differs() -> None:
    told = changes(profile(description="d" * 900 + "a"), profile(description="d" * 900 + "b"))
    assert told[0].before != told[0].after


HOOKS = {"adapter": "hooks"}


@pytest.mark.parametrize(
    ("before", "after", "key"),
    [
        ({}, {"version": {}}, "version"),
        ({"channels": {"h": HOOKS}}, {"channels": {"h": HOOKS | {"files": {"s.json": {}}}}}, "channels.h.files.s.json"),
        ({"mcp": {"files": {"s.json": {"x": True}}}}, {"mcp": {"files": {"s.json": {"x": 1}}}}, "mcp.files.s.json.x"),
        ({"mcp": {"files": {"s.json": {"x": {}}}}}, {"mcp": {"files": {"s.json": {}}}}, "mcp.files.s.json.x"),
    ],
)
def test_an_empty_table_and_a_number_for_true_are_changes(
    before: dict[str, object], after: dict[str, object], key: str
) -> None:
    assert [(change.key, change.runs) for change in changes(profile(**before), profile(**after))] == [(key, True)]


def test_two_that_differ_by_what_is_no_json_are_never_silent() -> None:
    day = date(2026, 1, 2)
    either = [profile(mcp={"files": {"s.json": {"x": value}}}) for value in (day, day.isoformat())]
    assert changes(*either) == [Change(OTHER, None, None, runs=True)]


def read(folder: Path, text: str) -> Profile:
    (folder / "fake.toml").write_text(text)
    return ProfileLibrary([folder]).get("fake")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([("1.0", "evil"), ("1.0", "safe")], [("1.0", "safe"), ("1.0", "evil")]),
        ([("1.0", "safe"), ("2.0", "evil")], [("1.0", "evil"), ("2.0", "evil")]),
        ([("1.0", "safe"), ("2.0", "evil")], [("1.5", "safe"), ("2.0", "evil")]),
        ([("1.0", "safe")], [("1.0", "safe"), ("1.0", "safe"), ("0.1", "safe")]),
    ],
)
def test_variants_are_compared_by_what_then_counts(
    before: list[tuple[str, str]], after: list[tuple[str, str]], tmp_path: Path
) -> None:
    texts = [
        "".join(f'[[versions]]\nsince = "{since}"\nargs = ["{word}"]\n' for since, word in variants)
        for variants in (before, after)
    ]
    told = changes(*(read(tmp_path, f'command = "sh"\n{text}') for text in texts))
    assert [change for change in told if change.key.startswith("from ") and change.runs]


def test_variants_that_say_the_same_another_way_run_nothing_else(tmp_path: Path) -> None:
    once = '[[versions]]\nsince = "1.0"\nargs = ["x"]\n'
    told = changes(*(read(tmp_path, f'command = "sh"\n{text}') for text in (once, once * 2)))
    assert [(change.key, change.runs) for change in told] == [("versions", False)]


def test_every_key_that_only_reads_is_one() -> None:
    assert Profile.model_fields.keys() >= READING
