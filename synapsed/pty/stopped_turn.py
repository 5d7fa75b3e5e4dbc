"""The message of the turn that was stopped last: the program may put it back into its composer, soon or when it gets
processor time. It is kept in a file, because its task has ended by then, and the turn's record with it: without the
file, the next daemon would take the message for a person's draft, and hold all others back.
"""

import asyncio
from pathlib import Path

import structlog
from pydantic import BaseModel, ValidationError

from synapsed.pty.message_evidence import is_text_of
from synapsed.pty.turn import PtyTurn
from synapsed.shared.files import write_whole

STOPPED_FILE = "stopped.json"
"""File in the agent's directory."""

log = structlog.stdlib.get_logger("synapsed.pty")


class StoppedMessage(BaseModel):
    """The text as it was typed, and as the composer showed it (numbers masked)."""

    text: str
    shown: str

    @classmethod
    def of(cls, turn: PtyTurn) -> "StoppedMessage":
        return cls(text=turn.message, shown=turn.state.shown)

    def is_in(self, composer: str) -> bool:
        """Returns True if a composer with this text in its row has the message, and no other text."""
        return is_text_of(self.text, composer, shown=self.shown)


class _File(StoppedMessage):
    launch_id: str


class KeptStop:
    """The file of one launch. Errors of the file are logged: they matter only if the daemon is killed within seconds
    after a stop."""

    def __init__(self, path: Path, launch_id: str) -> None:
        self._path = path
        self._launch_id = launch_id
        self._wanted: StoppedMessage | None = None
        self._one = asyncio.Lock()

    async def load(self) -> StoppedMessage | None:
        try:
            kept = _File.model_validate_json(await asyncio.to_thread(self._path.read_bytes))
        except FileNotFoundError:
            return None
        except (OSError, ValidationError) as error:
            log.warning("the last stop cannot be read", path=str(self._path), error=type(error).__name__)
            return None
        self._wanted = kept if kept.launch_id == self._launch_id else None
        return self._wanted

    async def save(self, message: StoppedMessage) -> None:
        self._wanted = message
        await self._write()

    async def remove(self, message: StoppedMessage) -> None:
        """Removes the file, if it still has this message."""
        if self._wanted is message:
            self._wanted = None
            await self._write()

    async def _write(self) -> None:
        async with self._one:
            try:
                await asyncio.to_thread(self._put, self._wanted)
            except OSError as error:
                log.warning("the last stop cannot be kept", path=str(self._path), error=str(error))

    def _put(self, message: StoppedMessage | None) -> None:
        if message is None:
            self._path.unlink(missing_ok=True)
            return
        kept = _File(text=message.text, shown=message.shown, launch_id=self._launch_id)
        write_whole(self._path, kept.model_dump_json().encode(), durable=False)
