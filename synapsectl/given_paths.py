"""Paths as people type them behind options."""

import os

__all__ = ["from_home"]


def from_home(path: str) -> str:
    """Returns `path`, below the home directory if it begins with `~` and there is no such path as it stands: shells
    leave the `~` of `--cwd=~/work` to the program."""
    if path.startswith("~") and not os.path.lexists(path):
        return os.path.expanduser(path)  # noqa: PTH111 - pathlib takes 4 ms to import
    return path
