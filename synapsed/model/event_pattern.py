"""Matches texts with globs, in which `*` stands for any text and `?` for one character.

The time is linear in the length of the text: a piece between two stars is matched at the first place that fits, without
backtracking, and only TEXT_MAX characters are searched."""

import re
from functools import lru_cache

PATTERN_MAX = 500
TEXT_MAX = 65_536
"""Characters of a field that count; the rest of a longer one is not looked at."""


def fits(pattern: str, text: str) -> bool:
    """Returns True if the pattern matches the whole of `text`, without regard to case."""
    return _compiled(pattern.casefold()).fullmatch(text[:TEXT_MAX].casefold()) is not None


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str]:
    first, *rest = (
        "".join("." if piece == "?" else re.escape(piece) for piece in re.split(r"(\?)", segment))
        for segment in re.split(r"\*+", pattern)
    )
    if not rest:
        return re.compile(first, re.DOTALL)
    middle = "".join(f"(?>.*?{segment})" for segment in rest[:-1])
    return re.compile(f"{first}{middle}.*{rest[-1]}", re.DOTALL)
