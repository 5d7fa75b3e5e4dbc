"""`fleet files`, and files that are too large for a message."""

import json
import os
from pathlib import Path

from synapsectl.messages import MESSAGE_MAX
from synapsed_fleet.ctl.showing import daemon_lines, file_row, on_its_way
from tests.synapsectl.conftest import Ctl
from tests.synapsectl.fake_daemon import FakeDaemon

ID = "0123456789abcdef" * 2
AT = "2026-05-01T12:00:00Z"


def kept(**more: object) -> dict[str, object]:
    told = {"id": ID, "host": "box", "state": "going", "name": "film.mp4", "message": False, "size": 3 << 20}
    return {**told, "have": 1 << 20, "since": AT, "row": "r1", "problem": None, **more}


def test_files_are_listed_with_what_holds_them_up(daemon: FakeDaemon, ctl: Ctl) -> None:
    assert "no files" in ctl("fleet", "files").err
    daemon.fleet_files = [kept(problem="box is full"), kept(state="here", have=3 << 20, name=None)]
    told = ctl("fleet", "files").out
    assert "1.0 MiB of 3.0 MiB" in told
    assert "film.mp4: box is full" in told
    assert f"box/{ID}" in told
    assert [one["state"] for one in json.loads(ctl("fleet", "files", "list", "--json").out)] == ["going", "here"]
    assert file_row(kept(state="coming"))[:3] == (f"box/{ID}", "coming", "-")
    assert on_its_way(kept(message=True, problem="box is full")).endswith("; box is full")


def test_a_file_is_copied_and_nothing_that_is_there_is_written_over(
    daemon: FakeDaemon, ctl: Ctl, tmp_path: Path
) -> None:
    daemon.file_content = os.urandom(3 << 20)
    path = tmp_path / "film.mp4"
    assert ctl("fleet", "files", "get", f"syn-file:box/{ID}", "--output", str(path)).code == 0
    assert path.read_bytes() == daemon.file_content
    again = ctl("fleet", "files", "get", f"box/{ID}", "--output", str(path))
    assert (again.code, "there already" in again.err) == (2, True)
    gone = tmp_path / "gone"
    assert ctl("fleet", "files", "get", f"shed/{ID}", "--output", str(gone)).code == 4
    assert not gone.exists()
    for wrong in (ID, "../../host.creds", "box/x"):
        assert ctl("fleet", "files", "get", wrong, "--output", str(gone)).code == 2
    assert ctl("fleet", "files", "remove", ID).out.strip() == f"{ID}: is removed"


def test_a_reply_takes_a_file_that_is_too_large_for_a_message(daemon: FakeDaemon, ctl: Ctl, tmp_path: Path) -> None:
    daemon.fleet = []
    path = tmp_path / "film.mp4"
    path.write_bytes(b"x" * (MESSAGE_MAX + 1))
    assert ctl("reply", "--from", "codex", "here it is", "--file", str(path)).code == 0
    (body,) = [body for _, path, body in daemon.requests if path.endswith("/tasks/reply")]
    text, file = body["message"]["parts"]
    assert text["text"] == "here it is"
    assert (file["file"]["uri"], file["metadata"]["size"]) == (f"syn-file:{'ab' * 16}", MESSAGE_MAX + 1)
    assert len(daemon.file_content) == MESSAGE_MAX + 1
    daemon.fleet = None
    assert ctl("reply", "--from", "codex", "here it is", "--file", str(path)).code == 2, "there is no fleet"


def test_what_is_wrong_though_the_broker_is_reached_is_shown() -> None:
    daemon = {"connected": True, "broker": "box:4222", "problem": "another machine is in the fleet", "outbox": {}}
    assert "trouble     another machine is in the fleet" in list(daemon_lines(daemon))
    assert not [line for line in daemon_lines({**daemon, "problem": None}) if "trouble" in line]


def test_whose_mail_waits_here_is_named() -> None:
    daemon = {"connected": True, "broker": "box:4222", "outbox": {}, "mail": {"attic": 9800, "shed": 3}}
    assert "waits here  9800 of attic, 3 of shed" in list(daemon_lines(daemon))
