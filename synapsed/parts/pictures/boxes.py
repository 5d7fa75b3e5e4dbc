"""Draws box drawing characters and block elements as figures, so that they join from cell to cell with any font. Pure.

The look of a character is read from its Unicode name: the sides to which its lines go, and their weight.
"""

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType

from synapsed.shared.regex import regex


@dataclass(frozen=True, slots=True)
class Area:
    """A rectangle from (`left`, `top`) to (`right`, `bottom`), filled; `shade` is the share of the colour."""

    left: float
    top: float
    right: float
    bottom: float
    shade: float = 1.0


@dataclass(frozen=True, slots=True)
class Stroke:
    """A line along `points`, `width` wide; with three points the middle one is a rounded corner."""

    points: tuple[tuple[float, float], ...]
    width: float


type Figure = Area | Stroke

_SIDES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "LEFT": ("left",),
        "RIGHT": ("right",),
        "UP": ("up",),
        "DOWN": ("down",),
        "HORIZONTAL": ("left", "right"),
        "VERTICAL": ("up", "down"),
    }
)
_OPPOSITE: Mapping[str, str] = MappingProxyType({"left": "right", "right": "left", "up": "down", "down": "up"})
_WEIGHTS = frozenset({"LIGHT", "HEAVY", "SINGLE", "DOUBLE"})
_DASHES: Mapping[str, int] = MappingProxyType({"DOUBLE DASH": 2, "TRIPLE DASH": 3, "QUADRUPLE DASH": 4})
_DASHED = regex(r"(LIGHT|HEAVY) (\w+ DASH) (HORIZONTAL|VERTICAL)")
_EIGHTHS = ("", "ONE EIGHTH", "ONE QUARTER", "THREE EIGHTHS", "HALF", "FIVE EIGHTHS", "THREE QUARTERS", "SEVEN EIGHTHS")
_PART = regex(r"(LOWER|LEFT|UPPER|RIGHT) (.+?)(?: BLOCK)?")
_SHADES: Mapping[str, float] = MappingProxyType({"LIGHT SHADE": 0.25, "MEDIUM SHADE": 0.5, "DARK SHADE": 0.75})
_QUADRANTS = regex(r"(UPPER|LOWER) (LEFT|RIGHT)")


@lru_cache(maxsize=512)
def figures(text: str, width: int, height: int) -> tuple[Figure, ...] | None:
    """Returns the figures of `text` in a cell of `width` times `height` pixels; None for a character that is no box or
    block."""
    if len(text) != 1 or not "\u2500" <= text <= "\u259f":
        return None
    name = unicodedata.name(text)
    if name.startswith("BOX DRAWINGS "):
        return _lines(name.removeprefix("BOX DRAWINGS "), width, height)
    return _blocks(name, width, height)


def _lines(name: str, width: int, height: int) -> tuple[Figure, ...]:
    light = max(1, round(min(width, height) / 8))
    middle = (width / 2, height / 2)
    if "DIAGONAL" in name:
        rising = Stroke(((0, height), (width, 0)), light)
        falling = Stroke(((0, 0), (width, height)), light)
        return (rising, falling) if "CROSS" in name else (rising,) if "UPPER RIGHT TO" in name else (falling,)
    if (dashed := _DASHED.fullmatch(name)) is not None:
        return _dashes(_DASHES[dashed[2]], light * (1 + (dashed[1] == "HEAVY")), dashed[3], width, height)
    sides = _sides(name.replace("ARC ", ""))
    if "ARC" in name:
        ends = [_edge(side, width, height) for side in sides]
        return (Stroke((ends[0], middle, ends[1]), light),)
    return tuple(area for side in sides for area in _arm(side, sides, light, width, height))


def _sides(name: str) -> dict[str, str]:
    """Returns the weight of each side's line: `DOWN HEAVY AND RIGHT LIGHT`, `LIGHT DOWN AND RIGHT`."""
    sides: dict[str, str] = {}
    weight = ""
    for part in name.split(" AND "):
        words = part.split()
        weight = next((word for word in words if word in _WEIGHTS), weight)
        sides |= {side: weight for word in words for side in _SIDES.get(word, ())}
    return sides


def _edge(side: str, width: int, height: int) -> tuple[float, float]:
    return {
        "left": (0.0, height / 2),
        "right": (float(width), height / 2),
        "up": (width / 2, 0.0),
        "down": (width / 2, float(height)),
    }[side]


def _half(weight: str, light: int) -> float:
    """Returns how far a line of that weight reaches to each side of its middle; 0 if there is no line."""
    return {"": 0.0, "HEAVY": light, "DOUBLE": 1.5 * light}.get(weight, light / 2)


def _arm(side: str, sides: Mapping[str, str], light: int, width: int, height: int) -> list[Area]:
    """Returns the lines of one side, from the cell's edge to the lines that they meet in its middle."""
    weight = sides[side]
    half = light if weight == "HEAVY" else light / 2
    areas = []
    for offset in (-light, light) if weight == "DOUBLE" else (0,):
        start = _start(side, offset, sides, light)
        x, y = width / 2, height / 2
        match side:
            case "left":
                area = Area(0, y + offset - half, x - start, y + offset + half)
            case "right":
                area = Area(x + start, y + offset - half, width, y + offset + half)
            case "up":
                area = Area(x + offset - half, 0, x + offset + half, y - start)
            case _:
                area = Area(x + offset - half, y + start, x + offset + half, height)
        areas.append(area)
    return areas


def _start(side: str, offset: int, sides: Mapping[str, str], light: int) -> float:
    """Returns the distance from the middle at which a line begins whose middle is `offset` beside the cell's; negative
    beyond the middle. The line meets the nearer one of two lines that cross it, and the farther one if it goes around a
    corner."""
    before, behind = ("up", "down") if side in ("left", "right") else ("left", "right")
    across = [sides.get(before, ""), sides.get(behind, "")]
    if "DOUBLE" not in across:
        return -max(_half(weight, light) for weight in across)
    nearer, farther = light / 2, -1.5 * light
    if offset:
        return nearer if sides.get(before if offset < 0 else behind) else farther
    if not all(across):
        return farther
    return 0.0 if _OPPOSITE[side] in sides else nearer


def _dashes(count: int, thick: int, direction: str, width: int, height: int) -> tuple[Figure, ...]:
    along = width if direction == "HORIZONTAL" else height
    step = along / count
    spans = [(step * (number + 0.2), step * (number + 0.8)) for number in range(count)]
    if direction == "HORIZONTAL":
        return tuple(Area(a, (height - thick) / 2, b, (height + thick) / 2) for a, b in spans)
    return tuple(Area((width - thick) / 2, a, (width + thick) / 2, b) for a, b in spans)


def _blocks(name: str, width: int, height: int) -> tuple[Figure, ...]:
    if name == "FULL BLOCK":
        return (Area(0, 0, width, height),)
    if name in _SHADES:
        return (Area(0, 0, width, height, _SHADES[name]),)
    if name.startswith("QUADRANT"):
        corners = _QUADRANTS.findall(name)
        return tuple(_quarter(row == "LOWER", column == "RIGHT", width, height) for row, column in corners)
    found = _PART.fullmatch(name)
    assert found is not None, name
    share = _EIGHTHS.index(found[2]) / 8
    return (
        {
            "LOWER": Area(0, height * (1 - share), width, height),
            "UPPER": Area(0, 0, width, height * share),
            "LEFT": Area(0, 0, width * share, height),
            "RIGHT": Area(width * (1 - share), 0, width, height),
        }[found[1]],
    )


def _quarter(lower: bool, right: bool, width: int, height: int) -> Area:
    left, top = width / 2 * right, height / 2 * lower
    return Area(left, top, left + width / 2, top + height / 2)
