"""Declares the part that learns of turns and answers from programs' own hooks and records of conversations.

A profile chooses it with `adapter = "hooks"`. `channel` follows the hooks of one program.
"""

from synapsed.kernel import Face

FACE = Face(name="hooks", adapters_in="synapsed.parts.hooks.channel")
"""Description of this part for the daemon, which reads it without loading the part's code."""
