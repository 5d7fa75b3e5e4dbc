"""Declares the part that writes screens as documents: HTML, SVG, and PNG, which needs Pillow. `boxes` draws the
characters whose lines join from cell to cell."""

from synapsed.kernel import WITH_AGENTS, Face

FACE = Face(name="pictures", opens="synapsed.parts.pictures.drawing", wanted=WITH_AGENTS)
"""Description of this part for the daemon, which reads it without loading the part's code."""
