"""Runs the daemon's own reader of profiles, in a process of its own, to check the profiles of a bundle. Blocks."""

import json
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from synapsed import own_python
from synapsed.errors import InvalidRequest, StoreError

PROVE_S = 600.0


def proved(files: Mapping[str, bytes], scratch: Path, *, since: str) -> dict[str, Any]:
    """Returns the findings of `synapsed profile prove` about files that are not on disk yet. Raises InvalidRequest."""
    try:
        scratch.mkdir(mode=0o700, parents=True, exist_ok=True)
        place = Path(tempfile.mkdtemp(prefix=".prove-", dir=scratch))
        try:
            for name, content in files.items():
                (place / name).parent.mkdir(parents=True, exist_ok=True)
                (place / name).write_bytes(content)
            return proved_at(place, since=since)
        finally:
            shutil.rmtree(place, ignore_errors=True)
    except OSError as error:
        raise StoreError(f"{scratch} cannot be written: {error.strerror}") from error


def proved_at(place: Path, *, since: str, recorded: bool = True) -> dict[str, Any]:
    """Returns the findings of `synapsed profile prove` about a folder with profiles and recordings. Raises
    InvalidRequest."""
    command = own_python.command("synapsed.cli", "profile", "prove", str(place), "--since", since)
    try:
        done = subprocess.run(
            [*command, *([] if recorded else ["--no-recordings"])],
            cwd=own_python.PACKAGES,
            capture_output=True,
            timeout=PROVE_S,
            check=False,
        )
        told: dict[str, Any] = json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise InvalidRequest(f"its profiles cannot be looked at: {error}") from None
    if isinstance(failed := told.get("error"), dict):
        raise InvalidRequest(str(failed["message"]).replace(f"{place}/", ""))
    return told
