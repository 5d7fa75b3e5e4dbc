"""Splits answers into blocks, that is, code, JSON documents, errors and references to files as artifacts of their own,
beside the answer.

`fences` finds fenced code, `plain_blocks` the blocks outside of it, `blocks` both in a text that grows; `reading` makes
artifacts of them. A profile chooses the kinds of blocks (`parsers`).
"""

from synapsed.kernel import WITH_AGENTS, Face

FACE = Face(
    name="answer_blocks",
    opens="synapsed.parts.answer_blocks.reading",
    wanted=WITH_AGENTS,
    late=["synapsed.parts.answer_blocks.blocks"],
)
"""Description of this part for the daemon, which reads it without loading the part's code."""
