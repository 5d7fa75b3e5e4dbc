"""The sender of a daemon, with everything that it tells its receivers with."""

import asyncio
import random

from synapsed import __version__
from synapsed.a2a.push.lanes import Lanes
from synapsed.a2a.push.poster import HttpPoster
from synapsed.a2a.push.screening import AddressScreen
from synapsed.a2a.push.sender import PushSender
from synapsed.a2a.push.telling import SubscriptionDeps
from synapsed.clock import Clock
from synapsed.config import PushPolicy
from synapsed.store import SqliteStore


def push_sender(policy: PushPolicy, store: SqliteStore, clock: Clock) -> PushSender:
    """Call it in the running event loop."""
    return PushSender(
        SubscriptionDeps(
            book=store.pushes,
            store=store,
            poster=HttpPoster(AddressScreen(policy.allow), timeout=policy.timeout),
            policy=policy,
            lanes=Lanes(),
            clock=clock,
            timers=asyncio.get_running_loop(),
            rng=random.random,
            user_agent=f"synapsed/{__version__}",
            texts=store.texts,
        )
    )
