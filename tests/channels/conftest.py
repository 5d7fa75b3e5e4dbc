"""What the tests of side channels share: built-in profiles, a launch in a folder, reports as hooks leave them."""

import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from synapsed.channels.launch_additions import LaunchContext, plan, prepare
from synapsed.model.facts import ChannelFact
from synapsed.profiles.library import ProfileLibrary
from synapsed.profiles.profile import Profile

SAMPLES = Path(__file__).parent / "samples"


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> ProfileLibrary:
    return ProfileLibrary.standard(tmp_path_factory.mktemp("no-user-profiles"))


@dataclass
class Launch:
    """An agent's directory as `prepare` leaves it, with a hand for its maildir."""

    profile: Profile
    context: LaunchContext
    facts: list[ChannelFact] = field(default_factory=list)
    _last: int = 0

    def report(self, event: str, payload: Any, *, at_ns: int | None = None, wall: float | None = None) -> int:
        """A hook reported `event`; returns its `at_ns`, which grows."""
        self._last = at_ns if at_ns is not None else max(self._last + 1, time.monotonic_ns())
        record = {"event": event, "at_ns": self._last, "wall": round(wall or time.time(), 6), "payload": payload}
        return self.raw(json.dumps(record, separators=(",", ":")).encode())

    def raw(self, content: bytes) -> int:
        name = f"{self._last:020d}-{len(list((self.context.hooks / 'new').iterdir())) + 1}.json"
        (self.context.hooks / "new" / name).write_bytes(content)
        return self._last

    def names(self, folder: str) -> list[str]:
        path = self.context.hooks / folder
        return sorted(p.name for p in path.iterdir()) if path.is_dir() else []


@pytest.fixture
def launch(request: pytest.FixtureRequest, tmp_path: Path, library: ProfileLibrary) -> Launch:
    """A prepared launch of the profile named by the test's parameter, else of claude."""
    profile = library.get(getattr(request, "param", "claude"))
    context = LaunchContext(
        agent_id=f"synapse-{profile.name}-8100",
        agent_dir=tmp_path / "agents" / profile.name,
        hooks_socket=tmp_path / "hooks.sock",
        conversation="5e55107e-0000-4000-8000-000000000001",
        home=tmp_path / "home",
        port=4096,
        python="/usr/bin/python3",
    )
    prepare(context, plan(profile, context, resume=False))
    return Launch(profile, context)
