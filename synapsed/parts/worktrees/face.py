"""Folders and branches of their own for agents, by the git program."""

from synapsed.kernel import Face

FACE = Face(name="worktrees")
