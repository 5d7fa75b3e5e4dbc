"""Runs of the suite: which tests each has, what they can reach, what they cost (docs/development.md)."""
