"""A daemon whose fleet cannot be entered: it is there for its own agents, and says what is wrong."""

from pathlib import Path

import pytest

from tests.support.daemon import NO_PORTS, Daemon
from tests.support.gated import first_of

pytestmark = pytest.mark.slow

FLEET = '[fleet]\nname = "box"\nurls = ["tls://127.0.0.1:1"]\n'


@pytest.mark.night
@pytest.mark.parametrize("credentials", first_of([None, "nothing"]))
def test_credentials_that_cannot_be_read_do_not_keep_the_daemon_down(tmp_path: Path, credentials: str | None) -> None:
    daemon = Daemon(tmp_path, config=NO_PORTS + FLEET)
    if credentials is not None:
        folder = tmp_path / "state" / "fleet"
        folder.mkdir(parents=True, mode=0o700)
        (folder / "host.creds").write_text(credentials)
    daemon.start()
    daemon.start_agent()
    sent = daemon.ctl("send", "dummy", "--wait", "hello")
    assert sent.code == 0, sent.err
    told = daemon.get("/fleet")
    assert told.status == 404
    assert told.json["error"]["code"] == "NOT_IN_FLEET"
    assert str(tmp_path / "state" / "fleet") in told.json["error"]["message"]
    refused = daemon.ctl("send", "any:dummy", "hello")
    assert refused.code == 4
    assert "takes no part in its fleet" in refused.err
    assert "takes no part in its fleet" in daemon.ctl("doctor").out
    assert "takes no part in its fleet" in (tmp_path / "daemon.log").read_text()
    assert daemon.end() == 0
