"""State of a program on pipes that the next daemon cannot find in the program's output, in a file: the session of the
launch, the open prompt, and the program's requests that are answered.

The file is written before the action that it records; for answered requests, soon after. It is not forced to the disk:
a crash of the machine that loses the file ends the program as well.
"""

import json
from pathlib import Path
from typing import Annotated

import structlog
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from synapsed.shared.files import write_whole

STATE_FILE = "acp.json"
"""Name of the file, in the agent's directory."""

log = structlog.get_logger(__name__)

Place = Annotated[int, Field(ge=0)]
"""Offset in the program's output."""


class _Kept(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)


class KeptPrompt(_Kept):
    """A prompt that was given, or is about to be given; `id` is the id of its request."""

    id: str
    at: Place | None = None
    """End of the output when the program got the prompt; None if the program may not have it."""
    text: str | None = None
    """A person's words at an attached terminal; None for the message of a task, which is on record elsewhere."""
    before: tuple[str, ...] = ()
    """Blocks in front of the prompt."""


class KeptSession(_Kept):
    """A session; `at` is the offset at which it was ready."""

    session: str
    at: Place = 0
    prompt: KeptPrompt | None = None
    asked_to: Place | None = None
    """Offset up to which all requests of the program are answered, except those in `open`; None from an earlier
    version, which did not keep it."""
    open: tuple[Place, ...] = ()
    """Offsets of requests that are not answered."""


class _File(KeptSession):
    launch: str


def recall(folder: Path, launch: str) -> KeptSession | None:
    """Returns the state that an earlier daemon has kept of that launch, or None."""
    try:
        file = _File.model_validate_json((folder / STATE_FILE).read_bytes())
    except (OSError, ValidationError):
        return None
    return file if file.launch == launch else None


def keep(folder: Path, launch: str, kept: KeptSession) -> None:
    """Keeps the state for the next daemon. An error of the disk is only logged: then the next daemon knows less."""
    try:
        content = {"launch": launch, **kept.model_dump(mode="json")}
        write_whole(folder / STATE_FILE, json.dumps(content).encode(), durable=False)
    except OSError as error:
        log.warning("the session is not kept", folder=str(folder), error=str(error))
