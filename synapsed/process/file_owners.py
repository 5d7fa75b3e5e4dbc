"""Owners of files: the module refuses to make files of root in a person's home, and finds files of other users."""

import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from synapsed.errors import LaunchError

INVITED = ("SUDO_UID", "DOAS_USER", "PKEXEC_UID")
"""Variables of programs by which a person becomes root, and which may keep the person's other variables."""
NAMED_MAX = 5
"""Files of other users that are named one by one."""


def user_name(uid: int) -> str:
    """Returns the name of a user, or the number if the system knows no name."""
    import pwd

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"


def why_not_as_root(places: Iterable[Path], environ: Mapping[str, str]) -> str | None:
    """Returns a sentence that says why this user should make no files at `places`; None if it may. Root may use a home
    that is named for synapsed (SYNAPSED_HOME), unless a person has become root for a moment."""
    if os.geteuid() != 0:
        return None
    if environ.get("SYNAPSED_HOME") and not any(environ.get(name) for name in INVITED):
        return None
    for place in places:
        folder = next(path for path in (place, *place.parents) if path.exists())
        if owner := folder.stat().st_uid:
            name = user_name(owner)
            return (
                f"{folder} belongs to {name}, and this runs as root: files that it makes there would keep {name} out. "
                f"Do it as {name}, or give root a home of its own (sudo -H, or SYNAPSED_HOME)"
            )
    return None


def foreign_files(folders: Iterable[Path]) -> Iterator[tuple[Path, int]]:
    """Yields files below `folders` that belong to other users, with their owners. Unreadable folders are skipped."""
    own = os.geteuid()
    for folder in folders:
        if not folder.exists():
            continue
        for path in (folder, *folder.rglob("*")):
            try:
                owner = path.lstat().st_uid
            except OSError:
                continue
            if owner != own:
                yield path, owner


def told_foreign(folders: Iterable[Path]) -> tuple[str, str] | None:
    """Returns other users' files below `folders`, and the command that gives them back; None if all are ours."""
    folders = list(folders)
    found = list(foreign_files(folders))
    if not found:
        return None
    named = ", ".join(f"{path} ({user_name(owner)}'s)" for path, owner in found[:NAMED_MAX])
    more = f", and {len(found) - NAMED_MAX} more" if len(found) > NAMED_MAX else ""
    return f"not yours: {named}{more}", mend((path for path, _ in found), folders)


def mend(paths: Iterable[Path], folders: Sequence[Path] = ()) -> str:
    """Returns the command that makes this user the owner of `paths`. A folder includes all that is below it; if there
    are many paths, the command names those of `folders` that contain them."""
    import shlex

    tops: list[Path] = []
    for path in sorted(set(paths)):
        if not any(path.is_relative_to(top) for top in tops):
            tops.append(path)
    if len(tops) > NAMED_MAX:
        tops = sorted({next(filter(path.is_relative_to, folders), path) for path in tops})
    owner = f"{os.geteuid()}:{os.getegid()}"
    return shlex.join(["sudo", "chown", "-R", owner, *map(str, tops)])


def private_directory(path: Path) -> Path:
    """Makes `path` a directory that only this user can enter, or raises LaunchError if there is anything else. It is
    for sockets in shared places: a link, or a directory that another user put there first, is refused."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = path.lstat()
    except OSError as error:
        raise LaunchError(f"the directory {path} cannot be made: {error}") from error
    if not stat.S_ISDIR(status.st_mode):
        raise LaunchError(f"{path} must be a directory of this user, and no link")
    if status.st_uid != os.getuid():
        whose = user_name(status.st_uid)
        raise LaunchError(f"{path} must be a directory of this user, and is {whose}'s: '{mend([path])}' gives it back")
    if status.st_mode & 0o077:
        path.chmod(0o700)
    return path
