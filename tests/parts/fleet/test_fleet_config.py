"""`[fleet]` and `fleet.toml`: two files, one membership."""

from pathlib import Path
from typing import Any

import pytest

from synapsed.config import config_files
from synapsed.config.paths import Paths
from synapsed.errors import ConfigError
from synapsed.parts.loading import config_model
from synapsed.supervisor.reload import differences
from synapsed_fleet.fleet_config import FleetConfig, FleetWork, bytes_of, is_url


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    found = Paths.from_environ({"SYNAPSED_HOME": str(tmp_path), "HOME": str(tmp_path)})
    found.config.mkdir(parents=True)
    return found


def loaded(paths: Paths) -> Any:
    return config_files.load_config(paths, config_model())


def test_without_either_file_there_is_no_fleet(paths: Paths) -> None:
    paths.config_file.write_text("[api]\n")
    assert loaded(paths).fleet is None


def test_what_join_wrote_counts(paths: Paths) -> None:
    (paths.config / "fleet.toml").write_text('name = "laptop"\nurls = ["tls://box:4222"]\n')
    fleet = loaded(paths).fleet
    assert fleet is not None
    assert (fleet.name, fleet.urls, fleet.accept, fleet.broker) == ("laptop", ["tls://box:4222"], ["*"], None)


def test_the_persons_own_file_wins_key_by_key(paths: Paths) -> None:
    (paths.config / "fleet.toml").write_text(
        'name = "box"\nurls = ["tls://box:4222"]\n[work]\nclasses = ["codex"]\n[broker]\nlisten = "10.0.0.1:4222"\n'
    )
    paths.config_file.write_text('[fleet]\npersons = ["laptop"]\n[fleet.broker]\nmax_store = "1GiB"\n')
    fleet = loaded(paths).fleet
    assert fleet is not None
    assert (fleet.name, fleet.persons) == ("box", ["laptop"])
    assert fleet.work == FleetWork(classes=["codex"])
    assert fleet.broker is not None
    assert (fleet.broker.listen, fleet.broker.max_store) == ("10.0.0.1:4222", "1GiB")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('[fleet]\nnam = "box"\n', r"config\.toml:2: unknown key 'fleet\.nam'; did you mean 'name'\?"),
        (
            '[fleet.work]\nclases = ["x"]\n',
            r"config\.toml:2: unknown key 'fleet\.work\.clases'; did you mean 'classes'",
        ),
        ('[fleet]\nname = "Box"\n', r"config\.toml:2: fleet\.name: must be at most 31 letters"),
        ('[fleet]\nname = "a.b"\n', r"config\.toml:2: fleet\.name"),
        ('[fleet]\nname = "box"\nurls = ["box"]\n', r"config\.toml:3: fleet\.urls.*must be like tls://"),
        ('[fleet]\nname = "box"\nurls = ["tls://me:pw@box:4222"]\n', r"fleet\.urls"),
        ('[fleet]\naccept = ["team:"]\n', r"config\.toml:2: fleet\.accept"),
        ('[fleet.broker]\nmax_store = "20GB"\n', r"config\.toml:2: fleet\.broker\.max_store: must be a size"),
        ('[fleet.broker]\nlisten = "4222"\n', r"config\.toml:2: fleet\.broker\.listen"),
        ('[fleet]\npersons = ["laptop"]\n', r"fleet\.name is missing: 'synapsectl fleet create' or 'fleet join'"),
    ],
)
def test_what_is_wrong_is_told_by_file_and_line(paths: Paths, text: str, told: str) -> None:
    paths.config_file.write_text(text)
    with pytest.raises(ConfigError, match=told):
        loaded(paths)


def test_what_is_wrong_in_the_written_file_names_that_file(paths: Paths) -> None:
    (paths.config / "fleet.toml").write_text('name = "box"\nurls = ["tls://box:4222"]\nworks = 1\n')
    with pytest.raises(ConfigError, match=r"fleet\.toml:3: unknown key 'works'; did you mean 'work'\?"):
        loaded(paths)


@pytest.mark.parametrize(
    "url", ["tls://[::1]:4222", "wss://box.example:443", "nats://10.0.0.1:4222", "tls://box:4222/"]
)
def test_urls_that_are_taken(url: str) -> None:
    assert is_url(url)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "tls://box",
        "http://box:4222",
        "tls://box:0",
        "tls://box:99999",
        "tls://box:4222/x",
        "tls://b\x00x:1",
        "tls://[:1",
    ],
)
def test_urls_that_are_not(url: str) -> None:
    assert not is_url(url)


def test_sizes() -> None:
    assert [bytes_of(size) for size in ("1MiB", "20GiB")] == [1 << 20, 20 << 30]


def test_a_reload_tells_that_it_counts_at_the_next_start(paths: Paths) -> None:
    old = loaded(paths)
    new = old.model_copy(update={"fleet": FleetConfig(name="box", urls=["tls://box:4222"])})
    (told,) = differences([], old, new, lambda _: None, lambda _: None)
    assert (told.action, told.reason) == ("daemon", "[fleet] counts after a restart of the daemon")
    changed = new.model_copy(update={"fleet": FleetConfig(name="box", urls=["tls://b:4222"])})
    (told,) = differences([], new, changed, lambda _: None, lambda _: None)
    assert told.reason == "[fleet] urls counts after a restart of the daemon"
    assert differences([], new, new, lambda _: None, lambda _: None) == []
