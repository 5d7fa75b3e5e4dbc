"""What a tool call is about, by its input, for every name that programs have for it; and which dialog shows it."""

import json
from typing import Any

import pytest

from synapsed.model.about import COMMAND_MAX, DIFF_MAX, About, about, command_in, edits_in_blocks

LONGEST = "this line is the longest of the whole edit, and it is the one that goes: git status --short"
DIFF = f"--- a/f.txt\n+++ a/f.txt\n-{LONGEST}\n+one\n+two"
PATCH = "*** Begin Patch\n*** Update File: f.txt\n@@\n-old line\n+new line\n*** End Patch"


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"file_path": "a/f.txt", "old_string": LONGEST, "new_string": "one\ntwo"}, DIFF),
        ({"filePath": "a/f.txt", "oldString": LONGEST, "newString": "one\ntwo"}, DIFF),
        ({"path": "a/f.txt", "edits": [{"old_text": LONGEST, "new_text": "one\ntwo"}]}, DIFF),
        ({"file_path": "n.txt", "content": "one\ntwo\n"}, "+++ n.txt\n+one\n+two"),
        ({"file_path": "n.txt", "content": ""}, "+++ n.txt"),
        ({"command": PATCH}, PATCH),
        ({"patchText": PATCH}, PATCH),
        ({"filepath": "f.txt", "diff": "@@ -1 +1 @@\n-a\n+b"}, "f.txt\n@@ -1 +1 @@\n-a\n+b"),
        (
            {
                "changes": [
                    {"path": "f", "kind": {"type": "delete"}, "diff": "a\nb"},
                    {"path": "g", "kind": "add", "diff": "c"},
                ]
            },
            "delete f\n-a\n-b\nadd g\n+c",
        ),
        (
            {"changes": [{"path": "f", "kind": {"type": "update", "move_path": "h"}, "diff": "@@\n-a"}]},
            "update f → h\n@@\n-a",
        ),
    ],
)
def test_an_edit_is_its_diff_and_no_command(given: dict[str, Any], told: str) -> None:
    assert about(given) == About(diff=told)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"command": "touch x", "description": LONGEST}, "touch x"),
        ({"cmd": ["sh", "-c", "touch 'a b'"]}, "sh -c 'touch '\"'\"'a b'\"'\"''"),
        ({"command": "cat <<'EOF'\none\nEOF"}, "cat <<'EOF'\none\nEOF"),
        ({"command": "x" * (COMMAND_MAX + 1)}, None),
        ({"path": "/etc/passwd"}, None),
        ({"command": 7, "cmd": []}, None),
        ({"content": "without a path"}, None),
        ({}, None),
    ],
)
def test_a_command_is_what_the_program_calls_so(given: dict[str, Any], told: str | None) -> None:
    assert about(given) == About(command=told)


def test_a_diff_that_is_too_long_says_what_is_missing() -> None:
    diff = about({"path": "f", "content": "\n".join(["some words"] * 20_000)}).diff
    assert diff is not None
    last = diff.rpartition("\n")[2]
    assert len(diff) < DIFF_MAX + 100
    assert last == f"… {20_000 * 12 + len('+++ f') - (len(diff) - len(last) - 1)} more characters are not shown"


def test_a_large_edit_is_told_whole_without_being_compared() -> None:
    old, new = "\n".join(f"{n} old" for n in range(2000)), "\n".join(f"{n} new" for n in range(2000))
    diff = about({"path": "f", "old_string": old, "new_string": new}).diff
    assert diff is not None
    assert (diff.count("\n-"), diff.count("\n+")) == (2000, 2001)


def test_blocks_of_an_edit() -> None:
    blocks = [
        {"type": "diff", "path": "n", "oldText": None, "newText": "a"},
        {"type": "content"},
        {"type": "diff", "path": "d", "oldText": "gone", "newText": ""},
        {"type": "diff", "path": "odd", "oldText": 1, "newText": {}},
    ]
    assert edits_in_blocks(blocks) == About(diff="+++ n\n+a\n--- d\n+++ d\n-gone\n+++ odd")
    assert edits_in_blocks([{"type": "content"}]) == About()


def test_a_command_in_one_piece() -> None:
    assert command_in(["git", "commit", "-m", "two words"]) == "git commit -m 'two words'"
    assert command_in(["git", 1]) is None


def test_what_is_no_input_of_any_program() -> None:
    odd: list[Any] = [{"edits": [1, {}]}, {"path": "f", "edits": 3}, {"changes": [1, {"path": 2}]}, {"diff": ["x"]}]
    assert [about(each) for each in odd] == [About()] * 4
    assert json.dumps(odd)
