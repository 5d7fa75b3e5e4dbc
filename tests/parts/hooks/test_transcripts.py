"""Transcripts of the real programs (recorded before a scripted model, shortened), read as their profiles say."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synapsed.channels import at_path, clean
from synapsed.parts.hooks import transcripts
from synapsed.parts.hooks.transcripts import TurnKey, TurnRead, locate, read_turn
from synapsed.profiles.channel_spec import Transcript
from synapsed.profiles.library import ProfileLibrary
from tests.channels.conftest import SAMPLES

FENCED = (
    "Here is the **function** you asked for:\n\n```python\ndef add(a: int, b: int) -> int:\n"
    '    """Sum of *two* numbers."""\n    return a + b\n```\n\n'
    "- it is `pure`\n- it has _no_ surprises\n\n1. first\n2. second"
)
PROMPTS = {
    "fenced": "Hello nonce-1 [[answer:fenced]]",
    "tool": "Run nonce-2 [[before:I will look first.]][[tool:shell:echo hi; touch f1]]",
    "refused": "Run nonce-3 [[tool:shell:touch f3]]",
    "interrupted": "Slow nonce-4 [[answer:lines200]][[slow:400]]",
    "failed": "Bad nonce-5 [[status:400]]",
}
PROGRAMS = ["claude", "codex", "gemini"]


def spec_of(library: ProfileLibrary, name: str) -> Transcript:
    spec = library.get(name).channels["hooks"].transcript
    assert spec is not None
    return spec


def seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def prompted_at(name: str, prompt: str) -> tuple[float, str | None]:
    """When the sample has the prompt, and the turn's id where it has one."""
    for line in (SAMPLES / f"{name}.jsonl").read_text().splitlines():
        record = json.loads(line)
        if prompt in line and record.get("type") in ("user", "response_item"):
            turn = record.get("promptId") or at_path(
                record, "payload.internal_chat_message_metadata_passthrough.turn_id"
            )
            return seconds(record["timestamp"]), turn
    raise AssertionError(f"{name} was never asked {prompt!r}")


def read(library: ProfileLibrary, name: str, case: str) -> TurnRead:
    prompt = PROMPTS[case]
    at, turn = prompted_at(name, prompt)
    found = read_turn(
        SAMPLES / f"{name}.jsonl", spec_of(library, name), TurnKey(since=at - 0.05, turn=turn, prompt=prompt)
    )
    assert found is not None
    return found


@pytest.mark.parametrize("name", PROGRAMS)
def test_answer_is_exact(library: ProfileLibrary, name: str) -> None:
    found = read(library, name, "fenced")
    assert found.answer == FENCED
    assert found.outcome == ("open" if name == "gemini" else "ended")
    assert found.progress == ()


@pytest.mark.parametrize("name", PROGRAMS)
def test_message_before_a_tool_call_is_progress(library: ProfileLibrary, name: str) -> None:
    found = read(library, name, "tool")
    assert [said.text for said in found.progress] == ["I will look first."]
    assert found.answer == "Answer to nonce-2."


@pytest.mark.parametrize("name", ["claude", "gemini"])
def test_refusal_ends_the_turn_without_an_answer(library: ProfileLibrary, name: str) -> None:
    assert read(library, name, "refused").outcome == "interrupted"


@pytest.mark.parametrize("name", PROGRAMS)
def test_interrupt(library: ProfileLibrary, name: str) -> None:
    assert read(library, name, "interrupted").outcome == "interrupted"


@pytest.mark.parametrize("name", PROGRAMS)
def test_error(library: ProfileLibrary, name: str) -> None:
    found = read(library, name, "failed")
    assert found.outcome == "failed"
    assert found.text is not None
    assert "scripted failure 400" in found.text


@pytest.mark.parametrize("name", PROGRAMS)
def test_turn_is_found_by_time_alone(library: ProfileLibrary, name: str) -> None:
    at, _ = prompted_at(name, PROMPTS["tool"])
    found = read_turn(SAMPLES / f"{name}.jsonl", spec_of(library, name), TurnKey(since=at - 0.1))
    assert found is not None
    assert found.answer == "Answer to nonce-2."


@pytest.mark.parametrize("name", PROGRAMS)
def test_turn_that_has_not_begun(library: ProfileLibrary, name: str) -> None:
    assert (
        read_turn(SAMPLES / f"{name}.jsonl", spec_of(library, name), TurnKey(since=seconds("2030-01-01T00:00:00Z")))
        is None
    )


@pytest.mark.parametrize("name", PROGRAMS)
def test_any_cut_of_the_file_is_read_without_a_word(library: ProfileLibrary, name: str, tmp_path: Path) -> None:
    whole = (SAMPLES / f"{name}.jsonl").read_bytes()
    at, turn = prompted_at(name, PROMPTS["tool"])
    key = TurnKey(since=at - 0.05, turn=turn, prompt=PROMPTS["tool"])
    path = tmp_path / "cut.jsonl"
    answers = set()
    for end in range(0, len(whole), 97):
        path.write_bytes(whole[:end])
        found = read_turn(path, spec_of(library, name), key)
        answers.add(found.answer if found is not None and found.outcome != "interrupted" else None)
    assert answers <= {None, "I will look first.", "Answer to nonce-2."}
    assert "Answer to nonce-2." in answers


def small(**more: Any) -> Transcript:
    lines = {
        "user": [{"when": {"role": ["user"]}, "text": "text"}],
        "assistant": [{"when": {"role": ["model"]}, "text": "text", "id": "id"}],
        "continues": [{"when": {"role": ["tool"]}}],
        "ended": [{"when": {"role": ["end"]}}],
    }
    return Transcript.model_validate({**lines, **more})


def write(path: Path, records: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def stamped(second: int) -> str:
    return f"2026-01-01T00:{second // 60:02d}:{second % 60:02d}.000Z"


SINCE = seconds(stamped(10))


def test_same_prompt_twice_is_two_turns(tmp_path: Path) -> None:
    records = [
        {"role": "user", "text": "again", "timestamp": stamped(1)},
        {"role": "model", "text": "first", "timestamp": stamped(2)},
        {"role": "user", "text": "again", "timestamp": stamped(10)},
        {"role": "model", "text": "second", "timestamp": stamped(11)},
    ]
    path = write(tmp_path / "t", records)
    for since, answer in ((SINCE, "second"), (seconds(stamped(1)), "first")):
        found = read_turn(path, small(), TurnKey(since=since, prompt="again"))
        assert found is not None
        assert found.answer == answer


def dated(days: int, second: int) -> str:
    return f"2026-01-{15 + days:02d}T00:00:{second:02d}.000Z"


@pytest.mark.parametrize("days", [-10, -1, 1, 10])
@pytest.mark.parametrize("prompt", [None, "new"])
def test_a_turn_is_not_one_before_whose_clock_was_set_since(tmp_path: Path, days: int, prompt: str | None) -> None:
    """Neither before its own record is written nor after it; also where the clock is set in the middle of it."""
    before = [
        {"role": "user", "text": "old", "timestamp": dated(0, 1)},
        {"role": "model", "text": "first", "timestamp": dated(0, 2)},
        {"role": "end", "timestamp": dated(0, 2)},
    ]
    begun = [*before, {"role": "user", "text": "new", "timestamp": dated(days, 10)}]
    spec, key = small(), TurnKey(since=seconds(dated(days, 10)), prompt=prompt)
    assert read_turn(write(tmp_path / "t", before), spec, key) is None
    found = read_turn(write(tmp_path / "t", begun), spec, key)
    assert found is not None
    assert (found.outcome, found.answer) == ("open", None)
    for now in (days, 0):
        answer = {"role": "model", "text": "second", "timestamp": dated(now, 11)}
        found = read_turn(
            write(tmp_path / "t", [*begun, answer, {"role": "end", "timestamp": dated(now, 12)}]), spec, key
        )
        assert found is not None
        assert (found.outcome, found.answer) == ("ended", "second")


def test_turn_that_waited_for_its_hook_is_found_by_its_id(tmp_path: Path) -> None:
    records = [
        {"role": "user", "text": "before", "turn": "1", "timestamp": stamped(1)},
        {"role": "model", "text": "first", "timestamp": stamped(2)},
        {"role": "user", "text": "go", "turn": "2", "timestamp": stamped(5)},
        {"role": "model", "text": "second", "timestamp": stamped(11)},
    ]
    path, spec = (
        write(tmp_path / "t", records),
        small(user=[{"when": {"role": ["user"]}, "text": "text", "turn": "turn"}]),
    )
    found = read_turn(path, spec, TurnKey(since=SINCE, turn="2", prompt="go"))
    assert found is not None
    assert found.answer == "second"
    assert read_turn(path, spec, TurnKey(since=SINCE, turn="3")) is None


def test_message_of_many_pieces_and_message_of_many_versions(tmp_path: Path) -> None:
    records = [
        {"role": "user", "text": "go", "timestamp": stamped(10)},
        {"role": "model", "id": "m", "text": "one", "timestamp": stamped(11)},
        {"role": "model", "id": "m", "text": "two", "timestamp": stamped(11)},
    ]
    path = write(tmp_path / "t", records)
    pieces = read_turn(path, small(pieces=True), TurnKey(since=SINCE))
    versions = read_turn(path, small(), TurnKey(since=SINCE))
    assert pieces is not None
    assert versions is not None
    assert (pieces.answer, versions.answer) == ("one\n\ntwo", "two")


def test_message_followed_by_a_tool_call_is_no_answer_yet(tmp_path: Path) -> None:
    records = [
        {"role": "user", "text": "go", "timestamp": stamped(10)},
        {"role": "model", "id": "m", "text": "looking", "timestamp": stamped(11)},
        {"role": "tool", "timestamp": stamped(12)},
    ]
    found = read_turn(write(tmp_path / "t", records), small(), TurnKey(since=SINCE))
    assert found is not None
    assert found.answer is None
    assert [said.text for said in found.progress] == ["looking"]


def test_long_conversation_is_read_from_its_end(tmp_path: Path) -> None:
    path = tmp_path / "t"
    with path.open("w") as file:
        for n in range(2000):
            file.write(json.dumps({"role": "user", "text": "x" * 1000, "timestamp": stamped(n % 5)}) + "\n")
        file.write(json.dumps({"role": "user", "text": "go", "timestamp": stamped(10)}) + "\n")
        file.write(
            json.dumps({"role": "tool", "output": "y" * (3 * transcripts.WINDOW_BYTES), "timestamp": stamped(11)})
            + "\n"
        )
        file.write(json.dumps({"role": "model", "text": "done", "timestamp": stamped(12)}) + "\n")
    found = read_turn(path, small(), TurnKey(since=SINCE))
    assert found is not None
    assert found.answer == "done"


def test_no_more_is_read_than_the_longest_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    records = [
        {"role": "user", "text": "go", "timestamp": stamped(10)},
        *({"role": "tool", "output": "y" * 100, "timestamp": stamped(11)} for _ in range(100)),
        {"role": "model", "text": "done", "timestamp": stamped(12)},
    ]
    path = write(tmp_path / "t", records)
    windows: list[int] = []
    last_lines = transcripts._last_lines

    def noted(path: Path, window: int) -> tuple[list[bytes], bool]:
        windows.append(window)
        return last_lines(path, window)

    monkeypatch.setattr(transcripts, "_last_lines", noted)
    monkeypatch.setattr(transcripts, "WINDOW_BYTES", 256)
    monkeypatch.setattr(transcripts, "WINDOW_MAX_BYTES", 4096)
    assert read_turn(path, small(), TurnKey(since=SINCE)) is None
    assert windows == [256, 2048, 4096]


def test_newest_of_the_files_that_the_profile_names(tmp_path: Path) -> None:
    spec = small(files="chats/*-{conversation}.jsonl")
    assert locate(spec, tmp_path, "c1") is None
    (tmp_path / "chats").mkdir()
    for name in ("a-c1.jsonl", "b-c1.jsonl", "c-c2.jsonl"):
        (tmp_path / "chats" / name).touch()
    found = locate(spec, tmp_path, "c1")
    assert found is not None
    assert found.name in ("a-c1.jsonl", "b-c1.jsonl")


def test_missing_file_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="nowhere"):
        read_turn(tmp_path / "nowhere", small(), TurnKey(since=0))


def test_half_characters_are_replaced() -> None:
    assert clean("a\ud83d\ude00b") == "a😀b"
    assert clean("a\ud83db") == "a\ufffdb"


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=5)
    | st.sampled_from(["user", "model", "end", stamped(11)]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["role", "text", "id", "timestamp", "type"]), inner, max_size=5)
    ),
    max_leaves=8,
)


@settings(deadline=None)
@given(st.lists(JSON.map(json.dumps) | st.text(max_size=20), max_size=8))
def test_no_file_whatever_raises(tmp_path_factory: pytest.TempPathFactory, lines: list[str]) -> None:
    path = tmp_path_factory.mktemp("t") / "t.jsonl"
    path.write_text("\n".join(lines), encoding="utf-8", errors="replace")
    found = read_turn(path, small(), TurnKey(since=SINCE, prompt="x", turn="y"))
    assert found is None or isinstance(found.answer, str | None)
