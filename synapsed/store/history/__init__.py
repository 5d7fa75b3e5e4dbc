"""Full text over messages, answers and tool calls, and what turns have used: a file of its own that follows the log."""

from synapsed.store.history.service import SqliteHistory, open_history

__all__ = ["SqliteHistory", "open_history"]
