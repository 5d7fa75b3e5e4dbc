"""Durable state: tasks, turns, agents, checkpoints and the one event log, in SQLite (`store.SqliteStore`).

Parts that carry tasks need what is named here.
"""

from synapsed.store.idempotency import Idempotency
from synapsed.store.lookup import told_before

__all__ = ["Idempotency", "told_before"]
