"""The things that the next daemon has to know of a program on pipes and that stand in no output of it: which session
was opened in the launch, which prompt is open there, and which of the program's requests are answered.

The file is written before what it tells of is done, or soon after what nothing else has to know. It is not forced to
the disk: what loses it loses the program as well.
"""

import json
from pathlib import Path
from typing import Annotated

import structlog
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from synapsed.shared.files import write_whole

STATE_FILE = "acp.json"
"""In the agent's directory."""

log = structlog.get_logger(__name__)

Place = Annotated[int, Field(ge=0)]
"""How much of its output the program had written."""


class _Kept(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)


class KeptPrompt(_Kept):
    """A prompt that was given, or is about to be; `id` is that of its request."""

    id: str
    at: Place | None = None
    """What the program had written when it had the prompt; None where it may not have it."""
    text: str | None = None
    """A person's words at an attached terminal; None for the message of a task, which is on record elsewhere."""
    before: tuple[str, ...] = ()
    """What stands in front of them."""


class KeptSession(_Kept):
    """A session, `at` the place where it was ready."""

    session: str
    at: Place = 0
    prompt: KeptPrompt | None = None
    asked_to: Place | None = None
    """What the program asked up to there is answered; None: a version before has not kept it."""
    open: tuple[Place, ...] = ()
    """Where it asked what is not answered."""


class _File(KeptSession):
    launch: str


def recall(folder: Path, launch: str) -> KeptSession | None:
    """What an earlier daemon has kept of that launch."""
    try:
        file = _File.model_validate_json((folder / STATE_FILE).read_bytes())
    except (OSError, ValidationError):
        return None
    return file if file.launch == launch else None


def keep(folder: Path, launch: str, kept: KeptSession) -> None:
    """Keep it for the next daemon; where the disk refuses, that knows less."""
    try:
        content = {"launch": launch, **kept.model_dump(mode="json")}
        write_whole(folder / STATE_FILE, json.dumps(content).encode(), durable=False)
    except OSError as error:
        log.warning("the session is not kept", folder=str(folder), error=str(error))
