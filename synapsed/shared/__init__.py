"""Modules that the daemon and the person's tool share. They import the standard library only, because the tool imports
them when it starts."""
