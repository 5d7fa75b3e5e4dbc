"""Does the work of `synapsectl profiles update`: looks at a bundle, takes it, or goes back to the one before. Blocks.

Taking has two steps, between which a person is asked: `look` returns the changes, and `take` makes exactly these, if
the profiles that count are still those of the comparison.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from synapsed import __version__
from synapsed.errors import Busy, Forbidden, InvalidRequest
from synapsed.outgoing import OutgoingConfig
from synapsed.parts.profile_tools.bundles.bundle import NO_KEYS, Bundle, numbers, open_bundle
from synapsed.parts.profile_tools.bundles.fetching import get, shown
from synapsed.parts.profile_tools.bundles.proving import proved_at
from synapsed.parts.profile_tools.bundles.shelf import SHIPPED, Counts, Shelf, after_rollback, after_taking


def look(
    source: str, shelf: Shelf, *, keys: Sequence[str], outgoing: OutgoingConfig, older: bool, now: float
) -> dict[str, Any]:
    """Returns the changes that the bundle at `source` would make; the bundle is saved, but does not count yet. Raises
    SynapsedError."""
    if not keys:
        raise Forbidden(NO_KEYS)  # before anything is fetched
    content = get(source, outgoing)
    bundle = open_bundle(content, keys)
    counts = shelf.counts()
    _check(bundle, shelf, counts, older=older)
    place = shelf.put(bundle, content, source=shown(source), now=now)
    try:
        told = _proved(place, bundle)
    except BaseException:
        shelf.remove(bundle.digest)
        raise
    return {
        "digest": bundle.digest,
        "signer": bundle.signer.shown,
        "made": bundle.manifest.made,
        "needs": bundle.manifest.needs,
        "instead_of": counts.current,
        "counts": counts.current == bundle.digest,
        "profiles": told["profiles"],
        "gone": told["gone"],
    }


def _proved(place: Path, bundle: Bundle) -> dict[str, Any]:
    told = proved_at(place, since=bundle.manifest.made_with)
    if told["faults"]:
        more = told["faults_in_all"] - 1
        words = f"{told['faults'][0]}{f', and {more} more' if more else ''}"
        raise InvalidRequest(f"its profiles do not read their recordings here: {words}", faults=told["faults"])
    return told


def _check(bundle: Bundle, shelf: Shelf, counts: Counts, *, older: bool) -> None:
    """Raises Forbidden for a bundle that is not for this installation at this time."""
    needs = bundle.manifest.needs
    if numbers(needs) > numbers(__version__):
        raise Forbidden(f"it is for synapsed {needs} or newer, and this is {__version__}: upgrade synapsed first")
    current = shelf.about(counts.current) if counts.current != SHIPPED else None
    if current is not None and bundle.manifest.made < current.made and not older:
        raise Forbidden("it is older than the bundle in use: --older takes it nevertheless")


def take(digest: str, shelf: Shelf, *, instead_of: str, keys: Sequence[str], unproved: Sequence[str]) -> dict[str, Any]:
    """Puts the bundle that was shown in use. Raises SynapsedError."""
    try:
        content = (shelf.place(digest) / "bundle").read_bytes()
    except OSError:
        raise InvalidRequest("the bundle is not there any more: begin again") from None
    if open_bundle(content, keys).digest != digest:
        raise Forbidden("the bundle has changed since it was shown: begin again")

    def decide(counts: Counts) -> Counts:
        if counts.current != instead_of:
            raise Busy("other profiles are in use than when this was shown: begin again")
        return after_taking(counts, digest, list(unproved))

    return told(shelf, shelf.change(decide))


def roll_back(shelf: Shelf) -> dict[str, Any]:
    """Puts the bundle before, or the shipped profiles, in use again. Raises SynapsedError."""

    def decide(counts: Counts) -> Counts:
        if counts.current == SHIPPED:
            raise InvalidRequest("no bundle is in use: there is nothing to go back from")
        return after_rollback(counts)

    return told(shelf, shelf.change(decide))


def told(shelf: Shelf, counts: Counts) -> dict[str, Any]:
    about = shelf.about(counts.current) if counts.current != SHIPPED else None
    return {
        "counts": counts.current,
        "made": about.made if about is not None else None,
        "signer": about.signer or about.key if about is not None else None,
        "profiles": about.profiles if about is not None else [],
    }
