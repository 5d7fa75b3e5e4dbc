"""Publishes live agents as one small file each in `~/.a2a/registry/`, for programs that look for agents there."""

from synapsed.kernel import Face

FACE = Face(name="registry", opens="synapsed.parts.registry.following")
"""Description of this part for the daemon, which reads it without loading the part's code."""
