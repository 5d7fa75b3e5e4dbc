"""Dates of files and of documents, which are compared with others, under a clock that is set (docs/clocks.md)."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from aiohttp import hdrs
from aiohttp.test_utils import make_mocked_request

from synapsed.api.caching import ChangeTimes, document
from synapsed.channels.past_conversations import _newest
from synapsed.parts.hooks.transcripts import locate
from synapsed.parts.profile_tools.bundles.shelf import SHIPPED, STALE_S, Counts, Shelf
from synapsed.parts.session_server.delivery import _stamp
from synapsed.parts.usage_limits.accounts import marks_of
from synapsed.profiles.channel_spec import Transcript
from synapsed.profiles.setting_spec import AccountSpec
from tests.fakes.clock import JUMPS, FakeClock


def answered(changes: ChangeTimes, body: bytes, since: str | None) -> tuple[int, str]:
    """The status, and the date of the last change."""
    headers = {} if since is None else {hdrs.IF_MODIFIED_SINCE: since}
    response = document(make_mocked_request("GET", "/card", headers=headers), changes, body)
    return response.status, response.headers[hdrs.LAST_MODIFIED]


@pytest.mark.parametrize("jump", JUMPS)
def test_a_changed_document_is_sent_whatever_its_date(jump: float) -> None:
    clock = FakeClock()
    changes = ChangeTimes(clock)
    _, first = answered(changes, b"{}", None)
    assert answered(changes, b"{}", first) == (304, first)
    clock.jump(jump)
    assert answered(changes, b"{}", first) == (304, first), "it is the same"
    status, second = answered(changes, b"[]", first)
    assert status == 200
    assert answered(changes, b"[]", second) == (304, second)
    clock.jump(-jump)
    clock.advance(1)
    assert [answered(changes, b"0", known)[0] for known in (second, first)] == [200, 200]


def dated(path: Path, at: float) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    os.utime(path, (at, at))
    return path


@pytest.mark.parametrize("jump", JUMPS)
def test_of_two_records_the_one_with_the_later_date_counts(tmp_path: Path, jump: float) -> None:
    """Also of one that was written while the clock was ahead: until it is written to again."""
    now = FakeClock().wall()
    before, after = dated(tmp_path / "a/c.jsonl", now), dated(tmp_path / "b/c.jsonl", now + jump)
    wanted = after if jump > 0 else before
    assert locate(Transcript(files="*/{conversation}.jsonl"), tmp_path, "c") == wanted
    assert _newest(tmp_path, "*/*.jsonl")[0][1] == wanted
    other = before if jump > 0 else after
    dated(other, max(now, now + jump) + 1)
    assert locate(Transcript(files="*/{conversation}.jsonl"), tmp_path, "c") == other


@pytest.mark.parametrize("jump", JUMPS)
def test_an_accounts_file_that_has_another_date_is_another(tmp_path: Path, jump: float) -> None:
    """Whichever way it differs: the account is tried again, which costs no message."""
    spec, now = AccountSpec(files=["$HOME/auth.json"]), FakeClock().wall()
    env = {"HOME": str(tmp_path)}
    dated(tmp_path / "auth.json", now)
    before = marks_of(spec, env)
    assert marks_of(spec, env) == before
    dated(tmp_path / "auth.json", now + jump)
    assert marks_of(spec, env) != before


@pytest.mark.parametrize("jump", JUMPS)
def test_no_bundle_that_counts_goes_for_its_date(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jump: float) -> None:
    """One that was only looked at may: it can be taken again."""
    clock, shelf = FakeClock(), Shelf(tmp_path)
    monkeypatch.setattr(
        "synapsed.parts.profile_tools.bundles.shelf.time", SimpleNamespace(time=clock.wall, monotonic=clock.monotonic)
    )
    counts, looked_at = shelf.place("a" * 64), shelf.place("b" * 64)
    for place in (counts, looked_at):
        dated(place / "about.json", clock.wall())
        os.utime(place, (clock.wall(), clock.wall()))
    clock.jump(jump)
    shelf.change(lambda _: Counts(current="a" * 64, before=[SHIPPED]))
    assert counts.exists()
    assert looked_at.exists() is (jump <= STALE_S)


@pytest.mark.parametrize("jump", JUMPS)
def test_what_is_sent_while_the_clock_is_ahead_sorts_later(jump: float) -> None:
    now = int(FakeClock().wall() * 1000)
    assert (_stamp(now + int(jump * 1000)) > _stamp(now)) is (jump > 0)
