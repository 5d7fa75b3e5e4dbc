"""Makes artifacts of a task from the blocks of its answer (S2, S3), while the answer still grows and at its end."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from synapsed.interfaces import AnswerReader, AnswerReading
from synapsed.kernel import Kernel, Running
from synapsed.model.task import Artifact, BlockKinds, DataPart, Part, TextPart

if TYPE_CHECKING:
    from synapsed.parts.answer_blocks.plain_blocks import Block

PARSED_MAX = 256 * 1024
"""Most characters of an answer that are parsed, in a second at most; a longer answer is no conversation."""

BLOCKS_MAX = 200
"""Most blocks that a task keeps; the answer itself is complete in any case."""

AT_ONCE_MAX = 1024
"""Most characters that are parsed in the event loop, in at most 5 ms; more are parsed in a thread."""


class AnswerBlocks:
    """Reads one answer after the other. The artifacts depend on the text alone, not on the pieces in which it came, nor
    on earlier calls. An answer that is only text has no artifacts; others have at most `BLOCKS_MAX`, from the first
    `PARSED_MAX` characters."""

    def __init__(self, kinds: BlockKinds) -> None:
        self._kinds = kinds
        self._any = kinds.code or kinds.data or kinds.files or kinds.errors
        self._clear()

    def _clear(self) -> None:
        from synapsed.parts.answer_blocks.blocks import StreamParser

        self._parser = StreamParser(self._kinds)
        self._read = ""
        self._blocks: list[Block] = []

    async def read(self, text: str, *, whole: bool) -> Sequence[Artifact]:
        """Implements `AnswerReader`."""
        await self._advance(text[:PARSED_MAX])
        if not whole:
            return self._artifacts()
        if len(text) <= PARSED_MAX and self._any:
            large = self._parser.held > AT_ONCE_MAX
            self._blocks += await asyncio.to_thread(self._parser.flush) if large else self._parser.flush()
        artifacts = self._artifacts()
        self._clear()
        return artifacts

    async def _advance(self, text: str) -> None:
        if not self._any:
            return
        if not text.startswith(self._read):
            self._clear()
        piece, self._read = text[len(self._read) :], text
        large = self._parser.held + len(piece) > AT_ONCE_MAX
        self._blocks += await asyncio.to_thread(self._parser.feed, piece) if large else self._parser.feed(piece)

    def _artifacts(self) -> Sequence[Artifact]:
        if all((block.type, block.name) == ("text", "output") for block in self._blocks):
            return ()
        return [_artifact(number, block) for number, block in enumerate(self._blocks[:BLOCKS_MAX], 1)]


def _artifact(number: int, block: "Block") -> Artifact:
    part: Part = DataPart(data=block.data) if block.type == "data" else TextPart(text=block.text)
    return Artifact.block(number, type=block.type, name=block.name, parts=[part], metadata=block.metadata)


class Reading(Running):
    def __init__(self) -> None:
        self.provides = {AnswerReading: self}

    def reader(self, kinds: BlockKinds) -> AnswerReader:
        """Implements `AnswerReading`."""
        return AnswerBlocks(kinds)


@asynccontextmanager
async def opened(_: Kernel) -> AsyncIterator[Running]:
    yield Reading()
