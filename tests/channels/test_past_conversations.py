"""Conversations found again by the programs' own files."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from synapsed.channels.past_conversations import LISTED_MAX, PROMPT_SHOWN, PastConversation, find_conversations
from synapsed.profiles.library import ProfileLibrary
from synapsed.profiles.profile import Profile

ID = "01a20054-6513-7f31-9c65-a9e32e12376e"
OTHER = "93858a56-b8a3-48e1-898a-e8fa529a6862"


@pytest.fixture(scope="module")
def library() -> ProfileLibrary:
    return ProfileLibrary.standard(Path("/nonexistent"))


def write(path: Path, *records: dict[str, Any] | str, at: float = 1000.0) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [record if isinstance(record, str) else json.dumps(record) for record in records]
    path.write_text("".join(f"{line}\n" for line in lines))
    os.utime(path, (at, at))
    return path


def claude(home: Path, id_: str, *, name: str = "", prompt: str = "Hello\n there", at: float = 1000.0) -> Path:
    said = {
        "type": "user",
        "isSidechain": False,
        "promptSource": "typed",
        "message": {"role": "user", "content": prompt},
        "cwd": "/work/a",
        "sessionId": id_,
    }
    records = [{"type": "mode", "sessionId": id_}, "no json", {"type": "user", "isMeta": True, "sessionId": id_}, said]
    return write(home / ".claude" / "projects" / "-work-a" / f"{name or id_}.jsonl", *records, at=at)


def codex(home: Path, *, at: float = 2000.0) -> Path:
    meta = {"type": "session_meta", "payload": {"id": ID, "cwd": "/work/b"}}
    context = {"type": "response_item", "payload": {"id": "msg_1", "type": "message", "role": "user", "content": []}}
    item = {"type": "UserMessage", "content": [{"type": "text", "text": "Do it"}]}
    said = {"type": "event_msg", "payload": {"type": "item_completed", "item": item}}
    folder = home / ".codex" / "sessions" / "2026" / "01" / "02"
    return write(folder / f"rollout-2026-01-02T03-04-05-{ID}.jsonl", meta, context, said, at=at)


def gemini(home: Path, *, kind: str = "main", said: bool = True, at: float = 3000.0) -> Path:
    head = {"sessionId": OTHER, "kind": kind}
    told = {"id": "0", "type": "user", "content": [{"text": "<hook_context>You are an agent.</hook_context>"}]}
    prompt = [told, *([{"id": "1", "type": "user", "content": [{"text": "Look"}]}] if said else [])]
    project = home / ".gemini" / "tmp" / "c"
    path = write(project / "chats" / f"session-2026-{kind}.jsonl", head, *prompt, at=at)
    (project / ".project_root").write_text("/work/c\n")
    return path


def pi(folder: Path, *, at: float = 4000.0) -> Path:
    """As pi 1.6.0 writes it, without what is not read."""
    head = {"type": "session", "version": 3, "id": ID, "timestamp": "2026-01-02T03:04:05.678Z", "cwd": "/work/d"}
    model = {"type": "model_change", "id": "1a2b3c4d", "parentId": None, "provider": "p", "modelId": "m"}
    said = {"role": "user", "content": [{"type": "text", "text": "Mend it"}], "timestamp": 1767323045678}
    prompt = {"type": "message", "id": "5e6f7a8b", "parentId": "1a2b3c4d", "message": said}
    return write(
        folder / "sessions" / "--work-d--" / f"2026-01-02T03-04-05-678Z_{ID}.jsonl", head, model, prompt, at=at
    )


def every(library: ProfileLibrary) -> list[Profile]:
    return [library.get(name) for name in library.names()]


def test_the_newest_is_first(library: ProfileLibrary, tmp_path: Path) -> None:
    claude(tmp_path, OTHER)
    codex(tmp_path)
    gemini(tmp_path)
    assert find_conversations(every(library), tmp_path) == [
        PastConversation(profile="gemini", id=OTHER, cwd="/work/c", updated=3000.0, prompt="Look"),
        PastConversation(profile="codex", id=ID, cwd="/work/b", updated=2000.0, prompt="Do it"),
        PastConversation(profile="claude", id=OTHER, cwd="/work/a", updated=1000.0, prompt="Hello there"),
    ]
    assert [one.profile for one in find_conversations(every(library), tmp_path, "/work/b")] == ["codex"]


def test_a_folders_are_found_behind_as_many_others_as_are_listed(library: ProfileLibrary, tmp_path: Path) -> None:
    for number in range(LISTED_MAX + 1):
        claude(tmp_path, f"{number:08d}{ID[8:]}", at=2000.0 + number)
    old = claude(tmp_path, OTHER)
    old.write_text(old.read_text().replace("/work/a", "/work/b"))
    os.utime(old, (1000.0, 1000.0))
    assert len(find_conversations(every(library), tmp_path)) == LISTED_MAX
    assert [one.id for one in find_conversations(every(library), tmp_path, cwd="/work/b")] == [OTHER]


def test_what_is_no_conversation_to_go_on_with_is_left_out(library: ProfileLibrary, tmp_path: Path) -> None:
    claude(tmp_path, OTHER, name="agent-1234")  # a subagent's, which has its parent's id
    claude(tmp_path, ID, prompt="")
    gemini(tmp_path, kind="subagent")
    gemini(tmp_path, said=False)
    (tmp_path / ".claude" / "projects" / "x" / "folder.jsonl").mkdir(parents=True)
    write(tmp_path / ".claude" / "projects" / "x" / "empty.jsonl")
    assert find_conversations(every(library), tmp_path) == []


def test_a_resumed_conversation_is_one_and_a_long_prompt_short(library: ProfileLibrary, tmp_path: Path) -> None:
    first = gemini(tmp_path)
    write(first.with_name("session-2027-main.jsonl"), *map(json.loads, first.read_text().splitlines()), at=9000.0)
    claude(tmp_path, OTHER, prompt="word " * 100_000)
    found = find_conversations(every(library), tmp_path)
    assert [(one.profile, one.updated) for one in found] == [("gemini", 9000.0), ("claude", 1000.0)]
    assert len(found[1].prompt) <= PROMPT_SHOWN


def test_those_of_a_program_whose_newer_versions_alone_have_them(library: ProfileLibrary, tmp_path: Path) -> None:
    found = PastConversation(profile="pi", id=ID, cwd="/work/d", updated=4000.0, prompt="Mend it")
    pi(tmp_path / ".pi" / "agent")
    assert find_conversations(every(library), tmp_path) == [found]
    pi(tmp_path / "elsewhere")
    moved = {"PI_CODING_AGENT_DIR": str(tmp_path / "elsewhere")}
    assert find_conversations([library.get("pi")], tmp_path / "none", env=moved) == [found]


def test_nothing_there(library: ProfileLibrary, tmp_path: Path) -> None:
    assert find_conversations(every(library), tmp_path / "nowhere") == []


def test_they_are_found_where_the_program_was_told_to_keep_them(library: ProfileLibrary, tmp_path: Path) -> None:
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    claude(home, OTHER)
    codex(home)
    profiles = [library.get("claude"), library.get("codex")]
    assert [one.id for one in find_conversations(profiles, home)] == [ID, OTHER]
    (home / ".claude").rename(elsewhere)
    assert [one.id for one in find_conversations(profiles, home)] == [ID]
    env = {"CLAUDE_CONFIG_DIR": str(elsewhere), "CODEX_HOME": ""}
    assert [one.id for one in find_conversations(profiles, home, env=env)] == [ID, OTHER]
    assert find_conversations(profiles, home, env={**env, "CODEX_HOME": str(tmp_path / "nothing")})[0].id == OTHER
