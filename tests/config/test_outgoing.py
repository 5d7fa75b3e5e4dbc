"""`[outgoing]`: which way requests take, and what is said of a wrong one."""

from pathlib import Path

import pytest

from synapsed.config.config_files import load_config
from synapsed.config.paths import Paths
from synapsed.errors import ConfigError
from synapsed.outgoing import OutgoingConfig, proxies_in

PROXY = "http://ann:secret@proxy.example:3128"
SET = OutgoingConfig(proxy=PROXY, direct=["Corp.Example", "10.0.0.0/8", "fd00::/8"])


@pytest.mark.parametrize("host", ["far.example", "notcorp.example", "93.184.215.14", "11.0.0.1", "2001:db8::1", "10"])
def test_by_the_proxy(host: str) -> None:
    assert SET.proxy_for(host) == PROXY
    assert OutgoingConfig().proxy_for(host) is None


@pytest.mark.parametrize("host", ["corp.example", "CI.corp.example.", "10.1.2.3", "fd00::1", "::ffff:10.1.2.3"])
def test_directly_where_that_is_named(host: str) -> None:
    assert SET.proxy_for(host) is None
    assert OutgoingConfig(proxy=PROXY).proxy_for(host) == PROXY


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "LocalHost.",
        "a.localhost",
        "127.0.0.1",
        "127.9.9.9",
        "127.0.0.1.",
        "127.1",
        "0x7f000001",
        "::1",
        "[::1]",
        "::ffff:127.0.0.1",
        "2130706433",
        "0177.0.0.1",
        "0.0.0.0",
        "::",
    ],
)
def test_never_to_this_machine(host: str) -> None:
    assert OutgoingConfig(proxy=PROXY).proxy_for(host) is None


@pytest.mark.parametrize(
    "value",
    [
        "proxy.secret:3128",
        "http://proxy.secret",
        "https://secret@proxy:3128",
        "socks5://secret:1",
        "http://:3128",
        "secret",
        "http://secret:x@proxy:3128/path",
        "http://secret:3128?x",
        "http://secret:70000",
        "http://se cret:1",
        "http://[secret",
    ],
)
def test_what_is_no_proxy_is_told_without_it(tmp_path: Path, value: str) -> None:
    paths = Paths.from_environ({"SYNAPSED_HOME": str(tmp_path), "HOME": str(tmp_path)})
    paths.config_file.parent.mkdir(parents=True)
    paths.config_file.write_text(f'[outgoing]\nproxy = "{value}"\n')
    with pytest.raises(
        ConfigError, match=r":2: outgoing\.proxy: must be an address like 'http://proxy\.example:3128'"
    ) as caught:
        load_config(paths)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("place", ["", "*.corp", "10.0.0.1/8", "300.1", "a b", "http://x", ".corp"])
def test_what_is_no_place(place: str) -> None:
    with pytest.raises(ValueError, match="is neither a name like"):
        OutgoingConfig(direct=[place])


def test_its_password_is_shown_nowhere() -> None:
    assert SET.place == ("proxy.example", 3128)
    assert OutgoingConfig().place is None
    assert "secret" not in repr(SET)
    assert "secret" not in str(SET)


def test_which_variables_name_a_proxy() -> None:
    environ = {"HTTP_PROXY": "http://x:1", "https_proxy": "x", "All_Proxy": "", "NO_PROXY": "a", "PATH": "/bin"}
    assert proxies_in(environ) == ["HTTP_PROXY", "https_proxy"]
