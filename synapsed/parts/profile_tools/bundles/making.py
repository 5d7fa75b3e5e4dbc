"""Makes a bundle of files of profiles, and of recordings. Blocks."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from synapsed import __version__
from synapsed.errors import InvalidRequest
from synapsed.parts.profile_tools.bundles.archive import SIZES
from synapsed.parts.profile_tools.bundles.bundle import HeldProfile, Manifest, open_bundle, seal
from synapsed.parts.profile_tools.bundles.keys import public_text, read_key
from synapsed.parts.profile_tools.bundles.proving import proved
from synapsed.shared.files import open_regular, write_whole

EXPECTED = ".expected.json"


def make(
    files: Sequence[Path],
    *,
    key: Path,
    out: Path,
    needs: str | None,
    recordings: Sequence[Path],
    expected: Sequence[Path],
    scratch: Path,
    now: float,
) -> dict[str, Any]:
    """Writes the bundle `out`, if its profiles read their recordings as expected. `recordings` are folders called
    PROFILE-VERSION; `expected` are folders of the same names with the expectations that are not beside the recordings.
    Raises SynapsedError."""
    private = read_key(key)
    if not files:
        raise InvalidRequest("say which profiles: their names, or files")
    if twice := [file for file in files if [other.stem for other in files].count(file.stem) > 1]:
        raise InvalidRequest(f"{twice[0].stem} is named twice: {', '.join(map(str, twice))}")
    content = {f"profiles/{file.stem}.toml": _read(file) for file in files}
    names = {file.stem for file in files}
    for folder in recordings:
        if folder.name.rpartition("-")[0] in names:
            content |= _recorded(folder, [place for place in expected if place.name == folder.name])
    told = proved(content, scratch, since=__version__)
    if told["faults"]:
        raise InvalidRequest(f"its profiles do not read their recordings: {told['faults'][0]}", faults=told["faults"])
    held = [
        HeldProfile(name=name, verified=about["verified"], since=about["since"])
        for name, about in told["profiles"].items()
        if about["inside"]
    ]
    manifest = Manifest(made=now, made_with=__version__, needs=needs or __version__, profiles=held)
    whole = seal(manifest, content, private)
    public = public_text(private)
    opened = open_bundle(whole, [public])  # as its receiver will
    try:
        write_whole(out, whole, mode=0o644)
    except OSError as error:
        raise InvalidRequest(f"{out} cannot be written: {error.strerror}") from None
    profiles = [profile.model_dump() for profile in held]
    return {
        "bundle": str(out),
        "digest": opened.digest,
        "bytes": len(whole),
        "key": public,
        "profiles": profiles,
        "recordings": told["recordings"],
        "left_out": {name: about["left_out"] for name, about in told["profiles"].items() if about["left_out"]},
    }


def _read(file: Path) -> bytes:
    limit = max(size for _, size in SIZES)
    try:
        with open_regular(file) as opened:
            return opened.read(limit + 1)
    except OSError as error:
        raise InvalidRequest(f"{file}: cannot be read: {error.strerror}", file=str(file)) from None


def _recorded(folder: Path, elsewhere: Sequence[Path]) -> dict[str, bytes]:
    """Returns the recordings of a folder that have an expectation."""
    found: dict[str, bytes] = {}
    for raw in sorted(folder.glob("*.raw")):
        beside = [raw.with_suffix(EXPECTED), *(place / f"{raw.stem}.json" for place in elsewhere)]
        expectation = next((file for file in beside if file.is_file()), None)
        if expectation is None:
            continue
        inside = f"recordings/{folder.name}/{raw.stem}"
        found |= {
            f"{inside}.raw": _read(raw),
            f"{inside}.json": _read(raw.with_suffix(".json")),
            f"{inside}{EXPECTED}": _read(expectation),
        }
    return found
