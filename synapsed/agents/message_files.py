"""Writes, tidies up and removes the files that go with messages (`tasks.prompt_text`), in an agent's inbox folder.
Everything here blocks on the disk: call it in a thread."""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Collection, Iterable
from pathlib import Path

from synapsed.shared.files import write_whole
from synapsed.tasks.prompt_text import SHORT_ID, Enclosure

FINISHED_KEPT_S = 7 * 24 * 3600.0
"""Seconds for which the files of a finished task are kept in the inbox."""

INBOX_MAX = 256 << 20
"""Largest size of an agent's inbox in bytes; beyond it, the oldest files of finished tasks go earlier."""

TIDY_EVERY_S = 24 * 3600.0
"""Seconds between cleanups of inboxes, besides the one at the daemon's start."""


def put(inbox: Path, enclosures: Iterable[Enclosure], kept: Path) -> None:
    """Writes the files, 0600, each whole or not at all; existing ones are replaced. Files that are in the folder `kept`
    already are not written again. Raises OSError."""
    inbox.mkdir(mode=0o700, parents=True, exist_ok=True)
    for enclosure in enclosures:
        if enclosure.kept is None:
            write_whole(inbox / enclosure.name, enclosure.content)
        else:
            _take(kept / enclosure.kept, inbox / enclosure.name)


def _take(source: Path, target: Path) -> None:
    """Copies the file: the agent may change the files in its inbox, and other agents may be given the same file."""
    if target.exists() and not source.exists():
        return  # it was copied before, and the source is gone
    handle, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)  # 0600, exclusively
    os.close(handle)
    path = Path(temporary)
    try:
        shutil.copyfile(source, path)
        path.replace(target)
    finally:
        path.unlink(missing_ok=True)


def forget(inbox: Path, tasks: Collection[str]) -> None:
    """Removes the files that came with `tasks`. Raises OSError."""
    gone = {task[:SHORT_ID] for task in tasks}
    for entry, _ in _files(inbox):
        if _task_of(entry) in gone:
            Path(entry.path).unlink(missing_ok=True)


def tidy(inbox: Path, open_tasks: Collection[str], *, now: float | None) -> int:
    """Removes the files of finished tasks: those older than FINISHED_KEPT_S (with `now` None, none are), and the oldest
    if all together have more than INBOX_MAX bytes. `open_tasks` are ids; their files stay. Returns how many were
    removed. Raises OSError if the folder cannot be read."""
    kept = {task[:SHORT_ID] for task in open_tasks}
    files = sorted(_files(inbox), key=lambda file: file[1].st_mtime)
    total = sum(stat.st_size for _, stat in files)
    removed = 0
    for entry, stat in files:
        if _task_of(entry) in kept:
            continue
        if total > INBOX_MAX or (now is not None and now - stat.st_mtime > FINISHED_KEPT_S):
            Path(entry.path).unlink(missing_ok=True)
            total -= stat.st_size
            removed += 1
    return removed


def _files(inbox: Path) -> list[tuple[os.DirEntry[str], os.stat_result]]:
    """Returns the files in `inbox`. The agent may remove files as well: one that vanishes meanwhile is left out."""
    found = []
    with os.scandir(inbox) if inbox.is_dir() else contextlib.nullcontext(()) as entries:
        for entry in entries:
            with contextlib.suppress(FileNotFoundError):
                if entry.is_file(follow_symlinks=False):
                    found.append((entry, entry.stat(follow_symlinks=False)))
    return found


def _task_of(entry: os.DirEntry[str]) -> str:
    """Returns the beginning of the id of the task that a file came with."""
    return entry.name.lstrip(".").partition("-")[0]
