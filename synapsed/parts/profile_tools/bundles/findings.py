"""The findings of `doctor` about the bundle of profiles that counts: its age, its signer, its faults. Blocks."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from synapsed.parts.profile_tools.bundles.shelf import SHIPPED, Shelf

type Finding = tuple[str, str, str, str]
OK, NOTE, WRONG = "ok", "note", "wrong"

WHAT = "bundle of profiles"
OLD_DAYS = 90
BACK = "synapsectl profiles update --rollback"


def findings(config: Any, state: Path) -> Iterator[Finding]:
    """Yields the findings; there is no finding if no bundle counts."""
    shelf = Shelf(state)
    counts = shelf.counts()
    if counts.current == SHIPPED:
        return
    about = shelf.about(counts.current)
    if about is None:
        yield WHAT, WRONG, f"{shelf.place(counts.current)} is damaged: the shipped profiles count", BACK
        return
    now = datetime.now(UTC).timestamp()
    days, came = (max(0, int((now - then) // 86_400)) for then in (about.made, about.came))
    detail = (
        f"made {days} days ago by {about.signer or about.key}, taken {came} days ago from {about.source}: "
        f"{', '.join(about.profiles)}"
    )
    if counts.aside:
        detail += f"; {counts.aside} is set aside while an agent is tried without it"
    if about.key not in [key.partition(" ")[0] for key in config.profiles.keys]:
        yield WHAT, WRONG, f"{detail}; its key is not in [profiles] keys any more", BACK
    elif days > OLD_DAYS:
        yield WHAT, NOTE, detail, "synapsectl profiles update --from URL, or --rollback"
    else:
        yield WHAT, OK, detail, ""
