"""Makes the links of programs in terminals: launches a program under a new keeper, or adopts (takes over) a running one
after a restart of the daemon."""

import asyncio
import contextlib
import json
import math
from collections.abc import Container, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4

import structlog

from synapsed.channels.adapters import NO_ADAPTERS, Adapter, delivering, known, side_channels
from synapsed.channels.launch_additions import (
    LaunchContext,
    free_port,
    has_companion,
    needs_port,
    plan,
    prepare,
    program_mark,
    was_refused,
    with_companion,
)
from synapsed.clock import Clock
from synapsed.config.paths import Paths
from synapsed.errors import KeeperLost
from synapsed.interfaces import AgentLink, Store
from synapsed.keepers.client import KeeperClient
from synapsed.keepers.heartbeat import CALLED_S, lives
from synapsed.keepers.keeper_messages import ExitRecord
from synapsed.keepers.launch_plan import LaunchPlan, ProgramEnd
from synapsed.keepers.launchers import (
    KeeperAddress,
    Launcher,
    LaunchSpec,
    age_of,
    before_boot,
    call_keeper,
    environment_of,
    find_keepers,
    keeper_of,
    sweep_launch,
)
from synapsed.model.attributes import ProcessAttributes
from synapsed.model.link import LinkExited
from synapsed.model.picture import KeptForm, Shown
from synapsed.model.records import AgentRecord, Checkpoint, LaunchRecord
from synapsed.profiles.profile import Profile
from synapsed.pty.output_times import TIMES_FILE, OutputTimes
from synapsed.pty.program_version import VersionReader
from synapsed.pty.prompt_learning import PROMPTS_FILE, KeptPrompts
from synapsed.pty.pty_link import PtyLink
from synapsed.pty.shared_timer import Rounds
from synapsed.pty.stopped_turn import STOPPED_FILE, KeptStop
from synapsed.pty.window import LastSeen, bounded
from synapsed.screens.harmful_output import HarmRecord
from synapsed.screens.pool import ScreenPool
from synapsed.screens.remote_screen import RemoteStage
from synapsed.shared.files import write_whole

log = structlog.get_logger(__name__)

LAUNCH_FILE = "launch.json"
"""File in the agent's directory, written before the launch: from it a later daemon finds a program whose launch is not
in its database, because the last daemon was killed first, or because the database was replaced."""


CALLS = 100
"""Number of attempts to reach a keeper whose launch is not on record."""

EXIT_FILE = "exit.json"
"""File in the agent's directory, written by the keeper."""


class PipesLinks(Protocol):
    """Makes the links of programs without a terminal."""

    async def link(
        self, record: AgentRecord, profile: Profile, launched: LaunchRecord, *, conversation: str | None
    ) -> AgentLink:
        """Returns a link; `conversation` is the id of the conversation that the launch continues."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PtyLinkFactory:
    """Implements `launch_plan.LinkFactory` for programs in terminals; `pipes` makes the links of the others."""

    paths: Paths
    launcher: Launcher
    store: Store
    clock: Clock
    versions: VersionReader
    screens: ScreenPool
    rounds: Rounds
    pipes: PipesLinks | None = None
    adapters: Mapping[str, Adapter] = NO_ADAPTERS
    seen: LastSeen = field(default_factory=LastSeen)

    async def version(self, record: AgentRecord, profile: Profile, launch: LaunchPlan) -> str | None:
        if profile.version is None:
            return None
        return await self.versions.read(profile.version, launch.program, env=launch.env, cwd=record.cwd)

    async def launch(self, record: AgentRecord, profile: Profile, launch: LaunchPlan) -> AgentLink:
        self.screens.begin()
        if (reachable := known(profile, self.adapters)) is not profile:
            log.warning("a channel's part is not installed: messages are typed", profile=profile.name)
            profile = reachable
        launch_id = uuid4().hex
        context = LaunchContext(
            agent_id=record.id,
            agent_dir=self.paths.agent(record.id),
            hooks_socket=self.paths.hooks_socket,
            conversation=launch.conversation or str(uuid4()),
            home=Path(launch.env.get("HOME") or Path.home()),
            port=free_port() if needs_port(profile) else None,
            companion=has_companion(profile),
            program=await asyncio.to_thread(program_mark, launch.program),
            chosen_by=tuple(launch.args) if launch.chosen else (),
            began_ns=int(self.clock.monotonic() * 1e9),
        )
        if context.companion and await asyncio.to_thread(was_refused, context):
            context = replace(context, companion=False)
        command = plan(
            profile,
            context,
            resume=launch.resumed,
            args=launch.args,
            chosen=launch.chosen,
            mcp=launch.mcp,
            instructions=launch.instructions,
            taken=launch.env,
            withheld=launch.settings.withheld,
            documents=launch.settings.documents,
        )
        argv, more = with_companion(context, command, launch.program)
        checkpoint = await self.store.checkpoint(record.id)
        size = bounded(record.cols, record.rows)
        spec = LaunchSpec(
            launch_id=launch_id,
            agent=record.name,
            argv=argv,
            env={**launch.env, **command.env},
            cwd=record.cwd,
            state_dir=context.agent_dir,
            socket_path=self.paths.keeper_sockets / f"{launch_id[:12]}.sock",
            cols=size[0],
            rows=size[1],
            transport=profile.transport,
            **_given(launch.attributes),
            spool_at_least=checkpoint.offset if checkpoint is not None else 0,
            term_grace_s=math.ceil(profile.exit.grace_ms / 1000),
            limits=launch.limits,
        )
        await asyncio.to_thread(prepare, context, command, more)
        await asyncio.to_thread(_note, context.agent_dir, launch_id, spec.socket_path, record)
        keeper = await self.launcher.launch(spec)
        launched = LaunchRecord(
            launch_id=launch_id,
            socket=str(keeper.socket_path),
            keeper_pid=keeper.keeper_pid,
            keeper_start=keeper.keeper_start,
            pid=keeper.pid,
            pid_start=keeper.pid_start,
            spool_start=keeper.spool_start,
            started_at=keeper.started_at,
            resumed=launch.resumed,
            withheld=list(keeper.withheld),
            settings=list(launch.settings.notes),
            keys=launch.settings.keys,
        )
        if launched.withheld:
            log.warning(
                "not all of its process attributes could be given", agent=record.name, withheld=launched.withheld
            )
        try:
            with contextlib.suppress(OSError):  # the note from before the launch leads to the keeper, too
                await asyncio.to_thread(_note, context.agent_dir, launch_id, spec.socket_path, record, launched)
            return await self._link(record, profile, launched, context, checkpoint=None, adopted=False)
        except Exception:
            await sweep_launch(launch_id)  # else its program would run for nobody, and keep the agent's place
            raise

    async def adopt(self, record: AgentRecord, profile: Profile) -> AgentLink | None:
        agent_dir = self.paths.agent(record.id)
        launched = record.launch or await self._unrecorded(agent_dir)
        if launched is None:
            return None
        self.screens.begin()
        address = KeeperAddress(launched.launch_id, Path(launched.socket), launched.keeper_pid, launched.keeper_start)
        alive = await asyncio.to_thread(find_keepers, [address])
        if not alive[launched.launch_id]:
            # The database may be an older copy, with an earlier launch on record.
            launched = await self._unrecorded(agent_dir, but=launched.launch_id)
        if launched is None:
            return None
        try:
            context = await asyncio.to_thread(LaunchContext.load, agent_dir)
        except (OSError, ValueError):
            context = None
        checkpoint, profile = await self.store.checkpoint(record.id), known(profile, self.adapters)
        return await self._link(record, profile, self._dated(launched), context, checkpoint=checkpoint, adopted=True)

    async def strays(self, known: Container[str]) -> list[AgentRecord]:
        noted = await asyncio.to_thread(_noted_agents, self.paths.state / "agents")
        living = [(one, await self._unrecorded(self.paths.agent(one.id))) for one in noted if one.id not in known]
        return [
            record.model_copy(
                update={
                    "launch": launched,
                    "env": await asyncio.to_thread(environment_of, launched.pid),
                    "state": "running",
                    "desired": "running",
                }
            )
            for record, launched in living
            if launched is not None
        ]

    async def ended(self, record: AgentRecord) -> ProgramEnd:
        launch, told = record.launch, None
        if launch is not None:
            told = await asyncio.to_thread(_exit_record, self.paths.agent(record.id), launch.launch_id)
        if told is not None:
            how = "it was stopped from outside" if told.stopped else "it ended while no daemon looked"
            return ProgramEnd(LinkExited(told.exit_code, how), taken_down=told.stopped)
        if launch is not None and before_boot(launch.keeper_start):
            return ProgramEnd(LinkExited(None, "the machine was restarted"), taken_down=True)
        return ProgramEnd(LinkExited(None, "it was gone when the daemon came back"), taken_down=False)

    def _dated(self, launched: LaunchRecord) -> LaunchRecord:
        """Returns `launched` with a start time that is computed from the keeper's age: the wall clock may have been set
        since the start was recorded."""
        age = age_of(launched.keeper_pid, launched.keeper_start)
        return launched if age is None else launched.model_copy(update={"started_at": self.clock.wall() - age})

    async def kept(self, checkpoint: Checkpoint, form: KeptForm) -> Shown:
        return await self.screens.kept(checkpoint, form)

    async def sweep(self, launch: LaunchRecord) -> int:
        return await sweep_launch(launch.launch_id)

    async def _link(
        self,
        record: AgentRecord,
        profile: Profile,
        launched: LaunchRecord,
        context: LaunchContext | None,
        *,
        checkpoint: Checkpoint | None,
        adopted: bool,
    ) -> AgentLink:
        if profile.transport == "pipes" and self.pipes is not None:
            conversation = context.conversation if context is not None and launched.resumed else None
            return await self.pipes.link(record, profile, launched, conversation=conversation)
        agent_dir = self.paths.agent(record.id)
        stage = RemoteStage(
            self.screens,
            agent_id=record.id,
            profile=profile,
            size=bounded(record.cols, record.rows),
            launch_start=launched.spool_start,
            checkpoint=checkpoint,
            kept=lambda: self.store.checkpoint(record.id),
            spool=agent_dir / "spool",
            harms=await HarmRecord.of(agent_dir, launched.launch_id),
            clock=self.clock,
        )
        channels = side_channels(profile, context, self.adapters) if context is not None else []
        command = (record.profile, profile.command or "", *profile.args, *record.args)
        program = context.program.rpartition(" ")[0].rpartition(" ")[0] if context is not None else ""  # the path alone
        kept = KeptPrompts(agent_dir / PROMPTS_FILE, command, program=program, told=record.prompt, cwd=record.cwd)
        kept_stop = KeptStop(agent_dir / STOPPED_FILE, launched.launch_id)
        return PtyLink(
            agent_id=record.id,
            profile=profile,
            launch=launched,
            stage=stage,
            times=OutputTimes(agent_dir / TIMES_FILE),
            store=self.store,
            clock=self.clock,
            seen=self.seen,
            rounds=self.rounds,
            own_size=(record.cols, record.rows),
            kept_prompts=kept,
            kept_stop=kept_stop,
            stopped=await kept_stop.load() if adopted else None,
            prompts=await asyncio.to_thread(kept.load) if profile.composer.usual else (),
            channels=channels,
            way=delivering(channels),
            adopted=adopted,
        )

    async def _unrecorded(self, agent_dir: Path, *, but: str | None = None) -> LaunchRecord | None:
        """Returns the launch noted in LAUNCH_FILE, if its program runs and it is not the launch `but`. Ends processes
        of the launch that have no keeper; and a keeper that has no program, because it would keep the lock that the
        next keeper needs. A keeper whose program has ended is ended too: its end may be on record already, if the last
        daemon was killed before it noted its next launch."""
        try:
            noted = json.loads(await asyncio.to_thread((agent_dir / LAUNCH_FILE).read_bytes))
            launch_id, socket = noted["launch_id"], noted["socket"]
        except (OSError, ValueError, KeyError):
            return None
        if launch_id == but:
            return None
        try:
            client = await _connected(launch_id, socket)
        except (OSError, KeeperLost):
            if (launched := _launched(noted)) is not None and await asyncio.to_thread(lives, launched):
                return launched  # its link waits until the keeper answers
            keeper, others = await asyncio.to_thread(keeper_of, launch_id)
            if keeper is None or not others:
                await sweep_launch(launch_id)
            else:
                log.error(  # noqa: TRY400 - the text says enough
                    "a program lives whose keeper cannot be reached",
                    launch=launch_id,
                    keeper=keeper,
                )
            return None
        hello = client.hello
        client.close()
        if hello.launch_id != launch_id:
            return None
        if hello.exit is not None:
            await sweep_launch(launch_id)
            return None
        return LaunchRecord(
            launch_id=launch_id,
            socket=socket,
            keeper_pid=hello.keeper_pid,
            keeper_start=hello.keeper_start or 0,
            pid=hello.pid,
            pid_start=hello.pid_start or 0,
            spool_start=hello.launch_start,
            started_at=hello.started_at,
        )


def _given(attributes: ProcessAttributes) -> dict[str, Any]:
    """Returns the fields of a launch specification for these attributes."""
    limits = {name: (limit.soft, limit.hard) for name, limit in attributes.limits.items()}
    given = attributes.model_dump(exclude={"limits"}, exclude_none=True)
    return {**given, "rlimits": limits}


async def _connected(launch_id: str, socket: str) -> KeeperClient:
    """Connects to that launch's keeper, which may not listen yet, or must bind its socket again. Raises KeeperLost."""
    for _ in range(CALLS):
        with contextlib.suppress(OSError, KeeperLost):
            return await KeeperClient.connect(socket)
        keeper, _ = await asyncio.to_thread(keeper_of, launch_id)
        if keeper is None:
            break
        await asyncio.to_thread(call_keeper, keeper)
        await asyncio.sleep(CALLED_S)
    return await KeeperClient.connect(socket)


def _launched(noted: Mapping[str, Any]) -> LaunchRecord | None:
    """Returns the launch from the content of LAUNCH_FILE; None if it was noted only before the launch."""
    try:
        return LaunchRecord.model_validate(noted["launch"])
    except (KeyError, ValueError):
        return None


def _noted_agents(agents_dir: Path) -> list[AgentRecord]:
    """Returns the agents with a noted launch, oldest first."""
    found = []
    for path in agents_dir.glob(f"*/{LAUNCH_FILE}"):
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):  # ValidationError is a ValueError
            record = AgentRecord.model_validate(json.loads(path.read_bytes())["agent"])
            if record.id == path.parent.name:
                found.append(record)
    return sorted(found, key=lambda record: record.created_at)


def _exit_record(agent_dir: Path, launch_id: str) -> ExitRecord | None:
    """Returns the exit record of that launch's keeper, if it wrote one."""
    try:
        record = ExitRecord.from_json(json.loads((agent_dir / EXIT_FILE).read_bytes()))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return record if record.launch_id == launch_id else None


def _note(
    agent_dir: Path, launch_id: str, socket: Path, record: AgentRecord, launched: LaunchRecord | None = None
) -> None:
    """Writes LAUNCH_FILE, without the agent's environment, which has secrets; it is read from the running program."""
    agent = record.model_dump(mode="json", exclude={"launch", "env", "connection", "extra_env"})
    content: dict[str, Any] = {"launch_id": launch_id, "socket": str(socket), "agent": agent}
    if launched is not None:
        content["launch"] = launched.model_dump(mode="json")
    write_whole(agent_dir / LAUNCH_FILE, json.dumps(content).encode(), durable=False)
