"""A folder and a branch for each agent, by the git program."""

from synapsed.kernel import Face

FACE = Face(name="worktrees")
"""Description of this part for the daemon, which reads it without loading the part's code."""
