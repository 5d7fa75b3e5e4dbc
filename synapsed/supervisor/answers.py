"""An answer's blocks as artifacts of its task (S2)."""

import asyncio
from collections.abc import Sequence

from synapsed.model.task import Artifact, DataPart, Part, TextPart
from synapsed.profiles import Parsers
from synapsed.terminal.blocks import Block, parse

__all__ = ["answer_blocks"]

PARSED_MAX = 256 * 1024
"""Characters of an answer that is looked at: a longer one is no conversation. It costs a second at the most."""

BLOCKS_MAX = 200
"""Blocks that a task keeps; the answer itself is whole in any case."""

AT_ONCE_MAX = 8 * 1024
"""Characters that are read where we are, in about 10 ms; more is read in a thread."""


async def answer_blocks(answer: str, spec: Parsers) -> Sequence[Artifact]:
    """What `answer` is made of, the first `BLOCKS_MAX`; nothing where that is text only, or too long."""
    if not spec.any or len(answer) > PARSED_MAX:
        return ()
    blocks = parse(answer, spec) if len(answer) <= AT_ONCE_MAX else await asyncio.to_thread(parse, answer, spec)
    if all((block.type, block.name) == ("text", "output") for block in blocks):
        return ()
    return [_artifact(number, block) for number, block in enumerate(blocks[:BLOCKS_MAX], 1)]


def _artifact(number: int, block: Block) -> Artifact:
    part: Part = DataPart(data=block.data) if block.type == "data" else TextPart(text=block.text)
    return Artifact.block(number, type=block.type, name=block.name, parts=[part], metadata=block.metadata)
