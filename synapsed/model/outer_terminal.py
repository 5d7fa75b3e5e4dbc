"""Properties that the terminal of a viewer of an agent has reported."""

from dataclasses import dataclass

type Rgb = tuple[int, int, int]

CELL_MAX = 512
"""Largest width or height of a cell in pixels."""


@dataclass(frozen=True, slots=True)
class OuterTerminal:
    """The reported properties. None for one that was not reported; then the program gets a default."""

    foreground: Rgb | None = None
    background: Rgb | None = None
    cell: tuple[int, int] | None = None
    """Width and height in pixels."""
    keyboard: bool = False
    """True if it supports the kitty keyboard protocol."""


def is_light(color: Rgb) -> bool:
    """Returns True if a background is light, by its perceived brightness."""
    red, green, blue = color
    return 299 * red + 587 * green + 114 * blue > 127_500  # in thousandths


def read_outer(document: dict[str, object]) -> OuterTerminal:
    """Returns the terminal that a client describes. Raises ValueError, which names the wrong value."""
    return OuterTerminal(
        _color(document.get("foreground"), "foreground"),
        _color(document.get("background"), "background"),
        _cell(document.get("cell")),
        _flag(document.get("keyboard", False), "keyboard"),
    )


def _flag(value: object, name: str) -> bool:
    match value:
        case bool():
            return value
    raise ValueError(f"{name} must be true or false")


def _color(value: object, name: str) -> Rgb | None:
    match value:
        case None:
            return None
        case [int(red), int(green), int(blue)] if all(_is_within(part, 0, 255) for part in (red, green, blue)):
            return red, green, blue
    raise ValueError(f"{name} must be [red, green, blue], each 0 to 255, or null")


def _cell(value: object) -> tuple[int, int] | None:
    match value:
        case None:
            return None
        case [int(width), int(height)] if _is_within(width, 1, CELL_MAX) and _is_within(height, 1, CELL_MAX):
            return width, height
    raise ValueError(f"cell must be [width, height] in pixels, each 1 to {CELL_MAX}, or null")


def _is_within(value: int, least: int, most: int) -> bool:
    return not isinstance(value, bool) and least <= value <= most
