"""What a new configuration changes; the order of starts; files of variables."""

from pathlib import Path

import pytest

from synapsed.config.config import AgentConfig, Config, RestartPolicy
from synapsed.config.config_files import load_config
from synapsed.config.paths import Paths
from synapsed.errors import ConfigError
from synapsed.interfaces import ConfigChange
from synapsed.model.records import AgentRecord
from synapsed.parts.loading import config_model
from synapsed.profiles.profile import Profile
from synapsed.profiles.screen_spec import Ready
from synapsed.supervisor.environment import read_env_file
from synapsed.supervisor.reload import differences, in_layers

PROFILE = Profile(name="sh", command="sh")


def record(name: str, *, from_config: bool = True, profile: str = "sh") -> AgentRecord:
    return AgentRecord(
        id=name, name=name, profile=profile, port=1, cwd="/", created_at=0, from_config=from_config
    )  # fmt: skip


def changed(
    old: AgentConfig | None, new: AgentConfig | None, *, live: bool = True, before: Profile = PROFILE,
    after: Profile = PROFILE, known: bool = True, from_config: bool = True,
) -> list[ConfigChange]:  # fmt: skip
    def config(agent: AgentConfig | None) -> Config:
        return Config(agents={"a": agent} if agent is not None else {})

    agents = [(record("a", from_config=from_config), live)] if known else []
    return differences(agents, config(old), config(new), lambda _: before, lambda _: after)


SH = AgentConfig(profile="sh")


@pytest.mark.parametrize(
    ("new", "live", "action"),
    [
        (SH, True, None),
        (SH.model_copy(update={"args": ["x"]}), True, "restart"),
        (SH.model_copy(update={"args": ["x"]}), False, "update"),
        (SH.model_copy(update={"restart": RestartPolicy(policy="never")}), True, "update"),
        (SH.model_copy(update={"autostart": True}), True, "update"),
        (SH.model_copy(update={"autostart": True}), False, "start"),
        (SH.model_copy(update={"profile": "zsh"}), True, "refused"),
        (None, True, "stop"),
        (None, False, "update"),
    ],
)
def test_a_configured_agent(new: AgentConfig | None, live: bool, action: str | None) -> None:
    assert [change.action for change in changed(SH, new, live=live)] == ([action] if action else [])


def test_new_agents() -> None:
    assert changed(None, SH, known=False) == [ConfigChange("a", "add", "it is new")]
    start = SH.model_copy(update={"autostart": True})
    assert changed(None, start, known=False) == [ConfigChange("a", "start", "it is new")]


def test_an_agent_that_was_started_by_hand() -> None:
    other = PROFILE.model_copy(update={"args": ["x"]})
    told = changed(None, None, from_config=False, after=other)
    assert told == [ConfigChange("a", "restart", "of its profile args changed")]
    assert changed(None, None, from_config=False) == []


def test_an_agent_that_was_started_by_hand_and_saved() -> None:
    """It runs as the file says, and is not restarted for that."""
    saved = AgentConfig(profile="sh", cwd="/", port=1, autostart=True)
    assert changed(None, saved, from_config=False) == [ConfigChange("a", "update", "autostart changed")]
    assert changed(None, SH, from_config=False) == []
    elsewhere = saved.model_copy(update={"cwd": "/tmp", "autostart": False})
    assert changed(None, elsewhere, from_config=False) == [ConfigChange("a", "restart", "cwd changed")]


def test_how_a_screen_is_read_changes_at_once() -> None:
    other = PROFILE.model_copy(update={"ready": Ready(quiet_ms=7), "description": "other words"})
    assert changed(SH, SH, after=other) == [ConfigChange("a", "update", "of its profile ready changed")]


@pytest.mark.parametrize(
    ("new", "told"),
    [
        ({"attach": {"status": True}}, "[attach] changed"),
        ({"teams": {"review": {"members": ["a"]}}}, "[teams] changed"),
    ],
)
def test_what_counts_for_a_person_at_once(new: dict[str, object], told: str) -> None:
    changes = differences([], Config(), Config.model_validate(new), lambda _: None, lambda _: None)
    assert changes == [ConfigChange(None, "update", told)]


def test_what_a_daemon_reads_once() -> None:
    whole = config_model()
    for section, key, value in (("history", "enabled", False), ("a2a", "repeats", False), ("hosts", "name", "here")):
        new = whole.model_validate({section: {key: value}})
        told = differences([], whole(), new, lambda _: None, lambda _: None)
        assert told == [ConfigChange(None, "daemon", f"[{section}] {key} counts after a restart of the daemon")]
    new = Config.model_validate({"api": {"agent_ports": False}})
    told = differences([], Config(), new, lambda _: None, lambda _: None)
    assert told == [ConfigChange(None, "daemon", "[api] agent_ports counts after a restart of the daemon")]
    new = Config.model_validate({"a2a": {"push": {"allow": ["loopback"]}}})
    told = differences([], Config(), new, lambda _: None, lambda _: None)
    assert told == [ConfigChange(None, "daemon", "[a2a.push] allow counts after a restart of the daemon")]


def test_layers() -> None:
    config = Config(
        agents={
            "web": AgentConfig(depends_on=["api"]),
            "api": AgentConfig(depends_on=["db", "bus"]),
            "db": AgentConfig(),
            "bus": AgentConfig(),
        }
    )
    assert in_layers(config, ["web", "api", "db", "byhand"]) == [["db", "byhand"], ["api"], ["web"]]
    assert in_layers(config, ["web", "db"]) == [["db"], ["web"]]
    assert in_layers(config, []) == []


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "[agents.a]\ndepends_on = ['bb']\n[agents.bbb]\n",
            "agent 'a' depends on 'bb', which is not configured; did you",
        ),
        ("[agents.a]\ndepends_on = ['b']\n[agents.b]\ndepends_on = ['a']\n", "depend on each other: "),
    ],
)
def test_dependencies_that_cannot_be(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "config.toml").write_text(text)
    with pytest.raises(ConfigError, match=told):
        load_config(Paths(config=tmp_path, state=tmp_path, run=tmp_path, a2a=tmp_path))


def test_a_file_of_variables(tmp_path: Path) -> None:
    path = tmp_path / "vars"
    path.write_text("\n# no\nexport A=1\nB='x y'\nC=\"\"\nD=a=b # all of it\n  E = no\n")
    with pytest.raises(ConfigError, match=r"vars:7: a line is NAME=value") as caught:
        read_env_file(path)
    assert "no" not in caught.value.message.partition(":7:")[2].split("NAME")[0]
    path.write_text("\n# no\nexport A=1\nB='x y'\nC=\"\"\nD=a=b # all of it\n")
    assert read_env_file(path) == {"A": "1", "B": "x y", "C": "", "D": "a=b # all of it"}
    with pytest.raises(ConfigError, match="No such file"):
        read_env_file(tmp_path / "none")
