"""Screens as documents: HTML, SVG (`boxes` draws what joins from cell to cell), and PNG, which takes Pillow."""

from synapsed.kernel import Face

FACE = Face(name="pictures", opens="synapsed.parts.pictures.drawing")
