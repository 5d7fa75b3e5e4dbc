"""Translates what A2A says and what synapsed says: a library for all who speak it."""
