"""Durable state: tasks, turns, agents, checkpoints and the one event log, in SQLite."""

from synapsed.store.store import SqliteStore

__all__ = ["SqliteStore"]
