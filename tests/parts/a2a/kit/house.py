"""A daemon with the scripted agent, at a port of its own."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.daemon import ANY_PORTS, Daemon

__all__ = ["kit_agent"]

HERE = Path(__file__).parent
CONFIG = f'{ANY_PORTS}\n[a2a]\nrepeats = false\n[a2a.push]\nallow = ["loopback"]\n'
"""The kit gives one messageId to many messages, and its receiver of notifications is on this machine."""


@contextmanager
def kit_agent(home: Path, *, config: str = CONFIG) -> Iterator[tuple[Daemon, str]]:
    """The daemon and the agent's endpoint, once it is ready."""
    daemon = Daemon(home, config=config)
    profiles = daemon.config_file.parent / "profiles"
    profiles.mkdir(exist_ok=True)
    (profiles / "kit.toml").write_text((HERE / "kit.toml").read_text().replace("SCRIPT", str(HERE / "agent.py")))
    daemon.start()
    try:
        yield daemon, str(daemon.start_agent(profile="kit")["endpoint"])
    finally:
        daemon.end()
