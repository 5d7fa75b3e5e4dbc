"""The page of the programs has a row for each profile of a program, in its words."""

from pathlib import Path

from synapsed.profiles.library import ProfileLibrary
from synapsed.profiles.profile import Profile

PAGE = Path(__file__).parents[2] / "docs" / "programs.md"
NO_PROGRAMS = {"acp", "dummy", "generic"}


def row(profile: Profile) -> str:
    """The profile's line of the table."""
    way = "ACP" if profile.transport == "pipes" else "terminal"
    run = profile.command if profile.transport == "pty" else " ".join([profile.command, *profile.args])
    proved = profile.verified if not profile.unverified else f"not: {profile.unverified}"
    program = profile.description.removesuffix(", by ACP")
    install = profile.install.replace("|", "\\|")
    return f"| `{profile.name}` | {program} | `{run}` | {way} | {proved} | `{install}` |"


def test_each_program_has_its_row() -> None:
    library = ProfileLibrary.builtin()
    wanted = [row(library.get(name)) for name in library.names() if name not in NO_PROGRAMS]
    found = [line for line in PAGE.read_text().splitlines() if line.startswith("| `") and "`start`" not in line]
    assert found == wanted


def test_each_program_is_proved_or_says_that_it_is_not() -> None:
    library = ProfileLibrary.builtin()
    for name in set(library.names()) - NO_PROGRAMS:
        profile = library.get(name)
        assert (profile.verified is None) == bool(profile.unverified), name
        assert profile.install, name
