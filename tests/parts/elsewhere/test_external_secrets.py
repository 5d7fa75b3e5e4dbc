"""Secrets for `external add`: taken whole, or refused with the limit, and never said."""

import pytest

from synapsed.parts.elsewhere.ctl.external import SECRET_MAX
from tests.synapsectl.conftest import Ctl, ctl, daemon, home
from tests.synapsectl.fake_daemon import FakeDaemon

__all__ = ["ctl", "daemon", "home"]

ADD = ("external", "add", "https://far.example/a2a", "--token-stdin")
LONG = "t" * SECRET_MAX


def given(daemon: FakeDaemon) -> list[str]:
    return [body["token"] for method, path, body in daemon.requests if path == "/external/discover"]


@pytest.mark.parametrize("around", [b"", b"\n", b" \r\n"])
def test_a_token_of_the_greatest_length_goes_whole(daemon: FakeDaemon, ctl: Ctl, around: bytes) -> None:
    ctl(*ADD, stdin=LONG.encode() + around)
    assert given(daemon) == [LONG]


@pytest.mark.parametrize(
    ("stdin", "words"),
    [
        (LONG.encode() + b"t", f"more than {SECRET_MAX} bytes came on stdin"),
        (b" " * SECRET_MAX + b"t" * SECRET_MAX, f"more than {SECRET_MAX} bytes came on stdin"),
        (b" \n", "nothing came on stdin"),
        (b"secret\xff", "is not UTF-8 (byte 6)"),
    ],
)
def test_another_is_refused_and_not_cut(daemon: FakeDaemon, ctl: Ctl, stdin: bytes, words: str) -> None:
    done = ctl(*ADD, stdin=stdin)
    assert (done.code, words in done.err, "--token-stdin" in done.err) == (2, True, True), done
    assert "secret" not in done.err
    assert given(daemon) == []


def test_a_variable_that_is_too_long_is_named(daemon: FakeDaemon, ctl: Ctl) -> None:
    done = ctl(*ADD[:-1], "--token-env", "FAR", FAR=f"{LONG}t")
    assert (done.code, done.err) == (2, f"synapsectl: the variable FAR has more than {SECRET_MAX} characters\n")
    assert given(daemon) == []
