"""Agents elsewhere, and hosts of one's own."""
