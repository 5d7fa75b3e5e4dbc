"""Screens as documents, that is, HTML, SVG (`boxes` draws characters that join from cell to cell), and PNG, which needs
Pillow."""

from synapsed.kernel import WITH_AGENTS, Face

FACE = Face(name="pictures", opens="synapsed.parts.pictures.drawing", wanted=WITH_AGENTS)
"""Description of this part for the daemon, which reads it without loading the part's code."""
