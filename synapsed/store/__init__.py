"""Durable state: tasks, turns, agents, checkpoints and the one event log, in SQLite (`store.SqliteStore`)."""
