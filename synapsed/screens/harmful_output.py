"""Which output of a launch has ended the emulator, and is not drawn again; kept in the agent's directory for the next
daemon."""

import asyncio
from pathlib import Path

import structlog
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from synapsed.files import write_whole
from synapsed.terminal.look import Harm

FILE = "harm.json"

QUARANTINES_MAX = 2
"""Times that a launch's screen is begun once more; then the launch goes on without one."""

log = structlog.stdlib.get_logger("synapsed.screens")


class _Record(BaseModel):
    model_config = ConfigDict(extra="ignore")

    launch_id: str
    skip_to: int = Field(ge=0)
    quarantines: int = Field(ge=0)


class HarmRecord:
    """Of one launch; reads its file, which `of` does in a thread."""

    def __init__(self, path: Path, launch_id: str) -> None:
        self._path = path
        self._known = _Record(launch_id=launch_id, skip_to=0, quarantines=0)
        try:
            told = _Record.model_validate_json(path.read_bytes())
        except FileNotFoundError:
            return
        except (OSError, ValidationError) as error:
            log.warning("what is known of harmful output cannot be read", path=str(path), error=type(error).__name__)
            return
        if told.launch_id == launch_id:
            self._known = told

    @classmethod
    async def of(cls, agent_dir: Path, launch_id: str) -> "HarmRecord":
        return await asyncio.to_thread(cls, agent_dir / FILE, launch_id)

    @property
    def harm(self) -> Harm | None:
        """None where all of the output may be drawn."""
        if not self._known.quarantines:
            return None
        return Harm(skip_to=self._known.skip_to, blind=self._known.quarantines > QUARANTINES_MAX)

    async def pass_over(self, upto: int) -> None:
        """The output before `upto` is not drawn again."""
        known = self._known
        known.skip_to = max(upto, known.skip_to)
        known.quarantines += 1
        try:
            await asyncio.to_thread(write_whole, self._path, known.model_dump_json().encode())
        except OSError as error:
            log.warning("what is known of harmful output cannot be kept", path=str(self._path), error=str(error))
