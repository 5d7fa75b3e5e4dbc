"""Durable state in SQLite (`store.SqliteStore`): agents, tasks, turns (the work of programs on tasks), checkpoints
(screens of programs at a place in their output) and the event log."""
