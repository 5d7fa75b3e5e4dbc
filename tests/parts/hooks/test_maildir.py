import errno
import json
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from synapsed.channels.launch_additions import LaunchContext
from synapsed.parts.hooks import maildir
from synapsed.parts.hooks.maildir import Maildir
from synapsed.shared.files import open_regular
from tests.channels.conftest import Launch


def test_reports_come_in_order_and_wait_until_they_are_settled(launch: Launch) -> None:
    first, second, third = (launch.report("Stop", {"n": n}) for n in range(3))
    box = Maildir(launch.context.hooks)
    box.recover()
    assert [report.payload["n"] for report in box.take()] == [0, 1, 2]
    assert box.take() == []
    box.settle(second)
    assert [int(name[:20]) for name in launch.names("cur")] == [third]
    assert first < second


def test_what_is_no_file_is_no_report(launch: Launch) -> None:
    """It holds nothing up, and nothing waits for what comes through a pipe."""
    new = launch.context.hooks / "new"
    (new / f"{1:020}-1.json").mkdir()
    (new / f"{2:020}-1.json").symlink_to("/dev/zero")
    launch.report("Stop", {"n": 0})
    os.mkfifo(new / f"{10**20 - 1}-1.json")
    assert [report.payload["n"] for report in Maildir(launch.context.hooks).take()] == [0]


def test_half_a_character_in_a_report_is_replaced(launch: Launch) -> None:
    launch.report("Stop", {"said": "\ud83d", "\ude00": 1})
    (report,) = Maildir(launch.context.hooks).take()
    assert report.payload == {"said": "\ufffd", "\ufffd": 1}


def test_what_is_not_settled_is_told_again_after_a_restart(launch: Launch) -> None:
    launch.report("Stop", {"n": 0})
    assert len(Maildir(launch.context.hooks).take()) == 1
    launch.report("Stop", {"n": 1})
    again = Maildir(launch.context.hooks)
    again.recover()
    assert [report.payload["n"] for report in again.take()] == [0, 1]


def test_a_report_that_cannot_be_moved_does_not_lose_those_before_it(
    launch: Launch, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(3):
        launch.report("Stop", {"n": n})
    stuck = launch.names("new")[1]
    rename = Path.rename

    def refuse(path: Path, target: Path) -> Path:
        if path.name == stuck:
            raise OSError(28, "No space left on device")
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", refuse)
    box = Maildir(launch.context.hooks)
    assert [report.payload["n"] for report in box.take()] == [0]
    with pytest.raises(OSError, match="No space"):
        box.take()
    monkeypatch.undo()
    assert [report.payload["n"] for report in box.take()] == [1, 2]


def test_a_report_on_a_bad_sector_holds_up_none_behind_it(launch: Launch, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(2):
        launch.report("Stop", {"n": number})
    lost = launch.names("new")[0]

    def refuse(path: Path) -> BinaryIO:
        if path.name == lost:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return open_regular(path)

    monkeypatch.setattr(maildir, "open_regular", refuse)
    assert [report.payload["n"] for report in Maildir(launch.context.hooks).take()] == [1]
    assert launch.names("bad") == [lost]


def test_broken_report_still_says_what_happened_and_is_kept_for_a_person(launch: Launch) -> None:
    launch.report("Stop", None)
    (launch.context.hooks / "new" / launch.names("new")[0]).write_bytes(
        b'{"event":"Stop","at_ns":7,"wall":1.5,"payload":{"last_assistant_message":"cut of'
    )
    (report,) = Maildir(launch.context.hooks).take()
    assert (report.event, report.at_ns, report.wall, report.payload) == ("Stop", 7, 1.5, {})
    assert (launch.names("new"), launch.names("cur"), len(launch.names("bad"))) == ([], [], 1)


def test_oversize_report_is_not_read_whole(launch: Launch) -> None:
    at_ns = time.monotonic_ns()
    head = f'{{"event":"Stop","at_ns":{at_ns},"wall":1.5,"payload":"'.encode()
    path = launch.context.hooks / "new" / f"{at_ns:020d}-1.json"
    with path.open("wb") as file:
        file.write(head)
        file.truncate(maildir.FILE_MAX_BYTES + 10)
    (report,) = Maildir(launch.context.hooks).take()
    assert (report.event, report.payload) == ("Stop", {})
    assert len(launch.names("bad")) == 1


def test_rubbish_is_bounded(launch: Launch) -> None:
    for n in range(maildir.BAD_MAX + 10):
        (launch.context.hooks / "new" / f"{n:020d}-1.json").write_bytes(b"rubbish")
    assert Maildir(launch.context.hooks).take() == []
    assert len(launch.names("bad")) == maildir.BAD_MAX
    assert launch.names("new") == []


def test_unsettled_reports_are_bounded(launch: Launch) -> None:
    box = Maildir(launch.context.hooks)
    for _ in range(maildir.KEPT_MAX + 30):
        launch.report("PostToolUse", {})
    while box.take():
        pass
    kept = launch.names("cur")
    assert len(kept) == maildir.KEPT_MAX


def test_a_hook_that_outlived_the_launch_before_tells_nothing(launch: Launch) -> None:
    context = replace(launch.context, began_ns=time.monotonic_ns())
    assert LaunchContext.load(launch.context.agent_dir).began_ns == 0, "a context of an earlier release has no time"
    launch.report("UserPromptSubmit", {"prompt": "of the launch before"}, at_ns=context.began_ns - 1)
    launch.report("UserPromptSubmit", {"prompt": "of this one"}, at_ns=context.began_ns)
    box = Maildir(context.hooks, since_ns=context.began_ns)
    assert [report.payload["prompt"] for report in box.take()] == ["of this one"]
    assert launch.names("new") == []


def test_other_files_and_a_missing_directory_do_not_matter(launch: Launch, tmp_path: Path) -> None:
    (launch.context.hooks / "new" / "notes.txt").write_text("not ours")
    assert Maildir(launch.context.hooks).take() == []
    box = Maildir(tmp_path / "nowhere")
    box.recover()
    box.settle(5)
    assert box.take() == []


def test_half_characters_do_not_matter(launch: Launch) -> None:
    launch.report("Stop", None)
    path = launch.context.hooks / "new" / launch.names("new")[0]
    path.write_bytes(b'{"event":"Stop","at_ns":7,"wall":1.5,"payload":{"a":"\xff\xfe"}}\n')
    (report,) = Maildir(launch.context.hooks).take()
    assert report.payload == {"a": "\ufffd\ufffd"}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=60)
@given(st.binary(max_size=300) | st.recursive(st.none() | st.text(), st.lists).map(lambda v: json.dumps(v).encode()))
def test_no_file_whatever_raises(launch: Launch, content: bytes) -> None:
    path = launch.context.hooks / "new" / f"{time.monotonic_ns():020d}-1.json"
    path.write_bytes(content)
    Maildir(launch.context.hooks).take()
    assert not path.exists()


def test_passing_reports_take_no_other_s_place(launch: Launch) -> None:
    """A turn may have thousands; the prompt of it is told again all the same."""
    box = Maildir(launch.context.hooks, passing={"MessageDisplay"})
    first = launch.report("UserPromptSubmit", {})
    for _ in range(maildir.KEPT_MAX + 30):
        last = launch.report("MessageDisplay", {})
    while box.take():
        pass
    assert len(launch.names("passing")) == maildir.KEPT_MAX
    box.recover()
    again = box.take()
    assert again[0].at_ns == first
    while more := box.take():
        again += more
    assert len(again) == 1 + maildir.KEPT_MAX
    box.settle(last)
    assert launch.names("passing") == launch.names("cur") == []
