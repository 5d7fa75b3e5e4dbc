"""The daemon's own files: their commit, and a check if they were replaced since the start."""

from collections.abc import Sequence
from pathlib import Path

PACKAGE = Path(__file__).parent.parent
COMMIT_FILE = "_commit"
"""File in the package, written when a wheel is built (`scripts/build_hook.py`)."""
COMMIT_LENGTH = 10
VERSIONS_FILE = "_versions.json"
"""File in the package, written likewise: the result of `synapsed.cli.versions`, for readers of a wheel."""
WATCHED = ("__init__.py", "daemon.py", "hookclient.py", "keeper/__main__.py")
"""Some files that every installation writes."""
NEWER = "newer files on disk"
GONE = "the installed files are gone"


def commit(package: Path = PACKAGE) -> str:
    """Returns the commit that this program was built from, or runs from; empty if it is unknown."""
    try:
        return (package / COMMIT_FILE).read_text(encoding="ascii").strip()[:COMMIT_LENGTH]
    except (OSError, ValueError):
        return _of_checkout(package.parent)


def _of_checkout(root: Path) -> str:
    """Reads git's own files: git itself would take longer than all the rest of `version`."""
    try:
        git = root / ".git"
        if git.is_file():  # a worktree
            git = root / git.read_text(encoding="utf-8").removeprefix("gitdir:").strip()
        head = (git / "HEAD").read_text(encoding="utf-8").strip()
        if not head.startswith("ref:"):
            return head[:COMMIT_LENGTH]
        ref = head.removeprefix("ref:").strip()
        shared = git / "commondir"
        common = git / shared.read_text(encoding="utf-8").strip() if shared.exists() else git
        if (loose := common / ref).exists():
            return loose.read_text(encoding="ascii").strip()[:COMMIT_LENGTH]
        packed = (common / "packed-refs").read_text(encoding="utf-8").splitlines()
        return next((line[:COMMIT_LENGTH] for line in packed if line.endswith(f" {ref}")), "")
    except (OSError, ValueError):
        return ""


def with_commit(version: str, commit: str) -> str:
    return f"{version} ({commit})" if commit else version


class InstalledFiles:
    """The files as they were when this object was made."""

    def __init__(self, package: Path = PACKAGE, names: Sequence[str] = WATCHED) -> None:
        self._package = package
        self._files = [package / name for name in names]
        self._known = [_identity(path) for path in self._files]

    def problem(self) -> str:
        """Returns a warning if files were replaced, else an empty text. Blocks for a moment."""
        now = [_identity(path) for path in self._files]
        if now == self._known:
            return ""
        if None in now:
            return (
                f"{GONE} from {self._package}: agents that live go on, new starts fail until they are there again, or "
                "until the daemon is started from where they are now"
            )
        return (
            f"{NEWER}: restart the service ('systemctl --user restart synapsed'; without one 'synapsectl shutdown "
            f"--keep-agents' and 'synapsectl up'); {self._package} was replaced, agents that live go on"
        )


def _identity(path: Path) -> tuple[int, int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
