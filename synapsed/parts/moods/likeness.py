"""Finds repeated questions: sketches of messages allow comparing them without keeping them.

A sketch is the smallest hashes of the message's words, or its pairs of characters in scripts without blanks between
words (the bottom-k sketch of MinHash): the number of common hashes measures the likeness of two messages. Hashes are
CRC-32, which are the same in every process.
"""

from zlib import crc32

from synapsed.shared.regex import regex

SKETCH = 24
"""Most hashes of a sketch."""

WORDS_MIN = 4
"""Least number of different words: a shorter message has no sketch, because "go on" and "run the tests" may be repeated
without meaning."""

ALIKE = 0.75
"""Least share of common words of two messages that are the same question."""

type Sketch = tuple[int, ...]

_WORD = regex(r"\w+")
_UNSPACED = regex("[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")


def sketch(text: str) -> Sketch:
    """Returns the sketch; empty for a message of few words. `text` must be casefolded and short."""
    pieces: set[str] = set()
    for word in set(_WORD.findall(text)):
        if not word.isascii() and _UNSPACED.search(word):
            pieces.update(word[at : at + 2] for at in range(len(word) - 1))
        else:
            pieces.add(word)
    if len(pieces) < WORDS_MIN:
        return ()
    return tuple(sorted({crc32(piece.encode("utf-8", "surrogatepass")) for piece in pieces})[:SKETCH])


def alike(one: Sketch, other: Sketch) -> bool:
    """Returns True if both belong to the same question."""
    if not one or not other:
        return False
    both = sorted({*one, *other})[:SKETCH]
    common = set(one) & set(other)
    return sum(piece in common for piece in both) >= ALIKE * len(both)
