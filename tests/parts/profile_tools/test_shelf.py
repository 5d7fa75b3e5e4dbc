"""Bundles in the state directory: the old one counts or the new one, whoever is killed and whoever else is at it."""

import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from synapsed.errors import Busy, Forbidden, InvalidRequest, StoreError
from synapsed.parts.profile_tools.bundles import shelf as shelves
from synapsed.parts.profile_tools.bundles.bundle import open_bundle
from synapsed.parts.profile_tools.bundles.shelf import SHIPPED, Counts, Shelf, after_taking
from synapsed.parts.profile_tools.bundles.stand_ins import stand_ins
from synapsed.parts.profile_tools.bundles.taking import roll_back, take
from tests.parts.profile_tools.made import PROFILE, Signer

OF_FILES = ("open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "shutil.rmtree", "fcntl.flock", "os.chmod")
"""Audited events: a kill before each of them."""


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path / "state")


@pytest.fixture
def signer(tmp_path: Path) -> Signer:
    return Signer(tmp_path)


def put(shelf: Shelf, signer: Signer, text: str) -> str:
    content = signer.bundle({"profiles/fake.toml": PROFILE, "profiles/text.toml": f'command = "{text}"'})
    bundle = open_bundle(content, signer.trusted)
    shelf.put(bundle, content, source="a test", now=1e9)
    return bundle.digest


def taken(shelf: Shelf, signer: Signer, text: str) -> str:
    digest = put(shelf, signer, text)
    current = shelf.counts().current
    take(digest, shelf, instead_of=current, keys=signer.trusted, unproved=["fake"])
    return digest


def counting(state: Path) -> str:
    """Returns what all profiles that stand in say; empty for the shipped ones."""
    found = stand_ins(state)
    assert set(found) in (set(), {"fake", "text"}), "half of a bundle"
    return found["text"][0].read_text() if found else ""


def test_a_bundle_counts_once_it_is_taken_and_not_before(shelf: Shelf, signer: Signer, tmp_path: Path) -> None:
    digest = put(shelf, signer, "one")
    assert counting(tmp_path / "state") == ""
    take(digest, shelf, instead_of=SHIPPED, keys=signer.trusted, unproved=["fake"])
    assert counting(tmp_path / "state") == 'command = "one"'
    assert shelf.counts().unproved == ["fake"]
    assert oct((tmp_path / "state" / "profiles").stat().st_mode & 0o777) == "0o700"


def test_back_it_goes_step_by_step_to_the_shipped_ones(shelf: Shelf, signer: Signer, tmp_path: Path) -> None:
    for text in ("one", "two"):
        taken(shelf, signer, text)
    seen = [counting(tmp_path / "state")]
    for _ in range(2):
        roll_back(shelf)
        seen.append(counting(tmp_path / "state"))
    assert seen == ['command = "two"', 'command = "one"', ""]
    with pytest.raises(InvalidRequest, match="nothing to go back"):
        roll_back(shelf)


def test_old_ones_are_kept_and_the_oldest_go(shelf: Shelf, signer: Signer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shelves, "STALE_S", -1.0)
    for number in range(shelves.KEPT + 3):
        taken(shelf, signer, f"n{number}")
    there = {path.name for path in shelf.place(SHIPPED).iterdir()}
    assert there == shelf.counts().kept
    assert len(there) == shelves.KEPT + 1


def test_what_was_compared_with_something_else_is_not_taken(shelf: Shelf, signer: Signer) -> None:
    one, two = put(shelf, signer, "one"), put(shelf, signer, "two")
    take(one, shelf, instead_of=SHIPPED, keys=signer.trusted, unproved=[])
    with pytest.raises(Busy, match="begin again"):
        take(two, shelf, instead_of=SHIPPED, keys=signer.trusted, unproved=[])
    assert shelf.counts().current == one


def test_what_was_changed_on_the_shelf_is_not_taken(shelf: Shelf, signer: Signer) -> None:
    one, two = put(shelf, signer, "one"), put(shelf, signer, "two")
    (shelf.place(one) / "bundle").write_bytes((shelf.place(two) / "bundle").read_bytes())
    with pytest.raises(Forbidden, match="begin again"):
        take(one, shelf, instead_of=SHIPPED, keys=signer.trusted, unproved=[])
    with pytest.raises(InvalidRequest, match="begin again"):
        take("0" * 64, shelf, instead_of=SHIPPED, keys=signer.trusted, unproved=[])
    with pytest.raises(Forbidden):
        take(two, shelf, instead_of=SHIPPED, keys=[], unproved=[])


def killed_before(step: int, do: Callable[[], object]) -> bool:
    """Does it in a process that is killed before its `step`th use of a file; returns False if it came to its end."""
    if (child := os.fork()) == 0:
        left = step

        def count(event: str, _: object) -> None:
            nonlocal left
            if event in OF_FILES:
                left -= 1
                if left < 0:
                    os.kill(os.getpid(), signal.SIGKILL)

        try:
            sys.addaudithook(count)
            do()
            os._exit(0)
        finally:
            os._exit(1)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, -signal.SIGKILL)
    return status != 0


@pytest.mark.night
def test_whenever_it_is_killed_the_old_or_the_new_counts(signer: Signer, tmp_path: Path) -> None:
    """And the same again comes to its end."""
    seen, step = set(), 0
    while True:
        shelf = Shelf(tmp_path / str(step))
        taken(shelf, signer, "old")
        killed = killed_before(step, lambda shelf=shelf: taken(shelf, signer, "new"))
        seen.add(counting(tmp_path / str(step)))
        if not killed:
            break
        taken(shelf, signer, "newer")
        assert counting(tmp_path / str(step)) == 'command = "newer"'
        step += 1
    assert seen == {'command = "old"', 'command = "new"'}
    assert step > 20, "it was killed in between"


def test_two_at_once_are_one_after_the_other(shelf: Shelf, signer: Signer, tmp_path: Path) -> None:
    digests = [put(shelf, signer, f"n{number}") for number in range(8)]
    done: list[str] = []
    refused: list[str] = []

    def run(digest: str) -> None:
        try:
            take(digest, shelf, instead_of=SHIPPED, keys=signer.trusted, unproved=[])
            done.append(digest)
        except Busy:
            refused.append(digest)

    threads = [threading.Thread(target=run, args=(digest,)) for digest in digests]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(done) == 1
    assert len(refused) == 7
    assert shelf.counts().current == done[0]


def test_who_holds_the_lock_is_waited_for_a_while(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch, signer: Signer
) -> None:
    monkeypatch.setattr(shelves, "LOCK_S", 0.05)
    with shelf._locked(), pytest.raises(Busy, match="under way"):
        shelf.change(lambda counts: after_taking(counts, "x", []))


@pytest.mark.parametrize("text", ["", "{", "[]", '{"current": 3}', "\x00"])
def test_a_damaged_file_is_as_none(text: str, shelf: Shelf, tmp_path: Path) -> None:
    shelf.folder.mkdir(parents=True)
    (shelf.folder / "counts.json").write_text(text)
    assert shelf.counts() == Counts()
    assert stand_ins(tmp_path / "state") == {}


def test_a_damaged_name_of_what_counts_is_as_none(shelf: Shelf, tmp_path: Path) -> None:
    shelf.folder.mkdir(parents=True)
    (shelf.folder / "counts.json").write_text(Counts(current="a\0b").model_dump_json())
    assert stand_ins(tmp_path / "state") == {}


def test_where_nothing_can_be_written_it_is_said(shelf: Shelf, signer: Signer, tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file")
    with pytest.raises(StoreError, match="cannot be written"):
        put(shelf, signer, "one")
    with pytest.raises(StoreError, match="cannot be written"):
        shelf.change(lambda _: Counts())
