"""Finds conversations on disk: in the programs' own transcripts, as profiles describe them. Everything here blocks on
the disk: call it in a thread. Unreadable files, and files without an id, are skipped."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Any

from synapsed.channels.transcripts import at_path, holds, parse_record, place, text_at
from synapsed.profiles.channel_spec import Listing, Transcript
from synapsed.profiles.profile import Profile
from synapsed.shared.files import open_regular

LISTED_MAX = 200
"""Conversations of one profile that are listed: the newest."""

HEAD_BYTES = 1 << 20
"""Bytes that are read of each file: the first prompt comes after the program's own instructions to the model."""

PROMPT_SHOWN = 200
"""Characters of a first prompt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PastConversation:
    """A conversation. `updated` is the time of the file's last change, in seconds since the epoch; `prompt` is the
    beginning of the first prompt."""

    profile: str
    id: str
    cwd: str | None
    updated: float
    prompt: str


def find_conversations(
    profiles: Iterable[Profile], home: Path, cwd: str | None = None, *, env: Mapping[str, str] = MappingProxyType({})
) -> list[PastConversation]:
    """Returns the conversations below `home` that one of `profiles` describes, the newest first; only those of the
    folder `cwd` if it is given. Variables in `env` may move the files (`Transcript.moved_by`). Empty conversations are
    left out: they cannot be resumed."""
    found: list[PastConversation] = []
    for profile in profiles:
        fitting = (one for one in _of_profile(profile, home, env) if cwd in (None, one.cwd))
        found += islice(fitting, LISTED_MAX)
    return sorted(found, key=lambda one: one.updated, reverse=True)


def _of_profile(profile: Profile, home: Path, env: Mapping[str, str]) -> Iterator[PastConversation]:
    seen: set[str] = set()
    for channel in profile.newest.channels.values():
        spec = channel.transcript
        if spec is None or spec.files is None or spec.listing is None:
            continue
        folder, files = place(spec, home, env)
        for updated, path in _newest(folder, files.replace("{conversation}", "*")):
            one = _read(profile.name, path, updated, spec, spec.listing)
            if one is not None and one.id not in seen:
                seen.add(one.id)
                yield one


def _newest(home: Path, pattern: str) -> list[tuple[float, Path]]:
    files = []
    for path in home.glob(pattern):
        try:
            files.append((path.stat().st_mtime, path))
        except OSError:
            continue
    return sorted(files, reverse=True)


def _read(profile: str, path: Path, updated: float, spec: Transcript, listing: Listing) -> PastConversation | None:
    id_ = cwd = prompt = None
    try:
        for number, record in enumerate(_records(path)):
            if number == 0 and any(holds(record, line) for line in listing.skip):
                return None
            id_ = id_ or _word(record, listing.id)
            cwd = cwd or _word(record, listing.cwd)
            prompt = prompt or _prompt(record, listing)
            if id_ and prompt and (cwd or listing.cwd is None):
                break
        if cwd is None and listing.cwd_file is not None:
            cwd = (path.parent / listing.cwd_file).read_text(errors="replace").strip() or None
    except OSError:
        return None
    if not id_ or not prompt or ("{conversation}" in (spec.files or "") and id_ not in path.name):
        return None
    shown = " ".join(prompt[: 4 * PROMPT_SHOWN].split())[:PROMPT_SHOWN]
    return PastConversation(profile=profile, id=id_, cwd=cwd, updated=updated, prompt=shown)


def _records(path: Path) -> Iterator[dict[str, Any]]:
    with open_regular(path) as file:
        left = HEAD_BYTES
        while left > 0 and (line := file.readline(left)):
            left -= len(line)
            if (record := parse_record(line)) is not None:
                yield record


def _prompt(record: dict[str, Any], listing: Listing) -> str:
    """Returns the person's text in `record`; "" if it has none."""
    text = next((text_at(record, one, listing) for one in listing.prompt if holds(record, one)), "")
    return "" if listing.ignore is not None and listing.ignore.search(text) else text


def _word(record: dict[str, Any], path: str | None) -> str | None:
    value = at_path(record, path) if path is not None else None
    return value if isinstance(value, str) else None
