"""The verbs against the fake daemon: what they ask for, what they print, how they end."""

import json
import os
import resource

from synapsed import errors
from synapsed.model.agent import Conversation
from tests.synapsectl.conftest import Ctl
from tests.synapsectl.fake_daemon import FakeDaemon, agent


def test_list_json_is_what_the_daemon_says(daemon: FakeDaemon, ctl: Ctl) -> None:
    result = ctl("list", "--json")
    assert result.code == 0
    assert [row["name"] for row in json.loads(result.out)] == ["claude", "codex"]
    assert result.err == ""


def test_list_in_a_pipe_is_tab_separated_without_headings(daemon: FakeDaemon, ctl: Ctl) -> None:
    result = ctl("ls")
    rows = [line.split("\t") for line in result.out.splitlines()]
    assert [row[:2] for row in rows] == [["claude", "ready"], ["codex", "ready"]]
    assert rows[0][-1] == "/work/space"


def test_list_of_a_fleet_names_the_hosts_that_are_away(daemon: FakeDaemon, ctl: Ctl) -> None:
    assert ctl("list", "--fleet").code == 6
    states = {"box": "here", "laptop": "up", "attic": "away", "shed": "sleeping"}
    daemon.fleet = [{"host": host, "state": state, "agents": []} for host, state in states.items()]
    daemon.agents["codex@attic"] = agent("codex@attic", host="attic", evidence="attic is away: as it told it last")
    told = ctl("list", "--fleet")
    assert told.code == 0
    assert "codex@attic" in told.out
    assert [line for line in told.err.splitlines() if "last reported them" in line] == [
        "synapsectl: attic is away: its agents are shown as it last reported them",
        "synapsectl: shed is sleeping: its agents are shown as it last reported them",
    ]


def test_hostile_words_of_another_host_are_harmless_in_a_list(daemon: FakeDaemon, ctl: Ctl) -> None:
    hostile = agent("codex@rogue", since="\x9b2J", evidence="\x1b]0;x\x07", held="\u202e", cwd="\x1b[2J", host="rogue")
    daemon.agents["codex@rogue"] = hostile
    for told in (ctl("list"), ctl("list", "--json")):
        assert told.code == 0
        assert all(line.isprintable() for line in told.out.replace("\t", " ").splitlines()), told.out


def test_colours_in_a_pipe_where_they_are_asked_for(daemon: FakeDaemon, ctl: Ctl) -> None:
    assert "\tready\t" in ctl("ls").out
    assert "\t\x1b[32mready\x1b[0m\t" in ctl("ls", CLICOLOR_FORCE="1").out
    assert "\x1b" not in ctl("ls", NO_COLOR="1").out


def test_no_agents_is_said_on_stderr(daemon: FakeDaemon, ctl: Ctl) -> None:
    daemon.agents.clear()
    assert ctl("list").out == ""
    assert "no agents" in ctl("list").err
    assert json.loads(ctl("list", "--json").out) == []


def test_start_passes_this_shell_on(daemon: FakeDaemon, ctl: Ctl) -> None:
    result = ctl("start", "dummy", "--name", "d", "--env", "K=a=b", "--cwd", "/", "--", "--flag", "x", COLOUR="blue")
    assert result.code == 0, result.err
    assert result.out.split("\t") == ["d", "synapse-dummy-8190", "http://localhost:8190", "4242\n"]
    _, path, body = daemon.requests[-1]
    assert path == "/control/start"
    assert (body["cwd"], body["args"], body["extra_env"]) == ("/", ["--flag", "x"], {"K": "a=b"})
    assert body["env"]["COLOUR"] == "blue"
    assert (body["cols"], body["rows"]) == (120, 40)


def test_start_passes_on_umask_and_limits(daemon: FakeDaemon, ctl: Ctl) -> None:
    before = os.umask(0o027)
    try:
        assert ctl("start", "dummy", "--clean-env").code == 0
        assert os.umask(0o027) == 0o027
    finally:
        os.umask(before)
    attributes = daemon.requests[-1][2]["attributes"]
    assert attributes["umask"] == 0o027
    soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
    unlimited = resource.RLIM_INFINITY
    assert attributes["limits"]["CORE"] == {
        "soft": None if soft == unlimited else soft,
        "hard": None if hard == unlimited else hard,
    }


def test_what_a_program_could_not_have_is_said_at_its_start_and_by_status(daemon: FakeDaemon, ctl: Ctl) -> None:
    daemon.starts_as = {"withheld": "nice -5 (it has 0)", "attributes": "umask 077"}
    started = ctl("start", "dummy")
    assert started.err == "synapsectl: dummy: not given to its program as this shell has it: nice -5 (it has 0)\n"
    shown = ctl("status", "dummy").out.splitlines()
    assert [line.split(None, 1) for line in shown if line.startswith(("  process", "  withheld"))] == [
        ["process", "umask 077"],
        ["withheld", "nice -5 (it has 0)"],
    ]
    assert "nice" not in ctl("list").err


def test_a_daemon_that_is_older_than_the_tool_starts_agents_all_the_same(daemon: FakeDaemon, ctl: Ctl) -> None:
    daemon.unknown = frozenset({"attributes"})
    started = ctl("start", "dummy")
    assert started.code == 0, started
    assert "umask and limits, which this daemon, older than the tool, does not know" in started.err
    daemon.unknown = frozenset({"env"})
    assert ctl("start", "dummy").code == 2


def test_start_never_passes_on_what_is_another_agents(daemon: FakeDaemon, ctl: Ctl) -> None:
    ctl("start", "dummy", SYNAPSE_AGENT_TOKEN="t", SYNAPSE_AGENT_ID="synapse-claude-8100")
    assert not [name for name in daemon.requests[-1][2]["env"] if name.startswith("SYNAPSE_")]


def test_start_says_what_came_along_and_decides_which_code_runs(daemon: FakeDaemon, ctl: Ctl) -> None:
    daemon.activated = ["NODE_OPTIONS", "VIRTUAL_ENV"]
    result = ctl("start", "dummy", "--json")
    (told,) = [line for line in result.err.splitlines() if "VIRTUAL_ENV" in line]
    assert "of this shell's environment, NODE_OPTIONS, VIRTUAL_ENV went along" in told
    assert "activated" not in json.loads(result.out)


def test_clean_env_leaves_the_environment_to_the_daemon(daemon: FakeDaemon, ctl: Ctl) -> None:
    ctl("start", "dummy", "--clean-env")
    assert "env" not in daemon.requests[-1][2]


def test_start_refuses_what_cannot_be(daemon: FakeDaemon, ctl: Ctl) -> None:
    assert ctl("start", "dummy", "--env", "novalue").code == 2
    assert ctl("start", "dummy", "--cwd", "/nowhere/at/all").code == 2
    assert ctl("start", "dummy", "--cols", "-3").code == 2
    assert ctl("start", "dummy", "--rows", "0").code == 2
    assert ctl("start").code == 2
    assert daemon.requests == []


def test_status_of_an_agent_and_of_the_daemon(daemon: FakeDaemon, ctl: Ctl) -> None:
    daemon.agents["claude"] = agent("claude", port=8100, error="it crashed \x1b]0;x\x07", held="typing")
    result = ctl("status", "claude")
    assert "claude (synapse-claude-8100)  ready" in result.out
    assert "typing" in result.out
    assert json.loads(ctl("status", "claude", "--json").out)["screen"] == "claude> \n\n"
    of_daemon = ctl("status").out.splitlines()
    assert of_daemon[0] == "synapsed 9.9, pid 77, up 1m01s, agents: 2"
    assert "  listen          127.0.0.1:8090" in of_daemon


def test_stop_serves_the_others_when_one_is_refused(daemon: FakeDaemon, ctl: Ctl) -> None:
    result = ctl("stop", "nobody", "codex")
    assert result.code == 4
    assert result.out == "codex stopped\n"
    assert "nobody" in result.err


def test_stop_all_leaves_out_what_is_stopped(daemon: FakeDaemon, ctl: Ctl) -> None:
    ctl("stop", "codex")
    assert ctl("stop", "--all").out == "claude stopped\n"
    assert ctl("stop", "--all", "--remove").out == "claude stopped and removed\ncodex stopped and removed\n"
    assert daemon.requests[-1][2] == {"remove": True}
    assert ctl("stop").code == 2
    assert ctl("stop", "claude", "--all").code == 2


def test_restart_and_kill(daemon: FakeDaemon, ctl: Ctl) -> None:
    assert ctl("restart", "claude").out == "claude restarted\n"
    assert ctl("kill", "claude", "codex").out == "claude killed\ncodex killed\n"
    assert ctl("park", "claude").out == "claude parked\n"
    assert [row["name"] for row in json.loads(ctl("kill", "--all", "--json").out)] == ["claude", "codex"]


def test_a_restart_says_that_the_conversation_was_lost(daemon: FakeDaemon, ctl: Ctl) -> None:
    note = "new: the program never reported the id of its conversation"
    daemon.agents["claude"].conversation = Conversation(context_id="c", id=None, said=False, resumed=False, note=note)
    result = ctl("restart", "claude")
    assert (result.code, result.out) == (0, "claude restarted\n")
    assert note in result.err
    daemon.agents["claude"].conversation = Conversation(
        context_id="c", id="c1", said=True, resumed=True, note="goes on"
    )
    assert ctl("restart", "claude").err == ""


def test_no_daemon_is_3_and_says_how_to_start_one(ctl: Ctl) -> None:
    for verb in (["list"], ["status"], ["stop", "x"], ["send", "x", "y", "--no-spawn-daemon"]):
        result = ctl(*verb)
        assert result.code == 3, verb
        assert "synapsed run" in result.err
        assert result.out == ""


def test_every_refusal_has_the_exit_code_of_its_code(daemon: FakeDaemon, ctl: Ctl) -> None:
    for kind in (errors.UnknownAgent, errors.AmbiguousAddress, errors.NotReady, errors.QueueFull, errors.Forbidden):
        daemon.refuse("POST", "/agents/claude/tasks/send", kind("because"))
        result = ctl("send", "claude", "x", "--json")
        assert result.code == errors.EXIT_CODES.get(kind.code, 6), kind
        assert json.loads(result.out)["error"]["code"] == kind.code
        assert result.err == "synapsectl: because\n"


def test_unknown_verb_suggests(ctl: Ctl) -> None:
    result = ctl("lst")
    assert result.code == 2
    assert "list" in result.err
    assert ctl().code == 2
    assert ctl("-h").code == 0


def test_status_explained_marks_what_decided(daemon: FakeDaemon, ctl: Ctl) -> None:
    result = ctl("status", "claude", "--explain")
    assert result.code == 0, result.err
    head, *rows = result.out.splitlines()
    assert head.startswith("claude (")
    assert [row.split("\t")[:2] for row in rows] == [["", "dialog"], ["=>", "composer"]]
    chain = json.loads(ctl("status", "claude", "--explain", "--json").out)["explain"]
    assert [row["channel"] for row in chain if row["decides"]] == ["composer"]
    assert "explain" not in json.loads(ctl("status", "claude", "--json").out)


def test_what_a_persons_settings_mean_is_said_at_the_start_and_by_status_and_doctor(
    daemon: FakeDaemon, ctl: Ctl
) -> None:
    said = "disableAllHooks = true in ~/.claude/settings.json: it runs no hooks"
    daemon.starts_as = {"settings": [said]}
    assert ctl("start", "dummy").err == f"synapsectl: dummy: {said}\n"
    assert f"  settings      {said}" in ctl("status", "dummy").out.splitlines()
    assert ctl("list").err == ""


def test_without_approval_goes_along(daemon: FakeDaemon, ctl: Ctl) -> None:
    ctl("start", "dummy", "--without-approval")
    assert daemon.requests[-1][2]["without_approval"] is True
    ctl("restart", "claude", "--without-approval")
    restarts = [body for _, path, body in daemon.requests if path.endswith("/restart")]
    assert restarts[-1] == {"when_idle": False, "without_approval": True}
