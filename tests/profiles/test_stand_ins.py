"""Profiles in place of built-in ones: as a whole, below the person's own, and only where they are newer."""

from pathlib import Path

import pytest

from synapsed import __version__
from synapsed.errors import ConfigError
from synapsed.profiles.library import NEWER, ProfileLibrary, StandIn

BUILT_IN = """
command = "sh"
args = ["--old"]
verified = "2.0"
[ready]
quiet_ms = 40
"""


class Places:
    def __init__(self, root: Path) -> None:
        self.built_in, self.bundle, self.user = (root / name for name in ("built-in", "bundle", "user"))
        for folder in (self.built_in, self.bundle, self.user):
            folder.mkdir()
        (self.built_in / "fake.toml").write_text(BUILT_IN)
        self.since = __version__

    def stands_in(self, text: str, name: str = "fake") -> "Places":
        (self.bundle / f"{name}.toml").write_text(text)
        return self

    def library(self) -> ProfileLibrary:
        return ProfileLibrary(
            [self.built_in, self.user],
            lambda: {path.stem: StandIn(path, self.since) for path in self.bundle.glob("*.toml")},
        )


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return Places(tmp_path)


def test_it_counts_as_a_whole(places: Places) -> None:
    profile = places.stands_in('command = "env"\nverified = "2.0"').library().get("fake")
    assert (profile.command, profile.args, profile.ready.quiet_ms) == ("env", [], 250)
    assert profile.source == str(places.bundle / "fake.toml")


def test_a_persons_own_file_wins_over_it_key_by_key(places: Places) -> None:
    (places.user / "fake.toml").write_text('command = "mine"')
    profile = places.stands_in('command = "env"\nargs = ["--new"]\nverified = "2.0"').library().get("fake")
    assert (profile.command, profile.args) == ("mine", ["--new"])


@pytest.mark.parametrize(
    ("verified", "since", "counts"),
    [
        ("2.1", __version__, True),
        ("2.1", "0.0.1", True),  # kept over an upgrade of synapsed
        ("2.0", __version__, True),
        ("2.0", "999.0", True),
        ("2.0", "0.0.1", False),  # an upgrade brought one for the same version of the program
        ("1.9", "999.0", False),
        (None, __version__, True),
        (None, "0.0.1", False),
        ("2.1-beta", __version__, True),
    ],
)
def test_the_newer_one_counts(verified: str | None, since: str, counts: bool, places: Places) -> None:
    places.since = since
    told = "" if verified is None else f'verified = "{verified}"'
    library = places.stands_in(f'command = "env"\n{told}').library()
    assert library.get("fake").command == ("env" if counts else "sh")
    assert library.left_out == ({} if counts else {"fake": NEWER})


def test_one_that_is_not_built_in_is_there_whatever_made_it(places: Places) -> None:
    places.since = "0.0.1"
    assert places.stands_in('command = "env"', "more").library().get("more").command == "env"


def test_one_that_this_version_cannot_read_does_not_count(places: Places) -> None:
    """As after an upgrade that knows a key no more: the daemon comes up all the same."""
    for text in (
        'command = "env"\nverified = "2.0"\nunheard_of = 1',
        "command =",
        'extends = "nobody"\nverified = "2.0"',
    ):
        library = places.stands_in(text).library()
        assert library.get("fake").command == "sh"
        assert "bundle" in library.left_out["fake"]


def test_what_extends_one_that_cannot_be_read_does_not_count_either(places: Places) -> None:
    places.stands_in('verified = "2.0"\nunheard_of = 1').stands_in('extends = "fake"', "fork")
    library = places.library()
    assert set(library.left_out) == {"fake", "fork"}
    assert library.names() == ["fake"]


def test_what_extends_each_other_is_found_among_them(places: Places) -> None:
    places.stands_in('command = "env"\nverified = "2.0"').stands_in('extends = "fake"\nargs = ["x"]', "fork")
    profile = places.library().get("fork")
    assert (profile.command, profile.args) == ("env", ["x"])


def test_a_circle_among_them_leaves_both_out(places: Places) -> None:
    places.stands_in('extends = "two"', "one").stands_in('extends = "one"', "two")
    library = places.library()
    assert set(library.left_out) == {"one", "two"}
    assert library.names() == ["fake"]


def test_a_wrong_file_of_the_person_is_an_error_as_before(places: Places) -> None:
    (places.user / "fake.toml").write_text("cols = 1")
    with pytest.raises(ConfigError, match="cols"):
        places.stands_in('command = "env"\nverified = "2.0"').library()


def test_they_are_read_again_with_the_rest(places: Places) -> None:
    library = places.library()
    assert library.get("fake").command == "sh"
    again = places.stands_in('command = "env"\nverified = "2.0"') and library.again()
    assert again.get("fake").command == "env"
    library.become(again)
    assert library.get("fake").command == "env"


def test_one_by_itself_is_the_same(tmp_path: Path) -> None:
    (tmp_path / "dummy.toml").write_text('command = "env"\nverified = "9"')
    found = {"dummy": StandIn(tmp_path / "dummy.toml", __version__)}
    one = ProfileLibrary.one(tmp_path / "no folder", "dummy", lambda: found)
    assert one.command == "env"
    assert one == ProfileLibrary.standard(tmp_path / "no folder", lambda: found).get("dummy")
