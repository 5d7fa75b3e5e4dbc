"""The control token, in a file that only its owner can read: a client that knows the token counts as the person."""

import secrets
from pathlib import Path

from synapsed.errors import ConfigError
from synapsed.shared.files import read_private, write_private

TOKEN_BYTES = 32
TOKEN_FILE_MAX = 4096
"""Bytes of the file that are read."""


def load_or_create(path: Path) -> str:
    """Returns the token in `path`; a new one is written (0600) if there is no such file. Raises ConfigError if the file
    belongs to another user, is readable by others, is a link, or holds no token, and StoreError if a new token cannot
    be written. The caller holds the daemon's lock, so that no second daemon writes the file meanwhile."""
    try:
        found = read_private(path, limit=TOKEN_FILE_MAX, cure="remove the file (a new one is made), or 'chmod 600' it")
    except FileNotFoundError:
        token = secrets.token_urlsafe(TOKEN_BYTES)
        put_back(path, token)
        return token
    token = found.decode("ascii", "replace").strip()
    if len(token) < TOKEN_BYTES or not token.isprintable() or " " in token:
        raise ConfigError(f"{path}: holds no token; remove the file and a new one is made", file=str(path))
    return token


def put_back(path: Path, token: str) -> None:
    """Writes the daemon's token into its file again after the file was removed. Raises StoreError."""
    write_private(path, f"{token}\n".encode())
