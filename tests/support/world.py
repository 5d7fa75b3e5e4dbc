"""A manager with fakes below and a clock that stands still."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from synapsed.agents.parking import Memory
from synapsed.config.config import AgentConfig, Config, EnvironmentConfig
from synapsed.config.paths import Paths
from synapsed.interfaces import Carrier, SendRequest, StartRequest
from synapsed.model.agent import AgentView, ProcessState
from synapsed.model.attributes import ProcessAttributes
from synapsed.model.events import TaskStatusChanged
from synapsed.model.task import Message, Prompt, PromptOption, Task, TaskState
from synapsed.parts.person_settings.reading import ReadingSettings
from synapsed.profiles.library import ProfileLibrary
from synapsed.supervisor.carriers import Carriers
from synapsed.supervisor.launch_planner import ManagerSettings
from synapsed.supervisor.manager import Manager
from tests.fakes.clock import FakeClock, until
from tests.fakes.link import FakeLink, FakeLinkFactory
from tests.fakes.store import MemoryStore

PROFILE = """
command = "sh"
model = true
ports = [8190, 8192]
unset_env = ["CLAUDE*"]
install = "pipx install fake"
[exit]
codes = [0, 3]
"""

TALKER = """
command = "sh"
model = true
args = ["--first"]
ports = [8170, 8179]
[resume]
args = ["--resume", "{conversation}"]
fresh_args = ["--session", "{conversation}"]
own = ["--pick ID", "--continue"]
"""

DRIFTER = """
command = "sh"
args = ["--new"]
ports = [8150, 8150]
verified = "2.0"
version = {}
[[versions]]
below = "2.0"
args = []
"""

LAST = """
command = "sh"
model = true
ports = [8160, 8160]
[resume]
args = ["--continue"]
"""

PERMISSION = Prompt(
    prompt_id="p1",
    type="permission",
    prompt="Run it?",
    options=[PromptOption(key="1", label="Yes"), PromptOption(key="2", label="No")],
)


class World:
    """Everything outside the manager, which survives it; `daemon` makes a manager, as after a restart."""

    def __init__(self, root: Path) -> None:
        self.paths = Paths(config=root / "config", state=root / "state", run=root / "run", a2a=root / "a2a")
        profiles = root / "profiles"
        profiles.mkdir()
        (profiles / "fake.toml").write_text(PROFILE)
        (profiles / "talker.toml").write_text(TALKER)
        (profiles / "drifter.toml").write_text(DRIFTER)
        (profiles / "last.toml").write_text(LAST)
        self.library = ProfileLibrary([profiles])
        self.clock = FakeClock()
        self.store = MemoryStore(self.clock)
        self.factory = FakeLinkFactory()
        self.agents: dict[str, AgentConfig] = {}
        self.agent_ports = False
        self.environment = EnvironmentConfig()
        self.control_token = "t" * 43
        self.model = Config
        """Of the configuration: the kernel's sections, or those of parts, too."""
        self.memory = Memory(total=100, available=100)
        self.shutdowns: list[bool] = []
        self.carriers: dict[str, Carrier] = {}
        """To agents elsewhere, by their parts' names."""
        self.provides: dict[type, object] = {**ReadingSettings().provides}
        """What parts provide to agents, by its type."""
        self.attributes = ProcessAttributes()
        """What the daemon is started with."""
        self.managers: list[Manager] = []
        self.manager: Manager

    async def daemon(self, *, adopt: bool = True) -> Manager:
        settings = ManagerSettings(
            paths=self.paths,
            config=self.model.model_validate(
                {
                    "api": {"agent_ports": self.agent_ports},
                    "agents": self.agents,
                    "environment": self.environment,
                }
            ),
            control_token=self.control_token,
            environ={"PATH": "/usr/bin:/bin", "HOME": "/root", "TERM": "dumb", "SYNAPSE_AGENT_ID": "another"},
            tool_dir=Path("/opt/tool"),
            attributes=self.attributes,
        )
        carriers = Carriers(self.store, self.clock)
        carriers.become(self.carriers)
        self.manager = Manager(
            settings,
            store=self.store,
            profiles=self.library,
            factory=self.factory,
            clock=self.clock,
            timers=self.clock,
            rng=lambda: 0.5,
            on_shutdown=self.shutdowns.append,
            memory=lambda: self.memory,
            carriers=carriers,
        )
        self.manager.doors.become(lambda kind: [self.provides[kind]] if kind in self.provides else [])
        self.managers.append(self.manager)
        await self.manager.restore()
        await self.manager.parts_opened()
        if adopt:
            await self.manager.adopt()
            await self.manager.autostart()
        return self.manager

    async def close(self) -> None:
        for manager in self.managers:
            await manager.close(keep_agents=True)

    @property
    def link(self) -> FakeLink:
        return self.factory.link

    async def start(self, profile: str = "fake", *, ready: bool = True, **request: Any) -> AgentView:
        request.setdefault("cwd", "/")
        view = await self.manager.start(StartRequest(profile=profile, **request))
        if ready:
            self.link.ready()
            await until(lambda: self.manager.directory.view(view.id).activity == "ready")
        return view

    async def send(self, agent: str, text: str = "hello", **request: Any) -> Task:
        return await self.manager.tasks.send(agent, SendRequest(message=Message.of(text), **request))

    async def delivered(self, count: int = 1, link: FakeLink | None = None) -> None:
        chosen = link or self.link
        await until(lambda: len(chosen.deliveries) >= count, f"{count} deliveries")

    async def task_is(self, task_id: str, state: TaskState) -> Task:
        tasks = self.store._tasks
        await until(lambda: tasks[task_id].status is state, f"{state} (it is {tasks[task_id].status})")
        task = await self.store.task(task_id)
        assert task is not None
        return task

    async def agent_is(self, agent: str, state: ProcessState) -> AgentView:
        await until(
            lambda: self.manager.directory.view(agent).state is state,
            f"{state} ({self.manager.directory.view(agent).state})",
        )
        return self.manager.directory.view(agent)

    def told(self, kind: type[Any], select: Callable[[Any], Any] = lambda data: data) -> list[Any]:
        return [select(event.data) for event in self.store.events.all if isinstance(event.data, kind)]

    def statuses(self, task_id: str) -> list[str]:
        return [
            event.data.state.value
            for event in self.store.events.all
            if event.task_id == task_id and isinstance(event.data, TaskStatusChanged)
        ]
