"""`doctor` on the daemon: of which version and commit it is, beside those of the tool."""

from types import SimpleNamespace
from typing import Any

import pytest

from synapsectl.checkup import home as checkup
from synapsectl.checkup.finding import OK, WRONG
from synapsed import __version__
from synapsed.config.paths import Paths


@pytest.mark.parametrize(
    ("version", "theirs", "ours", "status"),
    [
        (__version__, "aaaa", "aaaa", OK),
        (__version__, "bbbb", "aaaa", WRONG),
        (__version__, "", "aaaa", OK),  # nobody can say of which commit it is
        (__version__, "aaaa", "", OK),
        ("0.0.0", "", "", WRONG),
        ("0.0.0", "aaaa", "aaaa", WRONG),
        ("0.0.0", "bbbb", "aaaa", WRONG),
    ],
)
def test_a_daemon_of_another_version_is_told(
    home: object, monkeypatch: pytest.MonkeyPatch, version: str, theirs: str, ours: str, status: str
) -> None:
    monkeypatch.setattr(checkup, "commit", lambda: ours)
    answers = {"/control/status": {"version": version, "commit": theirs, "pid": 1, "listen": []}, "/agents": []}
    ctx: Any = SimpleNamespace(client=SimpleNamespace(get=answers.__getitem__), paths=Paths.from_environ())
    found = next(checkup.look_inside(ctx))
    assert (found.what, found.status) == ("daemon", status)
    assert ("restart" in found.mend) is (status == WRONG)
