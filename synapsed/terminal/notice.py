"""A notice of synapsed's own, laid out for the last rows of a screen. Pure."""

import unicodedata
from collections.abc import Iterator, Sequence


def notice_rows(text: str, cols: int, most: int) -> tuple[str, ...]:
    """`text` in rows of at most `cols` columns, at least one and at most `most` of them; what does not fit is cut, with
    an ellipsis at the end. Control characters are left out."""
    from synapsed.terminal.delivery import clean  # it takes the profiles, which whoever only draws does without

    rows = [piece for line in clean(text).expandtabs(4).split("\n") for piece in _wrapped(line, cols)]
    most = max(most, 1)
    if len(rows) > most:
        rows = rows[:most]
        rows[-1] = next(_wrapped(rows[-1], max(cols - 1, 1)), "") + "…"
    return tuple(rows)


def draw_notice(rows: Sequence[str], screen_rows: int, cols: int) -> bytes:
    """The bytes that draw `rows` in reverse over the last rows of a screen of that size. Cursor and pen are left
    anywhere."""
    first = screen_rows - len(rows) + 1
    drawn = (
        f"\x1b[{first + n};1H\x1b[0;7m{row}{' ' * (cols - _width(row))}\x1b[m".encode("utf-8", "replace")
        for n, row in enumerate(rows)
    )
    return b"".join(drawn)


def _wrapped(line: str, cols: int) -> Iterator[str]:
    start = width = 0
    for at, char in enumerate(line):
        step = _char_width(char)
        if width + step > cols:
            yield line[start:at]
            start, width = at, 0
        width += step
    yield line[start:]


def _width(text: str) -> int:
    return sum(map(_char_width, text))


def _char_width(char: str) -> int:
    if unicodedata.combining(char) or unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in ("W", "F") else 1
