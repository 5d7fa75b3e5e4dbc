"""What concerns more than one agent: names, ports, addresses, environment, configuration, tokens."""

import asyncio
import contextlib
import json
import os
import tomllib
from pathlib import Path

import pytest

from synapsed.config.config import AgentConfig, EnvironmentConfig
from synapsed.errors import (
    AmbiguousAddress,
    InvalidRequest,
    NameTaken,
    NotReady,
    PortsExhausted,
    ProgramNotFound,
    StoreError,
    TaskNotFound,
    UnknownAgent,
    UnknownProfile,
)
from synapsed.interfaces import StartRequest, TaskFilter
from synapsed.keeper.processes import start_mark
from synapsed.model.agent import ProcessState, StartedAgent
from synapsed.model.attributes import ProcessAttributes, ResourceLimit
from synapsed.model.events import AgentAlert
from synapsed.model.task import TaskState
from synapsed.pty.output_times import OutputTimes
from synapsed.supervisor.environment import agent_token
from synapsed.supervisor.manager import ADOPTIONS_AT_ONCE, SWEEP_S
from tests.fakes.clock import until
from tests.fakes.store import MemoryStore
from tests.support.world import World

AGENT = "synapse-fake-8190"


async def test_names_ids_and_addresses(world: World) -> None:
    first = await world.start()
    second = await world.start()
    third = await world.start(name="mine")
    assert [v.name for v in (first, second, third)] == ["fake", "fake-8191", "mine"]
    assert [v.id for v in (first, second, third)] == [f"synapse-fake-{port}" for port in (8190, 8191, 8192)]
    resolve = world.manager.directory.resolve
    assert resolve("fake") == first.id
    assert resolve("@fake-8191") == resolve(second.id) == second.id
    assert resolve("fake-8192") == resolve("mine") == third.id
    assert world.manager.directory.agent_on_port(8192) == third.id
    with pytest.raises(UnknownAgent):
        resolve("nobody")
    await world.manager.stop(first.id, remove=True)
    with pytest.raises(AmbiguousAddress):
        resolve("fake")


async def test_a_name_in_use_is_refused_also_while_it_is_being_started(world: World) -> None:
    world.factory.gate = asyncio.get_running_loop().create_future()
    starting = asyncio.ensure_future(world.start(name="x", ready=False))
    await asyncio.sleep(0)
    with pytest.raises(NameTaken):
        await world.start(name="x")
    world.factory.gate.set_result(None)
    await starting
    with pytest.raises(NameTaken):
        await world.start(name="x")


async def test_bad_requests(world: World, tmp_path: Path) -> None:
    for bad, error in [
        ({"profile": "fak"}, UnknownProfile),
        ({"name": "../x"}, InvalidRequest),
        ({"cwd": str(tmp_path / "none")}, InvalidRequest),
        ({"cwd": "relative"}, InvalidRequest),
    ]:
        with pytest.raises(error):
            await world.start(**bad)
    assert world.manager.directory.agents() == []


async def test_a_program_that_is_not_found_leaves_no_trace(world: World, tmp_path: Path) -> None:
    empty = str(tmp_path)
    with pytest.raises(ProgramNotFound) as caught:
        await world.start(env={"PATH": empty})
    assert empty in caught.value.message
    assert "install it (pipx install fake), start the agent" in caught.value.message
    assert await world.store.agents() == []
    assert world.store.events.all == []
    assert (await world.start()).id == AGENT


async def test_a_range_that_is_exhausted_is_followed_by_the_common_one(world: World) -> None:
    started = [await world.start() for _ in range(5)]
    assert [agent.port for agent in started] == [8190, 8191, 8192, 8200, 8201]
    with pytest.raises(PortsExhausted, match="fake-8191 has 8191"):
        await world.start(port=8191)
    assert (await world.start(port=8250)).id == "synapse-fake-8250"


async def test_an_agent_without_a_port(world: World) -> None:
    agent = await world.start(port=False)
    assert (agent.id, agent.port, agent.endpoint) == ("synapse-fake-fake", None, "http://127.0.0.1:8090/agents/fake")
    assert [(await world.start(port=False)).id for _ in range(2)] == ["synapse-fake-fake-2", "synapse-fake-fake-3"]
    with pytest.raises(InvalidRequest, match="no number"):
        await world.start(port=False, name="8190")
    assert (await world.start()).id == "synapse-fake-8190"
    await world.manager.stop(agent.id, remove=True)
    assert (await world.start(port=False)).id == "synapse-fake-fake"


async def test_the_environment(world: World) -> None:
    await world.start(
        env={
            "PATH": "/usr/bin:/bin",
            "SECRET": "s",
            "CLAUDECODE": "1",
            "SYNAPSE_AGENT_ID": "other",
            "SYNAPSE_AGENT_TOKEN": "stolen",
            "TMUX": "x",
            "TERM": "dumb",
        },
        extra_env={"MORE": "m"},
        cwd="/tmp",
    )
    env = world.factory.launched[0][1].env
    token = agent_token("t" * 43, AGENT, world.store._agents[AGENT].generation)
    assert env == {
        "PATH": "/usr/bin:/bin:/opt/tool",
        "SECRET": "s",
        "MORE": "m",
        "TERM": "xterm-256color",
        "COLORTERM": "truecolor",
        "PWD": "/tmp",
        "SYNAPSE_AGENT_ID": AGENT,
        "SYNAPSE_AGENT_NAME": "fake",
        "SYNAPSE_AGENT_TYPE": "fake",
        "SYNAPSE_ENDPOINT": "http://127.0.0.1:8090/agents/fake",
        "SYNAPSE_CONTROL_SOCKET": str(world.paths.control_socket),
        "SYNAPSE_AGENT_TOKEN": token,
    }
    assert world.manager.directory.token_owner(token) == AGENT
    assert world.manager.directory.token_owner("stolen") is None
    await world.manager.restart(AGENT)
    assert world.factory.launched[1][1].env == env


async def test_what_never_travels_stays_behind_and_the_configuration_overrules_that(world: World) -> None:
    world.environment = EnvironmentConfig(keep=["NVIM"], drop=["SECRET_*"])
    await world.daemon()
    env = {"PATH": "/bin", "GIT_DIR": ".git", "NVIM": "/n", "SECRET_KEY": "s", "PYTHONPATH": "/p", "ENV": "e"}
    started = await world.start(env=env, extra_env={"GIT_DIR": "asked for", "ENV": "x"})
    launched = world.factory.launched[0][1].env
    assert {name: launched.get(name) for name in env} == {
        "PATH": "/bin:/opt/tool",
        "GIT_DIR": "asked for",
        "NVIM": "/n",
        "SECRET_KEY": None,
        "PYTHONPATH": "/p",
        "ENV": "x",
    }
    assert isinstance(started, StartedAgent)
    assert started.activated == ["PYTHONPATH"], "what was asked for by name needs no telling"
    clean = await world.start(name="clean")
    assert isinstance(clean, StartedAgent)
    assert clean.activated == []


async def test_a_shell_brings_its_connection_for_the_next_start(world: World, tmp_path: Path) -> None:
    was, there = tmp_path / "was", tmp_path / "there"
    there.mkdir()
    view = await world.start(env={"PATH": "/bin", "XDG_RUNTIME_DIR": str(was), "KEY": "k"})
    assert await world.manager.directory.gone(view.id) == ["XDG_RUNTIME_DIR"]
    shell = {"PATH": "/other", "XDG_RUNTIME_DIR": str(there), "DISPLAY": ":1"}
    assert await world.manager.bring(view.id, shell, "connection") == ["DISPLAY", "XDG_RUNTIME_DIR"]
    assert await world.manager.bring(view.id, shell, "connection") == []
    assert await world.manager.directory.gone(view.id) == []
    await world.manager.close(keep_agents=True)
    await world.daemon()  # another one, which knows it too
    await world.manager.restart(view.id)
    launched = world.factory.launched[-1][1].env
    found = {name: launched.get(name) for name in (*shell, "KEY")}
    assert found == {**shell, "PATH": "/bin:/opt/tool", "KEY": "k"}
    assert await world.manager.bring(view.id, {"PATH": "/bin:/all", "NODE_OPTIONS": "-x"}, "all") == ["NODE_OPTIONS"]
    await world.manager.restart(view.id)
    launched = world.factory.launched[-1][1].env
    assert [launched.get(name) for name in ("PATH", "DISPLAY", "KEY")] == ["/bin:/all:/opt/tool", None, None]


async def test_a_configured_agent_has_it_as_long_as_the_daemon_lives(world: World) -> None:
    world.agents = {"auto": AgentConfig(profile="fake", autostart=True)}
    await world.daemon()
    world.link.ready()
    identity = world.manager.directory.resolve("auto")
    assert await world.manager.bring(identity, {"DISPLAY": ":1"}, "connection") == ["DISPLAY"]
    await world.manager.restart(identity)
    assert world.factory.launched[-1][1].env["DISPLAY"] == ":1"
    await world.manager.close(keep_agents=True)
    await world.daemon()
    await world.manager.restart(identity)
    assert "DISPLAY" not in world.factory.launched[-1][1].env, "the next daemon has an environment of its own login"


async def test_without_a_caller_the_daemon_s_environment(world: World) -> None:
    await world.start()
    env = world.factory.launched[0][1].env
    assert env["HOME"] == "/root"
    assert env["SYNAPSE_AGENT_ID"] == AGENT


async def test_configured_agents_are_listed_and_started_if_they_say_so(quiet_world: World) -> None:
    world = quiet_world
    world.agents = {
        "auto": AgentConfig(profile="fake", autostart=True, args=["-x"], env={"A": "1"}, cwd="/tmp"),
        "idle": AgentConfig(profile="fake", port=8192),
        "wrong": AgentConfig(profile="nope"),
    }
    await world.daemon()
    assert {v.name: (v.state, v.port) for v in world.manager.directory.agents()} == {
        "auto": ("running", 8190),
        "idle": ("stopped", 8192),
    }
    record, launch = world.factory.launched[0]
    assert (record.cwd, record.args, launch.env["A"]) == ("/tmp", ["-x"], "1")
    await world.manager.restart(world.manager.directory.resolve("idle"))
    await world.manager.close(keep_agents=True)
    world.agents = {"auto": AgentConfig(profile="fake", args=["-y"])}
    await world.daemon()
    assert {v.name for v in world.manager.directory.agents()} == {"auto", "idle"}
    await world.manager.restart(world.manager.directory.resolve("auto"))
    assert world.factory.launched[-1][0].args == ["-y"]


async def test_a_configured_agent_of_another_profile_is_left_alone(quiet_world: World) -> None:
    world = quiet_world
    world.agents = {"x": AgentConfig(profile="fake", args=["-a"])}
    await world.daemon()
    await world.manager.close(keep_agents=True)
    world.agents = {"x": AgentConfig(profile="talker", args=["-b"], autostart=True)}
    await world.daemon()
    assert [(v.name, v.type, v.state) for v in world.manager.directory.agents()] == [("x", "fake", "stopped")]
    assert (await world.store.agents())[0].args == ["-a"]


async def test_a_configured_command(quiet_world: World) -> None:
    quiet_world.agents = {"x": AgentConfig(profile="fake", command="/bin/cat", autostart=True)}
    await quiet_world.daemon()
    assert quiet_world.factory.launched[0][1].program == "/bin/cat"


async def test_an_agent_that_cannot_be_started_does_not_keep_the_others(quiet_world: World) -> None:
    world = quiet_world
    world.agents = {
        "broken": AgentConfig(profile="fake", command="/does/not/exist", autostart=True),
        "fine": AgentConfig(profile="fake", autostart=True),
    }
    await world.daemon()
    assert {v.name: v.state for v in world.manager.directory.agents()} == {"broken": "backoff", "fine": "running"}


async def test_whose_process(world: World) -> None:
    await world.start()
    assert await world.manager.directory.process_of(os.getpid()) is None
    mark = start_mark(os.getppid())
    assert mark is not None
    launch = world.manager._agents[AGENT].record.launch
    launch.pid, launch.pid_start = os.getppid(), mark
    assert await world.manager.directory.process_of(os.getpid()) == AGENT
    launch.pid_start = mark + 1
    assert await world.manager.directory.process_of(os.getpid()) is None


async def test_tasks_by_prefix(world: World) -> None:
    await world.start()
    task = await world.send(AGENT)
    assert (await world.manager.tasks.find(task.id[:8])).id == task.id
    for wrong in (task.id[:7], "nothing-like-it"):
        with pytest.raises(TaskNotFound):
            await world.manager.tasks.find(wrong)
    with pytest.raises(TaskNotFound):
        await world.manager.tasks.find(task.id, "synapse-fake-8191")
    assert (await world.manager.tasks.page(TaskFilter(agent_id=AGENT)))[1] == 1


async def test_shutdown_is_the_daemon_s_business(world: World) -> None:
    await world.manager.shutdown(keep_agents=True)
    assert world.shutdowns == [True]


async def test_profiles(world: World) -> None:
    rows = world.manager.directory.profiles()
    assert [row.name for row in rows] == ["drifter", "fake", "last", "talker"]
    assert rows[1].ports == [8190, 8192]


async def test_output_and_terminal_of_a_running_agent(world: World) -> None:
    await world.start()
    assert await world.manager.terminals.screen(AGENT, "text") == "fake screen"
    assert await world.manager.terminals.attach(AGENT, cols=80, rows=24, read_only=True)
    spool = world.paths.agent(AGENT) / "spool"
    spool.mkdir(parents=True)
    (spool / f"{4:020d}.seg").write_bytes(b"old output")
    OutputTimes(spool.parent / "times").note(8, 1_700_000_000.5)

    async def output(start: int | None, limit: int) -> tuple[int, bytes, bool]:
        piece = await world.manager.terminals.output(AGENT, start, limit)
        return piece.start, piece.data, piece.ended

    assert await output(None, 6) == (8, b"output", False)
    assert await output(0, 3) == (4, b"old", False)
    assert await output(99, 3) == (14, b"", False)
    await world.manager.stop(AGENT)
    assert await output(11, 3) == (11, b"put", False)
    assert await output(14, 3) == (14, b"", True)
    head, *events = (json.loads(line) for line in (await world.manager.terminals.recording(AGENT, 6)).splitlines())
    assert (head["version"], head["term"]["cols"], head["title"]) == (3, 120, "fake")
    assert events == [[0.0, "o", "output"]]
    with pytest.raises(UnknownAgent):
        await world.manager.terminals.output("nobody", 0, 1)


async def test_fifty_agents_start_and_come_back(world: World) -> None:
    views = [await world.start(name=f"n{n}", port=30000 + n) for n in range(50)]
    await world.manager.close(keep_agents=True)
    await world.daemon()
    assert {v.id for v in world.manager.directory.agents() if v.state == "running"} == {v.id for v in views}
    assert StartRequest(profile="fake").cols == 120


async def test_the_shells_umask_and_limits_are_kept_for_restarts_and_the_next_daemon(world: World) -> None:
    files = {"NOFILE": ResourceLimit(soft=1024, hard=None)}
    shell = ProcessAttributes(umask=0o077, nice=10, limits={"FSIZE": ResourceLimit(soft=1, hard=1)})
    known = await world.start(attributes=shell, save=True)
    unknown = await world.start(name="other")
    assert world.factory.launched[0][1].attributes == shell
    assert world.manager.directory.detail(known.id).attributes == "umask 077, nice 10"
    await world.manager.close(keep_agents=True)
    world.attributes = ProcessAttributes(umask=0o027, nice=0, cpus="all", limits=files)
    await world.daemon()
    for agent in (known, unknown):
        await world.manager.restart(agent.id)
    await until(lambda: len(world.factory.launched) == 4, "both were launched")
    told = {record.name: plan.attributes for record, plan in world.factory.launched[2:]}
    assert told["other"] == world.attributes
    assert told["fake"] == ProcessAttributes(umask=0o077, nice=10, cpus="all", limits={**files, **shell.limits})
    assert world.manager.directory.detail(unknown.id).attributes == "umask 027"


async def test_a_saved_agent_is_in_the_configuration(world: World) -> None:
    request = StartRequest(profile="fake", name="kept", cwd="/", extra_env={"A": "1"}, env={"B": "2"}, save=True)
    await world.manager.start(request)
    path = world.paths.agents_d / "kept.toml"
    saved = tomllib.loads(path.read_text())
    assert (saved["profile"], saved["autostart"], saved["env"]) == ("fake", True, {"A": "1"})
    assert path.stat().st_mode & 0o077 == 0


async def test_a_saved_agent_that_is_removed_does_not_come_back(world: World) -> None:
    started = await world.manager.start(StartRequest(profile="fake", name="kept", cwd="/", save=True))
    path = world.paths.agents_d / "kept.toml"
    await world.manager.stop(started.id)
    assert path.exists(), "stopped is not removed"
    await world.manager.stop(started.id, remove=True)
    assert not path.exists()


async def test_a_file_that_cannot_be_removed_keeps_the_agent(world: World) -> None:
    started = await world.manager.start(StartRequest(profile="fake", name="kept", cwd="/"))
    (world.paths.agents_d / "kept.toml").mkdir(parents=True)
    with pytest.raises(StoreError, match=r"kept\.toml cannot be removed, so the agent stays"):
        await world.manager.stop(started.id, remove=True)
    assert [view.state for view in world.manager.directory.agents()] == ["stopped"]


async def test_an_agent_that_cannot_be_saved_runs_all_the_same(world: World) -> None:
    world.paths.agents_d.parent.mkdir(exist_ok=True)
    world.paths.agents_d.write_text("a file where the directory should be")
    with pytest.raises(StoreError, match=r"agent 'kept' runs but is not saved: .*kept\.toml cannot be written"):
        await world.manager.start(StartRequest(profile="fake", name="kept", cwd="/", save=True))
    assert [(view.name, view.state) for view in world.manager.directory.agents()] == [("kept", "running")]


async def test_agents_with_much_to_read_hold_up_no_other(world: World) -> None:
    agents = [(await world.start(name=f"a{number}", port=18240 + number)).id for number in range(20)]
    slow = asyncio.get_running_loop().create_future()
    world.factory.slow_to_open = dict.fromkeys(agents[:-1], slow)
    await world.manager.close(keep_agents=True)
    await world.daemon(adopt=False)
    before = len(world.factory.links)
    adopting = asyncio.create_task(world.manager.adopt())
    try:
        await until(lambda: [link for link in world.factory.links[before:] if link.opened], "the last is taken up")
        assert not adopting.done()
    finally:
        slow.set_result(None)
        await adopting
    assert all(link.opened for link in world.factory.links)


async def test_a_sweep_that_fails_keeps_no_other_from_its_work(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The replies that agents wait for end by a sweep, which comes after those of all agents."""
    await world.start()
    swept: list[str] = []

    def faulty() -> None:
        swept.append("agent")
        raise RuntimeError("a defect")

    (agent,) = world.manager._agents.values()
    monkeypatch.setattr(agent, "sweep", faulty)
    monkeypatch.setattr(world.manager._reply_broker, "sweep", lambda: swept.append("replies"))
    with contextlib.suppress(RuntimeError):
        world.clock.advance(SWEEP_S)
    await until(lambda: "replies" in swept, "what is behind it is swept, too")
    assert swept[0] == "agent"


async def test_few_programs_are_taken_up_at_a_time(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("synapsed.supervisor.manager.ADOPTION_S", 1000.0)
    count = 2 * ADOPTIONS_AT_ONCE + 1
    agents = [(await world.start(name=f"a{number}", port=18240 + number)).id for number in range(count)]
    slow = asyncio.get_running_loop().create_future()
    world.factory.slow_to_open = dict.fromkeys(agents[:-1], slow)
    await world.manager.close(keep_agents=True)
    await world.daemon(adopt=False)
    before = len(world.factory.links)
    adopting = asyncio.create_task(world.manager.adopt())
    try:
        await until(lambda: len(world.factory.links) - before >= ADOPTIONS_AT_ONCE, "the first are being taken up")
        asked = world.manager.directory.get(agents[-1])
        assert asked is not None
        await asked.adopt()
        assert len(world.factory.links) - before == ADOPTIONS_AT_ONCE + 1, "and who is asked for, at once"
    finally:
        slow.set_result(None)
        await adopting
    assert [link.opened for link in world.factory.links[before:]] == [True] * count


async def test_who_is_made_anew_while_it_waits_for_another_is_started(quiet_world: World) -> None:
    world = quiet_world
    world.paths.config.mkdir(parents=True, exist_ok=True)
    text = "[api]\nagent_ports = false\n[agents.fake]\nautostart = true\n[agents.talker]\nautostart = true\n"
    text += 'depends_on = ["fake"]\n'
    world.paths.config_file.write_text(text)
    world.agents = {"fake": AgentConfig(autostart=True), "talker": AgentConfig(autostart=True, depends_on=["fake"])}
    await world.daemon(adopt=False)
    await world.manager.adopt()
    starting = asyncio.ensure_future(world.manager.autostart())
    await until(lambda: world.factory.links)
    world.paths.config_file.write_text(text + "restart = { initial = 7 }\n")
    changes = await world.manager.reload()
    assert [(change.agent, change.action) for change in changes] == [("talker", "update")]
    world.link.ready()
    await starting
    assert [view.state for view in world.manager.directory.agents()] == ["running", "running"]


async def test_a_reload_that_the_database_refuses_leaves_no_program_alone(quiet_world: World) -> None:
    world = quiet_world
    world.paths.config.mkdir(parents=True, exist_ok=True)
    text = "[api]\nagent_ports = false\n[agents.fake]\nautostart = true\n"
    world.paths.config_file.write_text(text + "restart = { initial = 7 }\n")
    world.agents = {"fake": AgentConfig(autostart=True)}
    await world.daemon()
    world.store.refuse = StoreError("disk full")
    reloading = asyncio.ensure_future(world.manager.reload())
    await until(lambda: len(world.factory.links) == 2)
    world.store.refuse = None
    world.clock.advance(1)
    assert [(change.agent, change.action) for change in await reloading] == [("fake", "update")]
    world.link.ready()
    await world.send(AGENT)
    await world.delivered()


async def test_who_is_stopped_before_it_would_be_started_stays_so(quiet_world: World) -> None:
    world = quiet_world
    world.agents["fake"] = AgentConfig(autostart=True)
    await world.daemon(adopt=False)
    await world.manager.adopt()
    assert (await world.manager.stop(AGENT)).state == "stopped"
    await world.manager.autostart()
    assert (world.manager.directory.view(AGENT).state, world.factory.launched) == ("stopped", [])


@pytest.mark.parametrize("how", ["shut down", "configured"])
async def test_who_comes_up_by_itself_takes_messages(quiet_world: World, how: str) -> None:
    world = quiet_world
    if how == "configured":
        world.agents["fake"] = AgentConfig(autostart=True)
    else:
        await world.daemon()
        await world.start()
        await world.manager.close(keep_agents=False)
    await world.daemon(adopt=False)
    assert world.manager.directory.view(AGENT).state == "stopped"
    task = await world.send(AGENT)
    assert world.manager.directory.resolve("fake") == AGENT
    assert task.status is TaskState.SUBMITTED
    await world.manager.adopt()
    await world.manager.autostart()
    world.link.ready()
    await world.delivered()
    await world.manager.stop(AGENT)
    with pytest.raises(NotReady, match="synapsectl restart fake"):
        await world.send(AGENT)


async def test_what_is_sent_while_the_daemon_ends_waits_for_the_next(world: World) -> None:
    await world.start()
    world.link.stop_gate = asyncio.get_running_loop().create_future()
    closing = asyncio.ensure_future(world.manager.close(keep_agents=False))
    await world.agent_is(AGENT, ProcessState.STOPPING)
    task = await world.send(AGENT)
    world.link.stop_gate.set_result(None)
    await closing
    await world.daemon()
    world.link.ready()
    await world.delivered()
    assert world.link.deliveries[0].text == "hello"
    await world.task_is(task.id, TaskState.WORKING)


@pytest.mark.parametrize("how", ["at once", "when idle", "after a stop"])
async def test_what_is_sent_during_a_restart_waits_for_its_end(world: World, how: str) -> None:
    await world.start()
    gate = world.link.stop_gate = asyncio.get_running_loop().create_future()
    try:
        stopping = [asyncio.ensure_future(world.manager.stop(AGENT))] if how == "after a stop" else []
        await world.agent_is(AGENT, ProcessState.STOPPING if stopping else ProcessState.RUNNING)
        restarting = asyncio.ensure_future(world.manager.restart(AGENT, when_idle=how == "when idle"))
        await world.agent_is(AGENT, ProcessState.STOPPING)
        await until(lambda: world.manager.directory.get(AGENT).comes_up, "it will run again")
        task = await world.send(AGENT)
    finally:
        gate.set_result(None)
    await until(lambda: len(world.factory.launched) == 2, "another launch")
    world.link.ready()
    await asyncio.gather(restarting, *stopping)
    await world.delivered()
    await world.task_is(task.id, TaskState.WORKING)


async def test_nothing_is_made_or_started_as_the_daemon_ends(quiet_world: World) -> None:
    """A reload that is under way ends with the agent that it is at, and what it made is ended too."""
    world = quiet_world
    world.paths.config.mkdir(parents=True, exist_ok=True)
    world.agents = {"fake": AgentConfig(autostart=True), "talker": AgentConfig()}
    await world.daemon()
    gate = asyncio.get_running_loop().create_future()
    world.factory.gate = gate
    text = "[api]\nagent_ports = false\n[agents.fake]\nautostart = true\n[agents.talker]\nautostart = true\n"
    world.paths.config_file.write_text(text + "[agents.last]\nautostart = true\n")
    reloading = asyncio.ensure_future(world.manager.reload())
    await world.agent_is("synapse-talker-8170", ProcessState.STARTING)
    closing = asyncio.ensure_future(world.manager.close(keep_agents=False))
    await asyncio.sleep(0)
    with pytest.raises(NotReady):
        await world.manager.start(StartRequest(profile="fake", cwd="/"))
    gate.set_result(None)
    await closing
    await reloading
    with pytest.raises(NotReady):
        await world.manager.reload()
    assert {record.state for record in await world.store.agents()} == {"stopped"}
    assert all(link.exit is not None for link in world.factory.links)


async def test_an_agent_that_the_database_does_not_know(world: World) -> None:
    view = await world.start(name="ann")
    record = next(record for record in await world.store.agents() if record.id == view.id)
    world.factory.unknown.append(record.model_copy(update={"state": "running"}))
    await world.manager.close(keep_agents=True)
    world.store = MemoryStore(world.clock)
    await world.daemon()
    found = await world.agent_is(view.id, ProcessState.RUNNING)
    assert (found.name, found.port) == ("ann", view.port)
    assert world.told(AgentAlert, lambda alert: alert.code) == ["TAKEN_UP"]
    await world.daemon()
    assert len(world.told(AgentAlert)) == 1, "the next daemon has it on record"


async def test_the_token_of_a_removed_agent_is_nobodys(world: World) -> None:
    """Its programs may live on: they are not the next agent with that port."""
    await world.start()
    first = world.factory.launched[-1][1].env["SYNAPSE_AGENT_TOKEN"]
    directory = world.manager.directory
    assert directory.token_owner(first) == AGENT
    await world.manager.stop(AGENT, remove=True)
    assert directory.token_owner(first) is None
    assert (await world.start()).id == AGENT
    assert directory.token_owner(first) is None
    assert directory.token_owner(world.factory.launched[-1][1].env["SYNAPSE_AGENT_TOKEN"]) == AGENT


async def test_the_token_of_an_agent_that_an_older_version_started_stays(quiet_world: World) -> None:
    world = quiet_world
    await world.daemon()
    await world.start()
    record = world.store._agents[AGENT]
    world.store._agents[AGENT] = record.model_copy(update={"generation": ""})
    await world.daemon()
    assert world.manager.directory.token_owner(agent_token("t" * 43, AGENT)) == AGENT
