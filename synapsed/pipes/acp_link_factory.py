"""Makes the links of running programs that speak ACP on pipes."""

import asyncio
import contextlib
import json
from dataclasses import dataclass
from pathlib import Path

from synapsed.channels.launch_additions import INSTRUCTIONS_FILE
from synapsed.clock import Clock
from synapsed.config.paths import Paths
from synapsed.interfaces import AgentLink, Store
from synapsed.model.records import AgentRecord, LaunchRecord
from synapsed.pipes.acp_link import AcpLink
from synapsed.pipes.acp_opening import SessionOpening
from synapsed.pipes.transcript import TranscriptSpool
from synapsed.profiles.profile import Profile
from synapsed.pty.shared_timer import Rounds
from synapsed.screens.harmful_output import HarmRecord
from synapsed.screens.pool import ScreenPool
from synapsed.screens.remote_screen import RemoteStage

SESSION_FILE = "session.json"
"""Name of the file, in the launch's folder, with the profile's additions to the request for a session."""


async def _nothing_kept() -> None:
    """Returns no checkpoint: the screen is always drawn from the transcript's own spool."""
    return


def _opening(folder: Path, profile: Profile) -> SessionOpening:
    """Returns what the launch adds for its program, from the files in the launch's folder."""
    session, brief = {}, None
    with contextlib.suppress(OSError, ValueError):
        session = json.loads((folder / "launch" / SESSION_FILE).read_bytes())
    if profile.instructions.before_message:
        with contextlib.suppress(OSError, ValueError):
            brief = (folder / "launch" / INSTRUCTIONS_FILE).read_text(encoding="utf-8")
    return SessionOpening(session, brief)


@dataclass(frozen=True, slots=True, kw_only=True)
class AcpLinks:
    """Implements `pty.link_factory.PipesLinks`: makes links to programs on pipes."""

    paths: Paths
    store: Store
    clock: Clock
    screens: ScreenPool
    rounds: Rounds

    async def link(
        self, record: AgentRecord, profile: Profile, launched: LaunchRecord, *, conversation: str | None
    ) -> AgentLink:
        folder = self.paths.agent(record.id)
        opening = await asyncio.to_thread(_opening, folder, profile)
        transcript = await asyncio.to_thread(TranscriptSpool, folder)
        size = (record.cols, record.rows)
        stage = RemoteStage(
            self.screens,
            agent_id=record.id,
            profile=profile,
            size=size,
            launch_start=transcript.begin,
            checkpoint=None,
            kept=_nothing_kept,
            spool=transcript.folder,
            harms=await HarmRecord.of(transcript.folder, launched.launch_id),
            clock=self.clock,
        )
        return AcpLink(
            agent_id=record.id,
            folder=folder,
            cwd=record.cwd,
            profile=profile,
            launch=launched,
            conversation=conversation,
            opening=opening,
            transcript=transcript,
            stage=stage,
            size=size,
            store=self.store,
            clock=self.clock,
            rounds=self.rounds,
        )
