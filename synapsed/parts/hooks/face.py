"""Hooks of programs, and the programs' own records of conversations; `adapter = "hooks"` in a profile."""

from synapsed.kernel import Face

FACE = Face(name="hooks", adapters_in="synapsed.parts.hooks.channel")
"""Description of this part for the daemon, which reads it without loading the part's code."""
