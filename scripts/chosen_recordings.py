"""The recordings that the gate plays; all of them are played at night.

python -m scripts.chosen_recordings

They are so chosen, by what the recorded stories tell (`tests/pty/recordings`), that each profile is seen in every
activity in which any recording shows it, and each kind of prompt and each end of a turn with some profile. What room
there is beside that is given to the kinds and ends of each profile; those that no chosen recording shows are listed.
Fails if MOST recordings are too few.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
STORIES = ROOT / "tests" / "pty" / "recordings"
CHOSEN = ROOT / "tests" / "recordings" / "gate.json"

MOST = 12

ANY = "any"
"""In the place of a profile, where it does not matter which."""

_OBSERVED = re.compile(
    r"^\d+\.\d+ (?P<activity>\w+), (?:receives|held) .*?(?: asks (?P<prompt>\w+) \S+.*)?$", re.MULTILINE
)
_END = re.compile(r"^\d+\.\d+ (?P<end>ended|LinkTurnFailed|LinkTurnInterrupted)\b", re.MULTILINE)
_ENDS = {"ended": "answered", "LinkTurnFailed": "failed", "LinkTurnInterrupted": "interrupted"}

type Pairs = frozenset[tuple[str, str]]
"""Each of a profile, and what it is seen in."""


def stories() -> dict[str, str]:
    """The story of each recording, by the recording's name (`claude-2.1.330/accept`)."""
    return {_name(path.stem): path.read_text() for path in sorted(STORIES.glob("*.txt"))}


def _name(stem: str) -> str:
    return re.sub(r"^(.*?-\d[\d.]*)-", r"\1/", stem)


def musts(name: str, story: str) -> Pairs:
    """The activities of the recording's profile, and what it shows of what is to be seen with any."""
    seen = {(_profile(name), found["activity"]) for found in _OBSERVED.finditer(story)}
    return frozenset(seen | {(ANY, what) for _, what in wishes(name, story)})


def wishes(name: str, story: str) -> Pairs:
    """The kinds of prompts that the recording shows of its profile, and how its turns end."""
    asked = {found["prompt"] for found in _OBSERVED.finditer(story) if found["prompt"]}
    return frozenset((_profile(name), one) for one in asked | {_ENDS[found["end"]] for found in _END.finditer(story)})


def _profile(name: str) -> str:
    return name.partition("/")[0].rpartition("-")[0]


def choose(needed: Mapping[str, Pairs], wanted: Mapping[str, Pairs], most: int = MOST) -> list[str]:
    """At most `most` names that show all that is `needed`, and of what is `wanted` as much as comes along: next is the
    one that adds most, of several one of the profile that has fewest, then the first by name. Raises ValueError where
    they are too few."""
    chosen: list[str] = []
    must, wish = _all(needed.values()), _all(wanted.values())
    while (must or wish) and len(chosen) < most:
        profiles = Counter(map(_profile, chosen))
        best = min(
            sorted(needed),
            key=lambda name: (-len(needed[name] & must), -len(wanted[name] & wish), profiles[_profile(name)]),
        )
        chosen.append(best)
        must, wish = must - needed[best], wish - wanted[best]
    if must:
        raise ValueError(f"{most} recordings are too few: none of them shows {_told(must)}")
    return sorted(chosen)


def document() -> dict[str, Any]:
    """What CHOSEN has to say."""
    told = stories()
    wanted = {name: wishes(name, story) for name, story in told.items()}
    chosen = choose({name: musts(name, story) for name, story in told.items()}, wanted)
    shown = _all(wanted[name] for name in chosen)
    return {"recordings": chosen, "only at night": _told(_all(wanted.values()) - shown)}


def _all(several: Iterable[Pairs]) -> Pairs:
    return frozenset[tuple[str, str]]().union(*several)


def _told(pairs: Pairs) -> list[str]:
    return [f"{profile}: {what}" for profile, what in sorted(pairs)]


if __name__ == "__main__":
    CHOSEN.write_text(json.dumps(document(), indent=2) + "\n")
