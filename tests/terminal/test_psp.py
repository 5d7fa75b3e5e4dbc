"""Program status records (OSC 7501)."""

import base64
import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapsed.terminal.psp import BlockedKind, ProgramState, Record, StatusRecords, parse_report


def encoded(text: str | bytes) -> str:
    return base64.b64encode(text.encode() if isinstance(text, str) else text).decode()


@pytest.mark.parametrize("state", list(ProgramState))
def test_states(state: ProgramState) -> None:
    assert parse_report(f"state={state}") == Record(state)


def test_a_whole_report() -> None:
    texts = f"title={encoded('Build')}:msg={encoded('Run rm?')}"
    assert parse_report(f"state=blocked:id=a/b-1:kind=permission:progress=40:app=codex:{texts}") == Record(
        state=ProgramState.BLOCKED,
        id="a/b-1",
        kind=BlockedKind.PERMISSION,
        progress=40,
        app="codex",
        title="Build",
        msg="Run rm?",
    )


@pytest.mark.parametrize(
    ("body", "record"),
    [
        ("state=idle:kind=permission", Record(ProgramState.IDLE)),
        ("state=idle:progress=3", Record(ProgramState.IDLE)),
        ("state=blocked:kind=coffee", Record(ProgramState.BLOCKED)),
        ("state=working:progress=101", Record(ProgramState.WORKING)),
        ("state=working:progress=-1", Record(ProgramState.WORKING)),
        ("state=working:future=1:nonsense:=x:K=v", Record(ProgramState.WORKING)),
        ("state=idle:state=working", Record(ProgramState.WORKING)),
        ("state=idle:app=a b", Record(ProgramState.IDLE)),
        (f"state=done:msg={encoded('hi').rstrip('=')}", Record(ProgramState.DONE, msg="hi")),
        ("state=idle:msg=%%%", Record(ProgramState.IDLE)),
        (" state = working : app = codex\t", Record(ProgramState.WORKING, app="codex")),
        (f"state=idle:{'k' * 17}", Record(ProgramState.IDLE)),
        ("state=done:msg=", Record(ProgramState.DONE, msg="")),
    ],
)
def test_what_is_malformed_is_skipped(body: str, record: Record) -> None:
    assert parse_report(body) == record


@pytest.mark.parametrize(
    "body",
    [
        "",
        "idle",
        "state=",
        "state=sleeping",
        "kind=permission",
        "state=idle:id=a b",
        "state=idle:id",
        "state=idle:msg=a",
        f"state=idle:msg={encoded(bytes([255]))}",
        f"state=idle:msg={encoded(chr(27) + '[6n')}",
        f"state=idle:title={encoded('x' * 193)}",
        f"state=idle:msg={encoded('x' * 2049)}",
        f"state=idle:app={'a' * 33}",
        f"state=idle:{'k' * 17}=1",
        f"state=idle:app={'a' * 33}:app=codex",
        f"state=idle:msg={encoded('x' * 2049)}:msg={encoded('x')}",
        f"state=idle:msg=a:msg={encoded('x')}",
        "state=clear:msg=a",
        "state=idle: id = a b:id=a",
        "state=idle:id=",
        "state=idle:id=a//b",
        f"state=idle:id={'a' * 33}",
        f"state=idle:id={'/'.join('abcdefghi')}",
        f"state=idle:id={'/'.join(['a' * 30] * 5)}",
    ],
)
def test_what_breaks_a_rule_is_no_report(body: str) -> None:
    assert parse_report(body) is None
    records = StatusRecords()
    assert not records.report(body)
    assert records.root is None


@given(
    st.builds(
        Record,
        state=st.sampled_from(ProgramState),
        id=st.sampled_from(["", "a", "a/b-1.2"]),
        app=st.none() | st.from_regex(r"[A-Za-z0-9_.+-]{1,32}", fullmatch=True),
        title=st.none() | st.text(st.characters(exclude_categories=["Cc", "Cs"]), max_size=48),
        msg=st.none() | st.text(st.characters(exclude_categories=["Cc", "Cs"]), max_size=512),
    )
)
def test_a_record_is_passed_on_as_the_report_that_makes_it(record: Record) -> None:
    assert parse_report(record.body()) == record
    waits = replace(record, state=ProgramState.BLOCKED, kind=BlockedKind.AUTH, progress=7)
    assert parse_report(waits.body()) == waits


def test_children_do_not_speak_for_the_root() -> None:
    records = StatusRecords()
    assert records.report("state=working")
    assert records.report("state=blocked:kind=question:id=sub/1")
    assert records.root == "working"
    assert records.get("sub/1") == Record(ProgramState.BLOCKED, "sub/1", BlockedKind.QUESTION)


def test_a_report_replaces_its_record_whole() -> None:
    records = StatusRecords()
    records.report("state=blocked:kind=permission:app=codex")
    assert records.report("state=working")
    assert records.get() == Record(ProgramState.WORKING)
    assert not records.report("state=working")


def test_clear_takes_a_record_and_those_below() -> None:
    records = StatusRecords()
    for record_id in ("a", "a/b", "ab"):
        records.report(f"state=working:id={record_id}")
    records.report("state=idle")
    assert records.report("state=clear:id=a")
    assert [records.get(name) is not None for name in ("a", "a/b", "ab", "")] == [False, False, True, True]
    assert records.report("state=clear")
    assert len(records) == 0
    assert not records.report("state=clear")


def test_the_end_of_the_program_keeps_its_result() -> None:
    records = StatusRecords()
    records.report("state=working")
    records.report("state=done:id=step")
    assert records.ended()
    assert records.root is None
    assert records.get("step") is not None


TOLD = ("state=idle:app=agent", "state=working:app=agent")


@pytest.mark.parametrize("printed", ["state=idle:app=tool", "state=blocked:app=tool", "state=clear:app=tool"])
def test_what_a_tool_reports_while_its_program_works_changes_nothing(printed: str) -> None:
    records = StatusRecords()
    for report in TOLD:
        records.report(report)
    restored = StatusRecords.from_state(json.loads(json.dumps(records.to_state())), records.speaker)
    for watched in (records, restored):
        assert not watched.report(printed)
        assert watched.root == "working"
        assert watched.report("state=done:app=agent")
        assert watched.root == "done"


def test_a_part_of_the_program_may_be_another_program() -> None:
    records = StatusRecords()
    for report in TOLD:
        records.report(report)
    assert records.report("state=working:id=build:app=cargo")
    assert records.root == "working"


@pytest.mark.parametrize("printed", ["state=idle:app=tool", "state=working", "state=clear:app=tool"])
@pytest.mark.parametrize("before", TOLD)
def test_only_reports_under_its_name_are_those_of_a_program_whose_name_is_known(before: str, printed: str) -> None:
    records = StatusRecords(app="agent")
    assert records.report(before)
    assert not records.report(printed)
    assert records.get() == parse_report(before)
    assert records.report("state=clear")
    assert records.root is None


def test_a_successor_in_the_same_terminal_is_believed() -> None:
    records = StatusRecords()
    for report in (*TOLD, "state=done:app=agent", "state=working:app=another"):
        assert records.report(report)
    assert records.root == "working"
    assert records.report("state=idle:app=another")
    assert records.speaker == "another"


def test_a_report_that_was_printed_before_the_program_spoke_locks_nobody_out() -> None:
    records = StatusRecords()
    records.report("state=working:app=printed")
    assert records.report("state=idle:app=agent")
    assert records.root == "idle"


def test_who_clears_its_record_lets_another_speak() -> None:
    records = StatusRecords()
    for report in (*TOLD, "state=clear:app=agent", "state=working:app=another"):
        assert records.report(report)


def test_records_are_bounded_and_the_oldest_goes() -> None:
    records = StatusRecords()
    for number in range(256):
        records.report(f"state=working:id=n{number}")
    records.report("state=idle:id=n0")
    records.report("state=idle:id=new")
    assert len(records) == 256
    assert records.get("n0") is not None
    assert records.get("n1") is None


def test_the_state_survives_a_checkpoint() -> None:
    records = StatusRecords()
    records.report(f"state=blocked:kind=auth:msg={encoded('log in')}")
    records.report("state=working:id=a:progress=7")
    restored = StatusRecords.from_state(json.loads(json.dumps(records.to_state())))
    assert restored.to_state() == records.to_state()
    assert restored.get() == records.get()
    assert len(StatusRecords.from_state(None)) == 0


@given(st.text(alphabet="state=idlworkngbc:/?%msgpro0123456789 \x1b\x00é", max_size=80))
def test_any_text_is_a_report_or_none(body: str) -> None:
    StatusRecords().report(body)
