"""Modules that the daemon and the person's tool share. The standard library alone: the tool starts with it."""
