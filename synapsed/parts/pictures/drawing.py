"""Draws a screen as HTML, SVG or PNG. The module of each form is imported at its first use."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from synapsed.errors import NotReady
from synapsed.interfaces import Drawn, DrawnForm, Picture, ScreenDrawing
from synapsed.kernel import Kernel, Running


class Pictures(Running):
    def __init__(self) -> None:
        self.provides = {ScreenDrawing: self}

    def draw(self, shown: Picture, form: DrawnForm) -> Drawn:
        """Implements `ScreenDrawing`."""
        if form == "html":
            from synapsed.parts.pictures.html import html

            return "text/html; charset=utf-8", html(shown)
        if form == "svg":
            from synapsed.parts.pictures.svg import svg

            return "image/svg+xml; charset=utf-8", svg(shown)
        return "image/png", _png(shown)


def _png(shown: Picture) -> bytes:
    """Returns the PNG. Raises NotReady."""
    try:
        from synapsed.parts.pictures.png import png
    except ImportError:
        why = "a PNG takes Pillow, which is not installed: pip install 'synapsed[pictures]', or take it as SVG"
        raise NotReady(why, extra="pictures") from None
    return png(shown)


@asynccontextmanager
async def opened(_: Kernel) -> AsyncIterator[Running]:
    yield Pictures()
