"""The umask, the priority and the limits of a person's shell, from its start of a daemon to a restart by the next."""

import os
import resource
import stat
from pathlib import Path

import psutil
import pytest

from tests.ground.installed import Installed
from tests.ground.person import living_somewhere
from tests.support.daemon import eventually

SHELL = ("bash", "-c", 'umask 077; ulimit -n 300; ulimit -f 4000; exec nice -n 5 "$@"', "sh")
"""A shell of which the daemon is started, too."""


def attributes(pid: object) -> tuple[int, int, tuple[int, int]]:
    """Umask, nice value, and limits of open files."""
    assert isinstance(pid, int)
    status = Path(f"/proc/{pid}/status").read_text()
    umask = next(line.split()[1] for line in status.splitlines() if line.startswith("Umask"))
    process = psutil.Process(pid)
    return int(umask, 8), process.nice(), process.rlimit(psutil.RLIMIT_NOFILE)


@pytest.mark.night
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads /proc")
def test_they_reach_programs_and_nothing_of_ours(installed: Installed) -> None:
    with living_somewhere(installed) as person:
        started = person.ctl("start", "dummy", "--name", "d", around=SHELL)
        assert started.code == 0, started
        assert "limit FSIZE 4096000, limit NOFILE 300 holds for the daemon too" in started.err
        assert "withheld" not in person.ctl("status", "d").out
        first = person.ready("d")["pid"]
        assert attributes(first) == (0o077, 5, (300, 300))
        daemon = psutil.Process(person.pid)
        assert daemon.nice() == (0 if os.geteuid() == 0 else 5)

        # The next daemon has an ordinary shell.
        assert person.ctl("shutdown", "--keep-agents").code == 0
        eventually(lambda: not daemon.is_running(), "it has ended")
        assert (
            person.ctl("start", "dummy", "--name", "plain", around=("sh", "-c", 'umask 0; exec "$@"', "sh")).code == 0
        )
        told = person.ctl("status", "d").out
        assert "umask 077, nice 5, limit FSIZE 4096000" in " ".join(told.split()), told
        assert person.ready("d")["pid"] == first
        assert person.ctl("restart", "d").code == 0
        again = person.ready("d")["pid"]
        assert again != first
        assert attributes(again) == (0o077, 5, (300, 300))
        plain = person.ready("plain")["pid"]
        assert attributes(plain) == (0, 0, resource.getrlimit(resource.RLIMIT_NOFILE))
        assert (psutil.Process(person.pid).nice(), psutil.Process(person.pid).rlimit(psutil.RLIMIT_FSIZE)[0]) == (0, -1)
        sent = person.ctl("send", "plain", "--wait", "hello")
        assert sent.code == 0, sent
        ours = [path for path in person.state.rglob("*") if path.is_file()]
        assert len(ours) > 10
        open_to_others = [path for path in ours if stat.S_IMODE(path.stat().st_mode) & 0o077]
        assert open_to_others == [], "whatever the umasks were"
