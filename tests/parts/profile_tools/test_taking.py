"""Conditions on a bundle before it is taken, and on where it comes from."""

import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from synapsed.errors import Forbidden, InvalidRequest, SynapsedError, TooLarge, Unreachable
from synapsed.outgoing import OutgoingConfig
from synapsed.parts.profile_tools.bundles import fetching, taking
from synapsed.parts.profile_tools.bundles.making import make
from synapsed.parts.profile_tools.bundles.shelf import SHIPPED, Shelf
from tests.parts.profile_tools.made import Signer

TESTS = Path(__file__).parents[2]
PROFILES = TESTS.parent / "profiles"
PI = "pi-0.74.2"
DUMMY = (PROFILES / "dummy.toml").read_text()
READS = DUMMY.replace("quiet_ms = 20", "quiet_ms = 30")
FILES = {"profiles/dummy.toml": READS}


class Taker:
    """A person's home."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.signer = Signer(root)
        self.shelf = Shelf(root / "state")

    def write(self, content: bytes, name: str = "a.bundle") -> str:
        (self.root / name).write_bytes(content)
        return str(self.root / name)

    def look(self, source: str, *, keys: list[str] | None = None, **options: bool) -> dict[str, Any]:
        return taking.look(
            source,
            self.shelf,
            keys=self.signer.trusted if keys is None else keys,
            outgoing=OutgoingConfig(),
            older=options.get("older", False),
            now=2e9,
        )

    def take(self, content: bytes, **options: bool) -> str:
        found = self.look(self.write(content), **options)
        digest: str = found["digest"]
        instead_of = found["instead_of"]
        taking.take(digest, self.shelf, instead_of=instead_of, keys=self.signer.trusted, unproved=["dummy"])
        return digest


@pytest.fixture
def taker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Taker:
    monkeypatch.setenv("SYNAPSED_HOME", str(tmp_path))
    return Taker(tmp_path)


@pytest.fixture
def unread(monkeypatch: pytest.MonkeyPatch) -> None:
    """The profiles themselves are not looked at."""
    told = {"profiles": {}, "gone": [], "faults": [], "faults_in_all": 0}
    monkeypatch.setattr(taking, "proved_at", lambda place, since: told)


def test_what_is_looked_at_does_not_count(taker: Taker) -> None:
    found = taker.look(taker.write(taker.signer.bundle(FILES)))
    assert (found["instead_of"], found["counts"], found["gone"]) == (SHIPPED, False, [])
    assert [change["key"] for change in found["profiles"]["dummy"]["changes"]] == ["ready.quiet_ms"]
    assert taker.shelf.counts().current == SHIPPED


def test_of_one_that_was_changed_nothing_is_kept(taker: Taker, unread: None) -> None:
    whole = taker.signer.bundle(FILES)
    for place in (0, 25, 80, 120, len(whole) // 2, len(whole) - 1):
        changed = bytearray(whole)
        changed[place] ^= 1
        with pytest.raises((Forbidden, InvalidRequest)):
            taker.look(taker.write(bytes(changed)))
    assert not taker.shelf.folder.exists()


def test_one_for_a_newer_synapsed_is_refused(taker: Taker, unread: None) -> None:
    with pytest.raises(Forbidden, match="upgrade synapsed first"):
        taker.take(taker.signer.bundle(FILES, needs="999.0"))


def test_an_older_one_is_taken_only_where_that_is_said(taker: Taker, unread: None) -> None:
    taker.take(taker.signer.bundle(FILES, made=2e9))
    older = taker.signer.bundle(FILES, made=1e9)
    with pytest.raises(Forbidden, match="--older"):
        taker.take(older)
    digest = taker.take(older, older=True)
    assert taker.shelf.counts().current == digest


def test_profiles_that_cannot_be_read_are_refused_and_not_kept(taker: Taker) -> None:
    with pytest.raises(InvalidRequest, match="cols"):
        taker.take(taker.signer.bundle({"profiles/dummy.toml": "cols = 3"}))
    assert list(taker.shelf.place(SHIPPED).iterdir()) == []


def recorded(profile: str) -> dict[str, bytes | str]:
    """A profile of pi with its recordings."""
    files: dict[str, bytes | str] = {"profiles/pi.toml": profile}
    for raw in (TESTS / "recordings" / PI).glob("*.raw"):
        inside = f"recordings/{PI}/{raw.stem}"
        files[f"{inside}.raw"] = raw.read_bytes()
        files[f"{inside}.json"] = raw.with_suffix(".json").read_bytes()
        files[f"{inside}.expected.json"] = (TESTS / "golden" / PI / f"{raw.stem}.json").read_bytes()
    return files


def test_a_profile_has_to_read_its_recordings(taker: Taker) -> None:
    pi = (PROFILES / "pi.toml").read_text()
    blind = pi.replace("[busy]", "[busy]\nrows = 1").replace("rows = 12\n", "")
    found = taker.look(taker.write(taker.signer.bundle(recorded(pi))))
    assert found["profiles"]["pi"]["recordings"] == 4
    with pytest.raises(InvalidRequest, match=f"{PI}/"):
        taker.look(taker.write(taker.signer.bundle(recorded(blind))))
    (taker.root / "pi.toml").write_text(blind)
    with pytest.raises(InvalidRequest, match="do not read their recordings"):
        make(
            [taker.root / "pi.toml"],
            key=taker.signer.file,
            out=taker.root / "o",
            needs=None,
            recordings=[TESTS / "recordings" / PI],
            expected=[TESTS / "golden" / PI],
            scratch=taker.root,
            now=1e9,
        )
    assert not (taker.root / "o").exists()


# --- from a server ---------------------------------------------------------------------------------------------------


@contextmanager
def serving(answers: dict[str, tuple[int, dict[str, str], bytes]]) -> Iterator[tuple[str, list[str]]]:
    asked: list[str] = []

    class Answers(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            status, headers, body = answers.get(self.path, (404, {}, b""))
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_where_no_key_is_trusted_nothing_is_even_fetched(taker: Taker) -> None:
    with serving({}) as (url, asked), pytest.raises(Forbidden, match="no key is trusted"):
        taker.look(f"{url}/x", keys=[])
    assert asked == []


def test_it_is_fetched_once_and_from_there_alone(taker: Taker, unread: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, "SIZE_MAX", 10_000)
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    answers = {
        "/good?key=secret": (200, {}, taker.signer.bundle(FILES)),
        "/moved": (302, {"Location": "http://127.0.0.1:1/other"}, b""),
        "/large": (200, {}, bytes(10_001)),
    }
    refused: list[tuple[str, type[SynapsedError], str]] = [
        ("/moved", Unreachable, "redirects to .*curl -L -o FILE URL"),
        ("/nothing", Unreachable, "answered 404"),
        ("/large", TooLarge, "larger than a bundle may be"),
    ]
    with serving(answers) as (url, asked):
        for path, kind, words in refused:
            with pytest.raises(kind, match=words):
                taker.look(url + path)
        digest = taker.look(f"{url}/good?key=secret")["digest"]
        assert asked == ["/moved", "/nothing", "/large", "/good?key=secret"]
    about = taker.shelf.about(digest)
    assert about is not None
    assert about.source == f"{url}/good"
    with pytest.raises(Unreachable, match="cannot be fetched"):
        taker.look(f"{url}/good")


@pytest.mark.parametrize(
    "source", ["http://example.org/x", "ftp://127.0.0.1/x", "https://name:secret@127.0.0.1/x", "http://[::1", "://"]
)
def test_other_addresses_are_refused_before_anything_is_asked(source: str, taker: Taker) -> None:
    with pytest.raises(InvalidRequest) as error:
        taker.look(source)
    assert "secret" not in error.value.message


@pytest.mark.parametrize("source", ["https://exa\x7fmple.org/x", "https://☃..org/", "http://127.0.0.1:1/x?t=\x01S"])
def test_an_address_that_is_none_is_refused(source: str, taker: Taker) -> None:
    with pytest.raises((InvalidRequest, Unreachable)):
        taker.look(source)


def test_a_file_has_to_be_one(taker: Taker) -> None:
    for place in (taker.root / "nothing", taker.root):
        with pytest.raises(InvalidRequest, match="cannot be read"):
            taker.look(str(place))
