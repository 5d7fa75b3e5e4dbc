"""Answers as blocks: code, JSON documents, errors and references to files as artifacts of their own, beside the answer.

`fences` finds fenced code, `plain_blocks` what stands outside of it, `blocks` both in a text that grows; `reading`
makes artifacts of them. A profile says what is read (`parsers`).
"""

from synapsed.kernel import Face

FACE = Face(name="answer_blocks", opens="synapsed.parts.answer_blocks.reading")
