"""`doctor` on the listener with TLS: the certificate, its key, and whether it is served."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from synapsectl.checkup.finding import NOTE, OK, WRONG
from synapsectl.errors import NoDaemon
from synapsed.parts.web.certificates import SERVER_DAYS, make_authority, make_server
from synapsed.parts.web.ctl.checks import look
from synapsed.parts.web.findings import findings
from synapsed.parts.web.pairs import load_own

NOW = datetime.now(UTC)


def told(folder: Path, status: dict[str, Any] | None = None, *, given: bool = True) -> dict[str, tuple[str, str, str]]:
    """Returns the findings by name, each with its status, detail and mend. `status` is what the daemon tells of itself;
    None if no daemon runs."""

    def get(path: str) -> dict[str, Any]:
        if status is None:
            raise NoDaemon("no daemon runs")
        return status

    cert, key = (str(folder / "cert.pem"), str(folder / "key.pem")) if given else (None, None)
    api = {"tls_listen": "0.0.0.0:8443", "tls_cert": cert, "tls_key": key}
    config = SimpleNamespace(api=SimpleNamespace(**api))
    assert given or folder.name == "tls"
    context: Any = SimpleNamespace(client=SimpleNamespace(get=get))
    settings: Any = SimpleNamespace(api=api)
    found = [*findings(config, folder.parent), *look(context, settings)]
    return {what: (status, detail, mend) for what, status, detail, mend in found}


def pair(folder: Path, *, days: float = 0, names: tuple[str, ...] = ("box.lan",)) -> None:
    """Made so many days from now."""
    now = NOW + timedelta(days=days)
    made = make_server(make_authority("box", names, now=now), names, now=now)
    (folder / "cert.pem").write_text(made.certificate)
    (folder / "key.pem").write_text(made.key)
    (folder / "key.pem").chmod(0o600)


@pytest.mark.parametrize(
    ("days", "status", "words"),
    [
        (0, OK, "for box.lan, until "),
        (10 - SERVER_DAYS, NOTE, ": 10 days"),
        (-1 - SERVER_DAYS, WRONG, "which is over: no browser takes it"),
        (9, WRONG, "counts from "),
    ],
)
def test_a_given_certificate(tmp_path: Path, days: int, status: str, words: str) -> None:
    pair(tmp_path, days=days)
    found, detail, mend = told(tmp_path)["certificate"]
    assert (found, words in detail, found == OK or bool(mend)) == (status, True, True), detail


def test_one_without_names(tmp_path: Path) -> None:
    pair(tmp_path, names=())
    assert told(tmp_path)["certificate"][0] == WRONG
    assert "has no names" in told(tmp_path)["certificate"][1]


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda folder: (folder / "cert.pem").unlink(), "cert.pem: cannot be read"),
        (lambda folder: (folder / "key.pem").write_text("x"), "key.pem: holds no key"),
        (lambda folder: (folder / "cert.pem").write_text("x"), "cert.pem: holds no certificate"),
    ],
)
def test_a_pair_that_is_none(tmp_path: Path, spoil: Callable[[Path], object], words: str) -> None:
    pair(tmp_path)
    spoil(tmp_path)
    status, detail, mend = told(tmp_path)["certificate"]
    assert (status, words in detail, "tls_cert and tls_key" in mend) == (WRONG, True, True), detail


def test_a_key_that_all_can_read(tmp_path: Path) -> None:
    pair(tmp_path)
    assert "key of the certificate" not in told(tmp_path)
    (tmp_path / "key.pem").chmod(0o644)
    assert told(tmp_path)["key of the certificate"] == (
        WRONG, f"{tmp_path}/key.pem is open to all", f"chmod o= {tmp_path}/key.pem",
    )  # fmt: skip


def test_the_daemon_s_own(tmp_path: Path) -> None:
    folder = tmp_path / "tls"
    assert told(folder, given=False)["certificate"][0] == NOTE
    own = load_own(folder, ["box.local"], host="box", now=NOW)
    status, detail, _ = told(folder, given=False)["certificate"]
    assert (status, own.told.fingerprint in detail) == (OK, True), detail
    (folder / "authority.pem").chmod(0o644)
    assert told(folder, given=False)["certificate"][0] == WRONG


@pytest.mark.parametrize(
    ("status", "found", "words"),
    [
        ({"secure": ["https://box.lan:8443/"], "alerts": []}, OK, "https://box.lan:8443/"),
        ({"secure": [], "alerts": ["the page over TLS: cannot listen on 0.0.0.0:8443"]}, WRONG, "cannot listen"),
        ({"secure": [], "alerts": []}, WRONG, "configured and not served"),
        ({"alerts": []}, WRONG, "configured and not served"),
    ],
    ids=["served", "not served", "before a restart", "an older daemon"],
)
def test_whether_it_is_served(tmp_path: Path, status: dict[str, Any], found: str, words: str) -> None:
    pair(tmp_path)
    assert "page over TLS" not in told(tmp_path), "no daemon runs"
    assert told(tmp_path, status)["page over TLS"][0] == found
    assert words in told(tmp_path, status)["page over TLS"][1]
