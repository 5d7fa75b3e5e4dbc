"""The maildir of an agent's hooks: reports wait in `new/` until they are taken, then in `cur/` until they are settled,
that is, until the events about them are stored. Short-lived reports, of which a turn may have thousands, wait in
`passing/` instead, so that they do not delay others.

Taking moves a file, settling deletes it: a report that was taken but is not settled when the daemon is killed is taken
again. Unreadable files go to `bad/`. Everything here blocks on the disk: call it in a thread.
"""

import errno
import os
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import structlog

from synapsed.shared.files import open_regular
from synapsed.shared.outside_json import NotJson, read_object
from synapsed.shared.regex import regex

FILE_MAX_BYTES = 17 << 20
"""Most bytes of a report: the hook client's limit and the envelope."""
TAKEN_MAX = 256
"""Files taken at once."""
KEPT_MAX = 512
"""Files in `cur/`, and in `passing/`; above that the oldest are deleted, though they are not settled."""
BAD_MAX = 20
"""Most files in `bad/`, kept for a person to look at; further ones are deleted."""

_NAME = regex(r"(\d{20})-\d+\.json")
_HEAD = regex(rb'\{"event":"([^"]{1,100})","at_ns":(\d{1,20}),"wall":(\d+\.\d+),"payload":')
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """One event as a hook reported it. `payload` is empty if it is missing or unreadable."""

    event: str
    at_ns: int
    wall: float
    payload: dict[str, Any] = field(default_factory=dict)


class Maildir:
    """Reader of one maildir, made by `launch_additions.prepare`. Reports of the `passing` events may be lost.

    A hook can outlive its program, and report into the maildir of the next launch: older reports than `since_ns` are
    deleted unread.
    """

    def __init__(self, root: Path, *, passing: Collection[str] = (), since_ns: int = 0) -> None:
        self._root = root
        self._passing = passing
        self._since_ns = since_ns

    def recover(self) -> None:
        """Makes reports that were taken but never settled new again. Call it once, before the first `take`."""
        for path in self._taken():
            path.rename(self._root / "new" / path.name)

    def take(self) -> list[Report]:
        """Returns the next reports in their order, at most TAKEN_MAX, up to the first that cannot be read or moved now.
        Raises OSError if there is no report before that one."""
        reports: list[Report] = []
        for path in self._files("new")[:TAKEN_MAX]:
            try:
                if _when(path) < self._since_ns:
                    path.unlink(missing_ok=True)
                    continue
                report, whole = self._read(path)
                kept = "passing" if report is not None and report.event in self._passing else "cur"
                self._move(path, kept if whole else "bad")
            except OSError:
                if not reports:
                    raise
                break
            if report is not None:
                reports.append(report)
        if reports:
            self._bound()
        return reports

    def settle(self, at_ns: int) -> None:
        """Deletes the reports up to `at_ns`, which are durable elsewhere."""
        for path in self._taken():
            if _when(path) <= at_ns:
                path.unlink(missing_ok=True)

    def _taken(self) -> list[Path]:
        return self._files("cur") + self._files("passing")

    def _files(self, folder: str) -> list[Path]:
        """Returns the regular files: no report is a link, a folder, or a pipe."""
        try:
            with os.scandir(self._root / folder) as entries:
                found = [
                    one.name for one in entries if _NAME.fullmatch(one.name) and one.is_file(follow_symlinks=False)
                ]
        except FileNotFoundError:
            return []
        return [self._root / folder / name for name in sorted(found)]

    def _read(self, path: Path) -> tuple[Report | None, bool]:
        """Returns the report, and True if it is whole. A broken report still has its event's name."""
        try:
            with open_regular(path) as file:
                content = file.read(FILE_MAX_BYTES + 1)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            return None, False  # a bad sector stays one: all reports behind it would wait for ever
        head = _HEAD.match(content)
        if head is None:
            return None, False
        event, at_ns, wall = head[1].decode("ascii", "replace"), int(head[2]), float(head[3])
        if len(content) > FILE_MAX_BYTES:
            return Report(event=event, at_ns=at_ns, wall=wall), False
        try:
            payload = read_object(content.decode("utf-8", "replace"))["payload"]
        except (NotJson, KeyError):
            return Report(event=event, at_ns=at_ns, wall=wall), False
        return Report(event=event, at_ns=at_ns, wall=wall, payload=payload if isinstance(payload, dict) else {}), True

    def _move(self, path: Path, folder: str) -> None:
        target = self._root / folder
        target.mkdir(mode=0o700, exist_ok=True)
        if folder == "bad":
            _log.warning("hook report cannot be read", file=path.name, kept_in=str(target))
            if sum(1 for _ in target.iterdir()) >= BAD_MAX:
                path.unlink(missing_ok=True)
                return
        path.rename(target / path.name)

    def _bound(self) -> None:
        for folder in ("cur", "passing"):
            kept = self._files(folder)
            if len(kept) > KEPT_MAX:
                log = _log.info if folder == "cur" else _log.debug
                log("old hook reports are let go, unsettled", count=len(kept) - KEPT_MAX, folder=str(self._root))
            for path in kept[:-KEPT_MAX]:
                path.unlink(missing_ok=True)


def _when(path: Path) -> int:
    return int(path.name[:20])
