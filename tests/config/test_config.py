"""The configuration: what is read, what is refused and how that is said, what is written."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapsed.config.config import AgentConfig, Config, RestartPolicy
from synapsed.config.config_files import load_config, save_agent, unsave_agent
from synapsed.config.paths import Paths
from synapsed.errors import ConfigError, InvalidRequest, StoreError


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    return Paths(config=tmp_path / "config", state=tmp_path, run=tmp_path, a2a=tmp_path)


def write(paths: Paths, text: str, name: str = "config.toml") -> Path:
    path = paths.config / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_without_files_the_defaults(paths: Paths) -> None:
    config = load_config(paths)
    assert config == Config()
    assert (config.api.host, config.api.port, config.api.agent_ports) == ("127.0.0.1", 8090, True)


def test_everything(paths: Paths) -> None:
    write(
        paths,
        """
        [api]
        listen = "[::1]:0"
        agent_ports = false
        allowed_hosts = ["box.local"]
        [agents.claude]
        cwd = "~/work"
        args = ["--model", "x"]
        env = { A = "1" }
        autostart = true
        port = 8105
        restart = { policy = "always", initial = 1, limit = 3 }
        """,
    )
    write(paths, 'profile = "codex"\n', "agents.d/second.toml")
    config = load_config(paths)
    assert (config.api.host, config.api.port) == ("::1", 0)
    assert config.agents["claude"].restart == RestartPolicy(policy="always", initial=1, limit=3)
    assert config.agents["second"].profile == "codex"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[api]\nagent_port = true\n", r"config.toml:2: unknown key 'api.agent_port'; did you mean 'agent_ports'\?"),
        ("\n[agents.x]\nautostrt = true\n", r":3: unknown key 'agents.x.autostrt'; did you mean 'autostart'\?"),
        ("[agents.x]\nrestart = { polcy = 1 }\n", r":2: .*polcy'; did you mean 'policy'\?"),
        ("[environment]\nkeep = ['GIT DIR']\n", r":2: .*environment.keep.*shell pattern of names such as 'GIT_\*'"),
        ("[environment]\ndrop = ['A=1']\n", r":2: .*environment.drop.*must be a variable's name"),
        ("[environment]\nupdate = ['']\n", r":2: .*environment.update"),
        ("[agnts.x]\n", r":1: unknown key 'agnts'; did you mean 'agents'\?"),
        ("[agents.x]\ncolour = {}\n", r":2: unknown key 'agents.x.colour'"),
        ("[teams.x]\nmembers = ['a']\nhistory = 1\n", r":3: unknown key 'teams.x.history'"),
        ('[agents.x]\nlimits = { memory = "lots" }\n', r":2: agents.x.limits.memory"),
        ('[agents.x]\nlimits = { cpu = "2" }\n', r":2: agents.x.limits.cpu"),
        ("[agents.x]\nlimits = { tasks = 0 }\n", r":2: agents.x.limits.tasks"),
        ("[api]\nlisten = 8090\n", r":2: api.listen"),
        ('[api]\nlisten = "0.0.0.0:80"\n', r"only loopback"),
        ('[api]\nlisten = "example.org:80"\n', r"no IP address"),
        ('[api]\nlisten = "127.0.0.1:70000"\n', r"address and a port"),
        ("[agents.x]\nport = 0\n", r":2: agents.x.port"),
        ("[agents.x]\nrestart = { initial = 10, maximum = 1 }\n", r"maximum must not be below initial"),
        ('[agents."a b"]\n', r"cannot name an agent"),
        ("[agents.a]\nport = 9\n[agents.b]\nport = 9\n", r"both want port 9"),
        ("[api\n", r"config.toml:1: "),
        ("[api]\nlisten = " + "1" * 5000 + "\n", r"config.toml: .*too many digits"),
        ("[api]\nlisten = " + "[" * 5000 + "\n", r"config.toml: .*too many brackets"),
    ],
)
def test_what_is_wrong_is_named(paths: Paths, text: str, message: str) -> None:
    write(paths, text)
    with pytest.raises(ConfigError) as caught:
        load_config(paths)
    assert re.search(message, caught.value.message), caught.value.message


def test_an_agent_in_two_places(paths: Paths) -> None:
    write(paths, "[agents.x]\n")
    write(paths, "", "agents.d/x.toml")
    with pytest.raises(ConfigError, match=r"agents.d.x.toml: .* is defined in .*config.toml already"):
        load_config(paths)


def test_bytes_that_are_no_text(paths: Paths) -> None:
    write(paths, "")
    paths.config_file.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match=r"config\.toml"):
        load_config(paths)


@pytest.mark.parametrize("name", ["config.toml", "agents.d/x.toml", "agents.d", "."])
def test_a_link_to_nothing_is_no_empty_configuration(paths: Paths, name: str) -> None:
    link = paths.config / name
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to("/nowhere/dotfiles")
    with pytest.raises(ConfigError, match=r"is a symbolic link to /nowhere/dotfiles, which does not exist"):
        load_config(paths)


@pytest.mark.parametrize("name", [".#x.toml", "._x.toml", ".x.toml"])
def test_files_of_editors_are_passed_over(paths: Paths, name: str) -> None:
    write(paths, "", "agents.d/x.toml")
    write(paths, "\0", "agents.d/._y.toml")
    (paths.agents_d / name).symlink_to("me@host.123:456")
    assert list(load_config(paths).agents) == ["x"]


def test_a_folder_that_cannot_be_read_is_not_an_empty_one(paths: Paths) -> None:
    link = paths.agents_d
    link.parent.mkdir(parents=True)
    link.symlink_to(link)
    with pytest.raises(ConfigError, match=r"agents\.d: cannot be read: Too many"):
        load_config(paths)


def test_a_file_that_is_removed_meanwhile_is_left_out(paths: Paths, monkeypatch: pytest.MonkeyPatch) -> None:
    write(paths, "", "agents.d/gone.toml")
    write(paths, "", "agents.d/x.toml")
    read = Path.read_text

    def read_text(path: Path, *args: Any, **kwargs: Any) -> str:
        if path.name == "gone.toml":
            path.unlink()
        return read(path, *args, **kwargs)

    monkeypatch.setattr(Path, "read_text", read_text)
    assert list(load_config(paths).agents) == ["x"]


def test_only_what_was_saved_is_removed(paths: Paths) -> None:
    path = save_agent(paths, "mine", AgentConfig(profile="claude"))
    unsave_agent(paths, "mine")
    assert not path.exists()
    unsave_agent(paths, "mine")
    write(paths, 'profile = "claude"\n', "agents.d/mine.toml")
    unsave_agent(paths, "mine")
    assert path.exists(), "it is a person's own"
    save_agent(paths, "mine", AgentConfig(profile="claude"))
    copy = path.with_name("copied.toml")
    copy.write_bytes(path.read_bytes())
    path.write_bytes(path.read_bytes() + b"# mine\n")
    for name in ("mine", "copied"):
        unsave_agent(paths, name)
    assert (path.exists(), copy.exists()) == (True, True), "one was changed, one copied"


def test_what_cannot_be_saved_is_named(paths: Paths) -> None:
    write(paths, "", "agents.d")
    with pytest.raises(StoreError, match=r"agents\.d/mine\.toml cannot be written: File exists"):
        save_agent(paths, "mine", AgentConfig())


def test_save(paths: Paths) -> None:
    agent = AgentConfig(profile="claude", args=['a "quoted" one'], env={"K": "ü"}, restart=RestartPolicy(limit=2))
    path = save_agent(paths, "mine", agent)
    assert path == paths.agents_d / "mine.toml"
    assert path.stat().st_mode & 0o777 == 0o600
    assert tomllib.loads(path.read_text()) == {
        "profile": "claude",
        "args": ['a "quoted" one'],
        "env": {"K": "ü"},
        "restart": {"limit": 2},
    }
    assert load_config(paths).agents["mine"] == agent
    save_agent(paths, "mine", AgentConfig())
    assert [p.name for p in paths.agents_d.iterdir()] == ["mine.toml"]
    with pytest.raises(InvalidRequest):
        save_agent(paths, "../evil", agent)


@given(
    st.builds(
        AgentConfig,
        profile=st.none() | st.text(max_size=20),
        args=st.lists(st.text(max_size=20), max_size=4),
        env=st.dictionaries(st.text(max_size=10), st.text(max_size=20), max_size=4),
        autostart=st.booleans(),
        port=st.none() | st.integers(1, 65535),
    )
)
def test_what_is_saved_is_read_back(tmp_path_factory: pytest.TempPathFactory, agent: AgentConfig) -> None:
    root = tmp_path_factory.mktemp("c")
    paths = Paths(config=root, state=root, run=root, a2a=root)
    save_agent(paths, "x", agent)
    assert load_config(paths).agents["x"] == agent


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("members = []", "members"),
        ('members = ["a", "a"]', "twice"),
        ('members = ["../a"]', "cannot name an agent"),
        ('members = ["other"]', "is a team itself"),
        ('members = ["a"]\nleader = "a"', "leader"),
    ],
)
def test_a_team_that_is_wrong(paths: Paths, text: str, told: str) -> None:
    paths.config.mkdir(parents=True, exist_ok=True)
    paths.config_file.write_text(f'[teams.review]\n{text}\n[teams.other]\nmembers = ["b"]\n')
    with pytest.raises(ConfigError) as caught:
        load_config(paths)
    assert told in caught.value.message


@pytest.mark.parametrize("name", ["synapse-system", "Person", "unknown", "synapse-claude-8100"])
def test_no_team_is_called_as_a_sender_that_it_is_not(paths: Paths, name: str) -> None:
    paths.config.mkdir(parents=True, exist_ok=True)
    paths.config_file.write_text(f'[teams.{name}]\nmembers = ["b"]\n')
    with pytest.raises(ConfigError, match="seem to come from it"):
        load_config(paths)


def test_a_team_may_not_have_an_agents_name(paths: Paths) -> None:
    paths.config.mkdir(parents=True, exist_ok=True)
    paths.config_file.write_text('[agents.claude]\n[teams.claude]\nmembers = ["b"]\n')
    with pytest.raises(ConfigError, match="an agent 'claude' already"):
        load_config(paths)
