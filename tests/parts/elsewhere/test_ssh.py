"""How ssh is called, and what is made of what it says."""

import pytest

from synapsed.errors import InvalidRequest
from synapsed.model.external import alias_of, external_id, host_of
from synapsed.parts.elsewhere.hosts.host import Host
from synapsed.parts.elsewhere.hosts.ssh import LAST_PAUSE_S, Backoff, check_target, forward, look_up, said, socket_in

HOST = Host(name="box", target="ssh://me@box.lan:22", synapsectl="/opt/my tools/synapsectl", added_at="")


def test_the_commands():
    command = forward(["ssh", "-F", "x"], HOST, local="/run/a", remote="/run/b")
    assert command[:3] == ["ssh", "-F", "x"]
    assert command[-5:] == ["-L", "/run/a:/run/b", "--", "ssh://me@box.lan:22", "cat"]
    for option in ("BatchMode=yes", "ExitOnForwardFailure=yes", "StreamLocalBindUnlink=yes", "ControlPath=none"):
        assert command[command.index(option) - 1] == "-o"
    asked = look_up(["ssh"], HOST)
    assert asked[-3:] == ["--", "ssh://me@box.lan:22", "'/opt/my tools/synapsectl' version --json"]
    assert "ExitOnForwardFailure=yes" not in asked


@pytest.mark.parametrize("target", ["box", "me@box.lan", "ssh://box", "ssh://a.b@10.0.0.1:2222", "ssh://[fe80::1]:22/"])
def test_destinations(target: str):
    assert check_target(target) == target


@pytest.mark.parametrize("target", ["", "-oProxyCommand=x", "a b", "ssh://a;b", "http://a", "a\n", "ssh://@", "$(x)"])
def test_no_destinations(target: str):
    with pytest.raises(InvalidRequest):
        check_target(target)


def test_the_socket_is_found_in_what_a_login_prints():
    assert socket_in('Welcome!\n{"note": 1}\n{"synapsectl": "1", "socket": "/run/x.sock"}\nbye {\n') == "/run/x.sock"
    assert socket_in('{"socket": "/run/x.sock"}\n' + "[" * 16_000) == "/run/x.sock"
    for wrong in ("", "[" * 16_000, '{"socket":' * 16_000, "{}", '{"socket": "a b"}', '{"socket": 3}', '["socket"]'):
        with pytest.raises(InvalidRequest):
            socket_in(wrong)


def test_why_it_ended():
    assert said("debug\nHost key verification failed.\r\n", 255) == "debug / Host key verification failed."
    assert said("\x1b[31mred", 1) == "[31mred"
    assert said("", 255) == "ssh ended with code 255"
    assert said("", 0) == "the connection was closed"


def test_pauses_grow_up_to_a_limit_and_begin_anew():
    backoff = Backoff(lambda: 0.0)
    assert [backoff.pause() for _ in range(8)] == [1, 2, 4, 8, 16, 32, 60, LAST_PAUSE_S]
    backoff.reset()
    assert backoff.pause() == 1
    assert Backoff(lambda: 1.0).pause() == pytest.approx(0.8)


def test_addresses():
    assert host_of("claude@box") == ("claude", "box")
    for address in ("claude", "@claude", "external:far", "a@", "a@b@c", "a@b c", ""):
        assert host_of(address) is None, address
    assert (external_id("claude@box"), alias_of("claude@box")) == ("claude@box", "claude@box")
    assert (external_id("far"), alias_of("external:far"), alias_of("synapse-claude-8100")) == (
        "external:far",
        "far",
        None,
    )
