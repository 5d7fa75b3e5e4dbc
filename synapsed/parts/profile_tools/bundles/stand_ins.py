"""Returns the profiles of the bundle that counts to the readers of profiles. Blocks; never raises."""

from pathlib import Path

from synapsed.parts.profile_tools.bundles.shelf import SHIPPED, Shelf


def stand_ins(state: Path) -> dict[str, tuple[Path, str]]:
    """Returns, by name, the files that replace built-in profiles, each with the version of synapsed that the bundle was
    made with."""
    try:
        return _standing(Shelf(state))
    except (OSError, ValueError):  # a damaged shelf: the shipped profiles count
        return {}


def _standing(shelf: Shelf) -> dict[str, tuple[Path, str]]:
    counts = shelf.counts()
    standing = _of_bundle(shelf, counts.current)
    if counts.aside:
        standing.pop(counts.aside, None)
        before = _of_bundle(shelf, counts.before[0]) if counts.before else {}
        standing |= {name: found for name, found in before.items() if name == counts.aside}
    return standing


def _of_bundle(shelf: Shelf, digest: str) -> dict[str, tuple[Path, str]]:
    about = shelf.about(digest) if digest != SHIPPED else None
    if about is None:
        return {}
    files = {name: shelf.place(digest) / "profiles" / f"{name}.toml" for name in about.profiles}
    return {name: (file, about.made_with) for name, file in files.items() if file.is_file()}
