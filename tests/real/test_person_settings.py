"""A person's own settings of the real programs win over what synapsed adds, and what that means is said."""

import json
import shlex
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.real.agents import STARTS_S, RealAgent, nonce
from tests.real.conftest import CliHome
from tests.real.model import Model
from tests.real.programs import Prepared
from tests.real.ways import OFF
from tests.support.daemon import Daemon, eventually

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]

type Configured = Callable[..., RealAgent]


def settings(prepared: Prepared, own: Mapping[str, Any]) -> None:
    """Puts these into the file of the person's settings that the program has."""
    place = {"claude": ".claude/settings.json", "gemini": ".gemini/settings.json"}
    file = prepared.home / place.get(prepared.cli, ".config/opencode/opencode.json")
    file.parent.mkdir(mode=0o700, exist_ok=True)
    file.write_text(json.dumps({**(json.loads(file.read_text()) if file.exists() else {}), **own}))


def asked_about_auto_mode(prepared: Prepared) -> None:
    """claude asks once whether auto mode is to be the default where its user settings have another one."""
    file = prepared.home / ".claude.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "hasSeenAutoDefaultNudge": True}))


@pytest.fixture
def configured(private_dir: Path, model: Model) -> Iterator[Callable[..., tuple[Daemon, str]]]:
    """A daemon with the program in its configuration, which it starts; it need not come up."""
    daemons = []

    def configure(prepared: Prepared, *, way: str = "", profile: str = "", **wanted: Any) -> Daemon:
        import tomli_w

        daemon = Daemon(private_dir / "synapsed")
        daemons.append(daemon)
        cli = prepared.cli
        if way == "typed" or profile:
            folder = daemon.home / "config" / "profiles"
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{cli}.toml").write_text(profile or OFF[cli])
        config = {"cwd": str(prepared.cwd), "env": dict(prepared.env), "autostart": True, **wanted}
        with (daemon.home / "config" / "config.toml").open("ab") as file:
            tomli_w.dump({"agents": {cli: config}}, file)
        return daemon.start()

    yield configure
    for daemon in daemons:
        daemon.end()


MODES = {
    "user": (".claude/settings.json", True),
    "project": (".claude/settings.json", False),
    "local": (".claude/settings.local.json", False),
}


@pytest.mark.parametrize("where", [*MODES, "--settings"])
def test_claude_begins_in_the_mode_that_the_person_has_set(
    where: str, daemon: Daemon, model: Model, cli_home: CliHome
) -> None:
    prepared, mode = cli_home("claude"), {"permissions": {"defaultMode": "plan"}}
    options: tuple[str, ...] = ()
    asked_about_auto_mode(prepared)
    if where in MODES:
        name, at_home = MODES[where]
        file = (prepared.home if at_home else prepared.cwd) / name
        file.parent.mkdir(mode=0o700, exist_ok=True)
        file.write_text(json.dumps(mode))
    else:
        options = ("--", "--settings", json.dumps(mode))
    agent = RealAgent.start("claude", daemon, model, prepared, *options)
    assert "plan mode on" in agent.screen()
    assert "it begins in plan mode" in daemon.ctl("status", "claude").out


@pytest.mark.parametrize("answer", ["no", "auto"])
def test_claudes_question_about_auto_mode_is_known(
    answer: str, daemon: Daemon, model: Model, cli_home: CliHome
) -> None:
    """It asks once; a message that is there already waits."""
    prepared = cli_home("claude")
    settings(prepared, {"permissions": {"defaultMode": "plan"}})
    agent = RealAgent.start("claude", daemon, model, prepared, ready=False)
    asked = eventually(
        lambda: daemon.get("/agents/claude/status?detail=1").json["prompt"], "it asks", patience=STARTS_S
    )
    assert asked["prompt"].startswith("Make auto mode your default permission mode?"), asked
    assert [option["key"] for option in asked["options"]] == ["no", "auto"]
    task = agent.send(f"Behind it, {nonce()}.")
    assert daemon.ctl("approve", "claude").code == 6
    assert daemon.ctl("input", "claude", answer).code == 0
    assert daemon.ended(task)["status"] == "completed", agent.screen()
    assert ("plan mode on" if answer == "no" else "auto mode on") in agent.screen()
    kept = json.loads((prepared.home / ".claude" / "settings.json").read_text())
    assert kept["permissions"]["defaultMode"] == ("plan" if answer == "no" else "auto")


def test_claude_begins_in_manual_mode_where_nobody_has_said_otherwise(
    daemon: Daemon, model: Model, cli_home: CliHome
) -> None:
    agent = RealAgent.start("claude", daemon, model, cli_home("claude"))
    assert "auto mode" not in agent.screen()
    assert daemon.agent("claude").get("settings", []) == []


@pytest.mark.parametrize("form", ["file", "document"])
def test_claude_has_the_settings_of_its_command_line_and_our_hooks(
    form: str, model: Model, cli_home: CliHome, configured: Callable[..., Daemon]
) -> None:
    prepared, word = cli_home("claude"), nonce()
    own = {
        "env": {"MINE": word},
        "hooks": {"Stop": [{"hooks": [{"type": "command", "command": f"touch {prepared.home}/stopped"}]}]},
    }
    given = json.dumps(own)
    if form == "file":
        (prepared.cwd / "mine.json").write_text(given)
        given = "mine.json"
    daemon = configured(prepared, args=["--settings", given], approval={"deny": ["Bash(touch denied*)"]})
    agent = RealAgent("claude", daemon, model, prepared)
    daemon.ready("claude", patience=STARTS_S)
    done = agent.ask(f"{nonce()} [[tool:shell-ask:touch denied-{word}]] say: Not made.")
    assert (done.code, done.out) == (0, "Not made.\n"), f"{done.err}\n{agent.screen()}"
    assert not agent.file(f"denied-{word}").exists()
    assert agent.daemon.task(agent.tasks()[0]["id"])["exact"]
    eventually((prepared.home / "stopped").exists, "the person's own hook runs")
    agent.allow_tools()
    agent.ask(f"{nonce()} [[tool:shell-ask:echo $MINE > mine]] say: Made.")
    assert agent.file("mine").read_text().strip() == word


def _claude_off(prepared: Prepared) -> None:
    settings(prepared, {"disableAllHooks": True})


def _codex_off(prepared: Prepared) -> None:
    file = prepared.home / ".codex" / "config.toml"
    file.write_text(f"{file.read_text()}\n[features]\nhooks = false\n")


def _codex_never(prepared: Prepared) -> None:
    file = prepared.home / ".codex" / "config.toml"
    file.write_text(f'approval_policy = "never"\n{file.read_text()}')


def _gemini_off(prepared: Prepared) -> None:
    settings(prepared, {"hooksConfig": {"enabled": False}})


def _opencode_never(prepared: Prepared) -> None:
    settings(prepared, {"permission": {"bash": "allow"}})


UNENFORCED: dict[str, tuple[Callable[[Prepared], None], str]] = {
    "claude": (_claude_off, "disableAllHooks"),
    "codex": (_codex_never, "approval_policy"),
    "codex-typed": (_codex_off, "features.hooks"),
    "gemini": (_gemini_off, "hooksConfig.enabled"),
    "opencode": (_opencode_never, "asks about nothing"),
}
TOOLS = {"claude": "Bash", "codex": "Bash", "gemini": "run_shell_command", "opencode": "bash"}


@pytest.mark.parametrize("way", UNENFORCED)
def test_where_deny_rules_cannot_be_enforced_it_is_not_started(
    way: str, model: Model, cli_home: CliHome, configured: Callable[..., Daemon]
) -> None:
    cli, _, typed = way.partition("-")
    prepared, word = cli_home(cli), nonce()
    install, named = UNENFORCED[way]
    install(prepared)
    daemon = configured(prepared, way=typed, approval={"deny": [f"{TOOLS[cli]}(touch denied*)"]})
    refused = daemon.ctl("restart", cli)
    assert refused.code == 6, (refused, daemon.agent(cli))
    assert named in refused.err
    assert "--without-approval" in refused.err
    assert daemon.agent(cli)["pid"] is None
    started = daemon.ctl("restart", cli, "--without-approval")
    assert started.code == 0, started
    daemon.ready(cli, patience=STARTS_S)
    assert named in daemon.ctl("status", cli).out
    assert named in daemon.ctl("doctor").out
    agent = RealAgent(cli, daemon, model, prepared)
    agent.ask_exactly(f"And it answers, {word}.")


@pytest.mark.parametrize("mode", ["bypassPermissions", "acceptEdits", "plan"])
def test_deny_rules_count_in_every_mode_of_claude(
    mode: str, model: Model, cli_home: CliHome, configured: Callable[..., Daemon]
) -> None:
    prepared, word = cli_home("claude"), nonce()
    asked_about_auto_mode(prepared)
    settings(prepared, {"permissions": {"defaultMode": mode}, "skipDangerousModePermissionPrompt": True})
    env = {**prepared.env, "IS_SANDBOX": "1"}  # else it refuses to run tools unasked for root
    daemon = configured(prepared, approval={"deny": ["Bash(touch denied*)"]}, env=env)
    daemon.ready("claude", patience=STARTS_S)
    agent = RealAgent("claude", daemon, model, prepared)
    done = agent.ask(f"{nonce()} [[tool:shell-ask:touch denied-{word}]] say: Not made.")
    assert (done.code, done.out) == (0, "Not made.\n"), f"{done.err}\n{agent.screen()}"
    assert not agent.file(f"denied-{word}").exists()


def test_gemini_keeps_the_settings_of_its_system(
    model: Model, daemon: Daemon, cli_home: CliHome, private_dir: Path
) -> None:
    """Those that a person (or who administers the machine) has named in the environment."""
    prepared = cli_home("gemini")
    system = private_dir / "system.json"
    system.write_text(json.dumps({"ui": {"hideBanner": True}, "context": {"fileName": "MINE.md"}}))
    (prepared.cwd / "MINE.md").write_text("Mine is the word.\n")
    env = {**prepared.env, "GEMINI_CLI_SYSTEM_SETTINGS_PATH": str(system)}
    theirs = Prepared(cli="gemini", argv=prepared.argv, env=env, home=prepared.home, cwd=prepared.cwd)
    agent = RealAgent.start("gemini", daemon, model, theirs)
    assert "MINE.md" in agent.screen()
    agent.ask_exactly(f"And it answers exactly, {nonce()}.")
    assert daemon.task(agent.tasks()[0]["id"])["exact"]


@pytest.mark.parametrize("name", ["HTTP_PROXY", "http_proxy", "ALL_PROXY"])
@pytest.mark.parametrize("cli", ["opencode", "codex"])
def test_behind_a_proxy_it_starts_and_answers(
    cli: str, name: str, daemon: Daemon, model: Model, cli_home: CliHome
) -> None:
    """Nothing listens at the proxy's address: what went there would be lost. The person's own exceptions stay."""
    prepared = cli_home(cli)
    env = {**prepared.env, name: "http://127.0.0.1:9", "NO_PROXY": "example.org"}
    agent = RealAgent.start(
        cli, daemon, model, Prepared(cli=cli, argv=prepared.argv, env=env, home=prepared.home, cwd=prepared.cwd)
    )
    agent.ask_exactly(f"And it answers, {nonce()}.")
    environ = dict(
        entry.split("=", 1) for entry in Path(f"/proc/{agent.pid}/environ").read_text().split("\0") if "=" in entry
    )
    for spelling in ("NO_PROXY", "no_proxy"):
        assert environ[spelling].split(",")[0] == "example.org"
        assert {"localhost", "127.0.0.1"} <= set(environ[spelling].split(","))


def test_claudes_own_keys_are_named_where_they_keep_a_message(daemon: Daemon, model: Model, cli_home: CliHome) -> None:
    prepared, word = cli_home("claude"), nonce()
    keys = prepared.home / ".claude" / "keybindings.json"
    keys.parent.mkdir(mode=0o700, exist_ok=True)
    keys.write_text(
        json.dumps({"bindings": [{"context": "Chat", "bindings": {"enter": "chat:newline", "ctrl+s": "chat:submit"}}]})
    )
    agent = RealAgent.start("claude", daemon, model, prepared)
    assert "keybindings.json binds enter" in daemon.ctl("status", "claude").out
    task = agent.daemon.ended(agent.send(f"Something, {word}."))
    assert (task["status"], task["error"]["code"]) == ("failed", "UNDELIVERED"), f"{task}\n{agent.screen()}"
    assert "keybindings.json binds enter" in task["error"]["message"]


WRAPPER = '#!/bin/sh\n{program} "$@"\nexit 0\n'


@pytest.mark.parametrize("cli", ["claude", "gemini"])
def test_a_crash_behind_a_wrapper_that_ends_well_is_a_crash(
    cli: str, model: Model, cli_home: CliHome, configured: Callable[..., Daemon]
) -> None:
    """It is started again, as its restart policy says of one that fails."""
    import psutil

    prepared, word = cli_home(cli), nonce()
    wrapper = prepared.home / "wrapper"
    wrapper.write_text(WRAPPER.format(program=shlex.quote(prepared.argv[0])))
    wrapper.chmod(0o755)
    daemon = configured(prepared, command=str(wrapper), restart={"policy": "on-failure", "initial": 0.5})
    daemon.ready(cli, patience=STARTS_S)
    agent = RealAgent(cli, daemon, model, prepared)
    task, before = agent.send(f"{word} [[hold:{word}]] say: Late."), agent.pid
    model.wait_for_turn(word, timeout=STARTS_S)
    for process in psutil.Process(before).children(recursive=True):
        process.kill()
    ended = daemon.ended(task)
    assert (ended["status"], ended["error"]["code"]) == ("failed", "AGENT_EXITED")
    model.release(word)
    told = daemon.agent(cli)
    assert "that is no success" in told["evidence"] or told["restarts"] == 1, told
    daemon.ready(cli, patience=STARTS_S)
    assert daemon.agent(cli)["pid"] != before
    agent.ask_exactly(f"And then {nonce()}.")
