"""A machine on which `localhost` is ::1 first, and another user who listens there."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.ground.installed import Installed
from tests.ground.person import Person, living_somewhere
from tests.support.daemon import PATIENCE_S, Ctl, eventually
from tests.support.namespaces import inside, needs_namespaces

pytestmark = [pytest.mark.night, needs_namespaces]

MAIN, AGENT = 8090, 8190
NOBODY = 65534

SQUATTER = f"""
import contextlib, os, selectors, socket, sys
os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY})
watch = selectors.DefaultSelector()
for port in sys.argv[1:]:
    with contextlib.suppress(OSError):
        watch.register(socket.create_server(("::1", int(port)), family=socket.AF_INET6), selectors.EVENT_READ)
print("listens at", len(watch.get_map()), flush=True)
while watch.get_map():
    for key, _ in watch.select():
        client, _ = key.fileobj.accept()
        print("heard", client.recv(65536), flush=True)
        client.close()
"""

CLIENT = f"""
import http.client, sys
from urllib.parse import urlsplit
url = urlsplit(sys.argv[1])
for host in ("::1", "127.0.0.1") if url.hostname == "localhost" else (url.hostname,):
    client = http.client.HTTPConnection(host, url.port, timeout={PATIENCE_S})
    try:
        client.request("GET", url.path or "/", headers={{"Authorization": "Bearer " + sys.argv[2]}})
    except ConnectionRefusedError:
        continue
    print(client.getresponse().read().decode())
    break
"""


@pytest.fixture
def machine() -> Iterator[int]:
    """A process with a network of its own, loopback alone."""
    with subprocess.Popen(["unshare", "--net", "sleep", "600"]) as sleeper:
        own = Path("/proc/self/ns/net").readlink()
        try:
            eventually(lambda: Path(f"/proc/{sleeper.pid}/ns/net").readlink() != own, "it is in its namespace")
            inside(sleeper.pid, "ip", "link", "set", "lo", "up")
            if not Path(f"/proc/{sleeper.pid}/net/if_inet6").exists():
                pytest.skip("no IPv6 here")
            yield sleeper.pid
        finally:
            sleeper.kill()


class Here:
    """The person, on that machine."""

    def __init__(self, person: Person, machine: int) -> None:
        self.person = person
        self.around = ("nsenter", f"--net=/proc/{machine}/ns/net")

    def ctl(self, *arguments: str) -> Ctl:
        return self.person.ctl(*arguments, around=self.around)

    def squat(self) -> subprocess.Popen[str]:
        command = [*self.around, sys.executable, "-c", SQUATTER, str(MAIN), str(AGENT)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    def ask(self, url: str) -> str:
        """By a client that tries ::1 first, and brings the control token."""
        token = (self.person.state / "token").read_text().strip()
        command = [*self.around, sys.executable, "-c", CLIENT, url, token]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=2 * PATIENCE_S).stdout


@pytest.fixture
def here(machine: int, installed: Installed) -> Iterator[Here]:
    with living_somewhere(installed, f'[api]\nlisten = "127.0.0.1:{MAIN}"\n') as person:
        yield Here(person, machine)


def test_who_was_there_first_hears_nothing_and_is_named(here: Here) -> None:
    with here.squat() as squatter:
        try:
            assert squatter.stdout is not None
            assert squatter.stdout.readline() == "listens at 2\n"
            assert here.ctl("start", "dummy", "--name", "d", "--port", str(AGENT)).code == 0
            row = here.person.ready("d")
            (page, *_) = here.ctl("web", "--json").json["addresses"]
            assert row["endpoint"] == f"http://127.0.0.1:{AGENT}"
            assert page.startswith(f"http://127.0.0.1:{MAIN}/")
            assert '"status"' in here.ask(f"{row['endpoint']}/status")
            assert '"d"' in here.ask(f"{page.partition('#')[0]}agents")
            told = here.ctl("doctor").out
            for port in (MAIN, AGENT):
                assert f"at [::1]:{port} listens a program of nobody (uid {NOBODY}), pid {squatter.pid} (" in told, told
            assert here.ctl("start", "dummy", "--name", "e").code == 0
            assert str(here.person.ready("e")["endpoint"]).startswith("http://localhost:"), "another port is whole"
            here.ctl("shutdown")
        finally:
            squatter.kill()
        assert squatter.stdout.read() == "", "nobody has talked to it"


def test_who_comes_later_cannot_have_it(here: Here) -> None:
    assert here.ctl("start", "dummy", "--name", "d", "--port", str(AGENT)).code == 0
    row = here.person.ready("d")
    with here.squat() as squatter:
        try:
            assert squatter.stdout is not None
            assert squatter.stdout.readline() == "listens at 0\n"
        finally:
            squatter.kill()
    assert row["endpoint"] == f"http://localhost:{AGENT}"
    assert '"status"' in here.ask(f"{row['endpoint']}/status")
    assert f"127.0.0.1:{MAIN} and [::1]:{MAIN}, the daemon's" in here.ctl("doctor").out
