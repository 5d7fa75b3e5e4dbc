"""A real daemon whose requests go through a proxy, or do not."""

import os
from pathlib import Path

import pytest

from tests.support.daemon import NO_PORTS, Daemon, eventually
from tests.support.ports import free_port
from tests.support.proxy import PASSWORD, Proxy

pytestmark = pytest.mark.night

HOOK = '[notify.sinks.hook]\ntype = "webhook"\nurl = "http://hooks.example:{port}/"\nsecret_env = "HOOK_SECRET"\n'
AGENTS = ("HTTPS_PROXY", "NO_PROXY", "no_proxy")


def test_what_goes_out_goes_through_the_one_that_is_named(tmp_path: Path) -> None:
    port = free_port()
    with Proxy(locked=True) as proxy:
        config = f'{NO_PORTS}[outgoing]\nproxy = "{proxy.url_with_password}"\n{HOOK.format(port=port)}'
        environ = {
            **os.environ,
            "HOOK_SECRET": "whsec_c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0",
            "HTTP_PROXY": "http://127.0.0.1:1",
        }
        daemon = Daemon(tmp_path, environ, config).start()
        try:
            assert "it answered 502" in daemon.ctl("notify", "test").out
            assert daemon.ctl("external", "add", f"http://far.example:{port}", "--as", "far").code == 6
            checks = {check["check"]: check for check in daemon.ctl("doctor", "--json").json["checks"]}
            assert (checks["proxy"]["status"], f"127.0.0.1:{proxy.port} answers" in checks["proxy"]["detail"]) == (
                "ok",
                True,
            )
            told = [daemon.log(), str(daemon.get("/control/status").json), str(checks)]
        finally:
            assert daemon.end() == 0
        assert proxy.asked[:2] == [
            f"POST http://hooks.example:{port}/",
            f"GET http://far.example:{port}/.well-known/agent-card.json",
        ]
    assert not any(PASSWORD in text for text in [*told, daemon.log()])


def test_the_environment_s_is_named_and_an_agent_is_kept_from_it(tmp_path: Path) -> None:
    environ = {**os.environ, "HTTPS_PROXY": "http://ann:secret@127.0.0.1:1", "NO_PROXY": ".corp"}
    daemon = Daemon(tmp_path, environ).start()
    try:
        checks = {
            check["check"]: check for check in daemon.ctl("doctor", "--json", env={"HTTPS_PROXY": ""}).json["checks"]
        }
        assert checks["proxy"]["status"] == "note"
        assert checks["proxy"]["detail"].startswith("HTTPS_PROXY names a proxy, which is not used: ")
        assert daemon.ctl("start", "dummy").code == 0
        pid = daemon.ready()["pid"]
        told = dict(
            pair.split("=", 1)
            for pair in eventually(Path(f"/proc/{pid}/environ").read_text, "it runs").split("\0")
            if pair
        )
        assert {name: told[name] for name in AGENTS} == {
            "HTTPS_PROXY": environ["HTTPS_PROXY"],
            "NO_PROXY": ".corp,localhost,127.0.0.1,::1",
            "no_proxy": ".corp,localhost,127.0.0.1,::1",
        }
    finally:
        assert daemon.end() == 0
