"""A daemon that is forked from a warm process is as fresh, and ends as well, as one that was started by hand."""

import os
import signal
import subprocess
from pathlib import Path

import psutil
import pytest

from tests.support import leftovers, warm
from tests.support.daemon import NO_PORTS, PATIENCE_S, Daemon, eventually


@pytest.mark.night
def test_two_daemons_have_nothing_in_common(tmp_path: Path) -> None:
    environ = {**os.environ, "COLOUR": "green"}
    one, two = (Daemon(tmp_path / name, environ=environ).start() for name in ("one", "two"))
    try:
        assert isinstance(one.process, warm.Forked)
        assert isinstance(two.process, warm.Forked)
        assert len({one.pid, two.pid, psutil.Process(one.pid).ppid(), os.getpid()}) == 4
        agent = one.start_agent()
        assert psutil.Process(agent["pid"]).environ()["COLOUR"] == "green"
        assert two.get("/agents").json == []
        assert (one.end(), two.get("/healthz").status) == (0, 200)
    finally:
        one.end()
        two.end()


def test_it_ends_as_one_that_was_started_by_hand(tmp_path: Path) -> None:
    daemon = Daemon(tmp_path).start()
    other = daemon.run()
    assert other.wait(PATIENCE_S) == 1, "it is refused"
    assert f"(pid {daemon.pid})" in daemon.log()
    assert daemon.process is not None
    with pytest.raises(subprocess.TimeoutExpired):
        daemon.process.wait(0.0)
    daemon.kill9()
    assert daemon.process.poll() == -signal.SIGKILL
    daemon.start()
    assert daemon.signal(signal.SIGINT) == 0
    daemon.start()
    assert daemon.signal(signal.SIGTERM) == 0
    daemon.config_file.write_text(NO_PORTS + "wrong = 1\n")
    assert daemon.run().wait(PATIENCE_S) == 2


@pytest.mark.parametrize(
    "environ",
    [pytest.param({"PYTHONHASHSEED": "7"}, marks=pytest.mark.night), pytest.param({}, marks=pytest.mark.cold)],
)
def test_started_by_hand_where_the_start_matters(environ: dict[str, str], tmp_path: Path) -> None:
    daemon = Daemon(tmp_path, environ=os.environ | environ).start()
    try:
        assert isinstance(daemon.process, subprocess.Popen)
        assert psutil.Process(daemon.pid).cmdline()[1:] == ["-m", "synapsed", "run"]
    finally:
        daemon.end()


def test_it_ends_with_a_test_that_runs_out_of_time(tmp_path: Path) -> None:
    daemon = Daemon(tmp_path).start()
    warm.kill("another one's")
    assert daemon.process is not None
    assert daemon.process.poll() is None
    warm.kill(os.environ[leftovers.OWNER])
    eventually(lambda: daemon.process is not None and daemon.process.poll() is not None, "it has ended")
    assert daemon.process.poll() == -signal.SIGKILL


def test_one_that_does_not_answer_is_ended(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    daemon = Daemon(tmp_path)

    def never(*_: object, **__: object) -> None:
        raise AssertionError("never: the daemon answers")

    monkeypatch.setattr(daemon, "_eventually", never)
    with pytest.raises(AssertionError, match="never"):
        daemon.start()
    assert daemon.process is not None
    assert daemon.process.poll() == -signal.SIGKILL
