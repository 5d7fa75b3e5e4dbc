"""Folders and branches of their own for agents, by the git program."""
