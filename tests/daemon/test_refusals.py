"""Everything that is refused, asked of the API and the manager as a person or a program would ask a daemon.

Each refusal has the right code and a message that names the thing, its place and the next step; and after all of them
the daemon is as it was.
"""

import http.client
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from synapsed import cli
from tests.fakes.served import Served
from tests.support.daemon import PATIENCE_S, Answer, Ctl, Daemon
from tests.support.served_world import ServedWorld, served_world

ELEVEN_MB = 11 * 1024 * 1024
SEND = "/agents/dummy/tasks/send"
JSON = {"Content-Type": "application/json"}
MESSAGE = {"message": {"role": "user", "parts": [{"type": "text", "text": "hello"}]}}

type Ask = Callable[..., Answer]


@pytest.fixture(scope="module")
def below(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedWorld]:
    """One manager with one `dummy` for all refusals; it must bear them all."""
    home = tmp_path_factory.mktemp("refusals")
    profiles = home / "config" / "profiles"
    profiles.mkdir(parents=True)
    (profiles / "narrow.toml").write_text('command = "cat"\nports = [8187, 8188]\n')
    (profiles / "gone.toml").write_text('command = "no-such-program-anywhere"\n')
    with served_world(home) as world:
        world.start()
        yield world


@pytest.fixture(scope="module")
def daemon(below: ServedWorld) -> Served:
    return below.daemon


@pytest.fixture(autouse=True)
def unharmed(below: ServedWorld, daemon: Daemon) -> Iterator[None]:
    """After every refusal the same daemon has the same agent, which is ready, and nothing was typed."""
    before = daemon.ready()
    yield
    after = daemon.ready()
    assert daemon.get("/control/status").json["pid"] == daemon.pid
    assert after == before
    assert below.typed == 0
    assert "Traceback" not in daemon.log()


def refused(done: Ctl, code: int, *words: str) -> str:
    """It ended with `code` and said one thing, on stderr, that has all the words; nothing on stdout."""
    assert (done.code, done.out) == (code, ""), done
    for word in words:
        assert word in done.err, done.err
    assert "Traceback" not in done.err
    return done.err


# --- a person, with synapsectl ---


@pytest.mark.parametrize("verb", [["send", "dumy", "hi"], ["status", "dumy"], ["stop", "dumy"], ["logs", "dumy"]])
def test_an_unknown_agent(daemon: Daemon, verb: list[str]) -> None:
    refused(daemon.ctl(*verb), 4, "no agent 'dumy'", "did you mean 'dummy'?")


def test_an_unknown_agent_like_none(daemon: Daemon) -> None:
    refused(daemon.ctl("send", "nobody", "hi"), 4, "no agent 'nobody'", "the agents are dummy")
    told = daemon.ctl("status", "nobody", "--json")
    assert (told.code, told.json["error"]["code"]) == (4, "UNKNOWN_AGENT"), "in JSON too"


def test_an_unknown_task(daemon: Daemon) -> None:
    refused(daemon.ctl("task", "deadbeef"), 4, "no task 'deadbeef'", "synapsectl tasks")


def test_an_unknown_profile(daemon: Daemon) -> None:
    refused(daemon.ctl("start", "clade"), 2, "no profile 'clade'", "did you mean 'claude'?")
    refused(daemon.ctl("start", "zzz"), 2, "no profile 'zzz'", "claude", "narrow")


def test_a_profile_that_came_later(daemon: Daemon) -> None:
    late = daemon.home / "config" / "profiles" / "late.toml"
    late.write_text('command = "no-such-program-anywhere"\n')
    try:
        refused(daemon.ctl("start", "late"), 2, "no profile 'late'", "'synapsectl reload'")
        assert daemon.ctl("reload").code == 0
        refused(daemon.ctl("start", "late"), 2, "'no-such-program-anywhere'")
    finally:
        late.unlink()
        assert daemon.ctl("reload").code == 0


def test_a_name_in_use(daemon: Daemon) -> None:
    refused(
        daemon.ctl("start", "dummy", "--name", "dummy"), 6, "an agent 'dummy' already", "another name", "stop dummy"
    )


def test_a_program_that_is_not_there(daemon: Daemon) -> None:
    said = refused(daemon.ctl("start", "gone"), 2, "'no-such-program-anywhere'", "PATH", "install it", "'gone'")
    assert os.environ["PATH"].split(os.pathsep)[-1] in said, "it says where it looked"
    assert [agent["name"] for agent in daemon.get("/agents").json] == ["dummy"]


def test_a_directory_that_is_not_there(daemon: Daemon) -> None:
    refused(daemon.ctl("start", "dummy", "--cwd", "/nowhere"), 2, "--cwd", "/nowhere", "no directory")


def test_a_port_that_is_taken(daemon: Daemon) -> None:
    started = [daemon.ctl("start", "narrow", "--json") for _ in range(3)]
    ports = [done.json["port"] for done in started]
    try:
        assert ports[2] in range(8200, 9000), "the range of the profile has two"
        refused(
            daemon.ctl("start", "dummy", "--port", str(ports[0])), 6, f"cannot have port {ports[0]}", f"has {ports[0]}"
        )
    finally:
        for done in started:
            assert daemon.ctl("stop", done.json["name"], "--remove").code == 0


def test_eleven_megabytes_from_a_person(daemon: Daemon) -> None:
    refused(daemon.ctl("send", "dummy", "-", stdin="x" * ELEVEN_MB), 2, "10 MB")


def test_no_daemon(tmp_path: Path) -> None:
    nobody = Served(tmp_path)
    said = ("no daemon is running", str(nobody.socket), "'synapsed run'")
    for verb in (["list"], ["status"], ["stop", "x"], ["shutdown"]):
        refused(nobody.ctl(*verb), 3, *said, "synapsectl start")
    for verb in (["send", "x", "hi"], ["start", "dummy"]):
        done = nobody.ctl(*verb, "--no-spawn-daemon")
        refused(done, 3, *said, "leave out --no-spawn-daemon")
        assert "synapsectl start" not in done.err, "it is what was just typed"
        done = nobody.ctl(*verb, env={"SYNAPSE_CONTROL_SOCKET": str(nobody.socket)})
        refused(done, 3, *said, "a person does")
    assert not list(tmp_path.glob("state/*")), "looking leaves nothing behind"


@pytest.mark.parametrize("verb", [["list"], ["start", "dummy"], ["doctor"]])
def test_a_home_that_is_a_file(tmp_path: Path, verb: list[str]) -> None:
    nowhere = Daemon(tmp_path / "real")
    done = nowhere.ctl(*verb, env={"SYNAPSED_HOME": str(nowhere.config_file)})
    assert (done.code, "Traceback" in done.err) == (1 if verb == ["doctor"] else 3, False), done
    if verb != ["list"]:
        assert str(nowhere.config_file) in done.out + done.err


# --- who runs a daemon ---


def test_a_port_that_is_in_use(daemon: Daemon, tmp_path: Path) -> None:
    """Who runs a daemon by hand is told; one that a verb starts comes up, with its control socket."""
    second = Daemon(tmp_path, config=f'[api]\nlisten = "127.0.0.1:{daemon.port}"\n')
    taken = f"cannot listen on 127.0.0.1:{daemon.port}: Address already in use"
    assert second.run().wait(PATIENCE_S) == 2
    said = (tmp_path / "daemon.log").read_text()
    assert taken in said
    assert "'listen' under [api]" in said
    try:
        assert second.ctl("start", "dummy").code == 0
        status = second.get("/control/status").json
        assert status["listen"] == []
        assert any(str(daemon.port) in alert for alert in status["alerts"]), status["alerts"]
    finally:
        assert second.ctl("shutdown").code == 0


def test_a_second_daemon(tmp_path: Path) -> None:
    daemon = Daemon(tmp_path).start()
    try:
        assert daemon.run().wait(PATIENCE_S) == 1
        last = daemon.log().splitlines()[-1]
        assert f"(pid {daemon.pid})" in last
        assert str(daemon.home / "state") in last
        assert "'synapsectl shutdown' ends it" in last
    finally:
        daemon.end()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[api]\nagent_portz = false\n", r"config.toml:2: unknown key 'api.agent_portz'; did you mean 'agent_ports'\?"),
        ("[apis]\n", r"config.toml:1: unknown key 'apis'; did you mean 'api'\?"),
        ("[agents.x]\n\nprofil = 'y'\n", r"config.toml:3: unknown key 'agents.x.profil'; did you mean 'profile'\?"),
        (
            "[agents.x.restart]\npolcy = 'never'\n",
            r"toml:2: unknown key 'agents.x.restart.polcy'; did you mean 'policy'",
        ),
        ("[api]\nlisten = '127.0.0.1:1'\n[agents.x]\nlisten = 2\n", r"config.toml:4: unknown key 'agents.x.listen'"),
        (
            "[agents.x.restart]\npolicy = 'maybe'\n",
            r"config.toml:2: agents.x.restart.policy: must be 'never', ",
        ),
        ("[api]\nlisten = '0.0.0.0:80'\n", r"config.toml:2: api.listen: only loopback addresses are served"),
        ("[api]\ntrusted_proxies = ['x']\n", r"config.toml:2: api.trusted_proxies.0: must be an address or a network"),
        (
            "[agents.x]\nlimits = { memory = 'much' }\n",
            r"config.toml:2: agents.x.limits.memory: must be a size like '2G'",
        ),
        ("[api\n", r"config.toml:1: Expected '\]'"),
        (
            "[agents.x]\nprofile = 'dummy'\npark = { idle_timeout = 60 }\n",
            r"config.toml: agents.x.park: profile 'dummy' has no way to continue a conversation.*\[resume\] args",
        ),
        ("[agents.x]\nprofile = 'dumy'\n", r"config.toml: agents.x: no profile 'dumy': did you mean 'dummy'\?"),
    ],
)
def test_a_configuration_that_is_wrong(
    tmp_path: Path, text: str, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = Daemon(tmp_path, config=text)
    for name, value in wrong.env.items():
        monkeypatch.setenv(name, value)
    assert cli.main(["check-config"]) == 2
    told = capsys.readouterr().err
    assert re.search(said, told), told
    assert len(told.splitlines()) == 1


def test_a_configuration_that_is_wrong_starts_nothing(tmp_path: Path) -> None:
    wrong = Daemon(tmp_path, config="[api]\nlistn = 1\n")
    refused(wrong.ctl("start", "dummy"), 3, "config.toml:2: unknown key 'api.listn'", "did you mean 'listen'?")
    assert wrong.run().wait(PATIENCE_S) == 2


# --- a program, over HTTP ---


@pytest.fixture(params=["tcp", "unix"])
def ask(request: pytest.FixtureRequest, daemon: Daemon) -> Ask:
    """`ask("POST", path, body, headers)`, each on a connection of its own."""

    def call(method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None) -> Answer:
        if request.param == "unix":
            return daemon.request(method, path, body, headers)
        return over_tcp(daemon.port, method, path, body, headers)

    return call


def over_tcp(
    port: int, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
) -> Answer:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    try:
        connection.request(method, path, body, {**(JSON if body is not None else {}), **(headers or {})})
        answer = connection.getresponse()
        return Answer(answer.status, {key.lower(): value for key, value in answer.getheaders()}, answer.read())
    finally:
        connection.close()


def told(answer: Answer, status: int, code: str, *words: str) -> None:
    """The one shape of errors: `{"error": {"code", "message", "details"}}`."""
    assert answer.status == status, answer
    assert answer.headers["content-type"].startswith("application/json")
    error = answer.json["error"]
    assert set(error) == {"code", "message", "details"}
    assert error["code"] == code
    for word in words:
        assert word in error["message"], error


def test_http_unknown_agent(ask: Ask) -> None:
    for body in (json.dumps(MESSAGE).encode(), b"{}"):
        told(ask("POST", "/agents/nobody/tasks/send", body), 404, "UNKNOWN_AGENT", "'nobody'", "dummy")
    told(ask("GET", "/agents/nobody/status"), 404, "UNKNOWN_AGENT", "'nobody'")


def test_http_unknown_task(ask: Ask) -> None:
    told(ask("GET", "/agents/dummy/tasks/deadbeef"), 404, "TASK_NOT_FOUND", "'deadbeef'")


def test_http_no_such_path_or_method(ask: Ask) -> None:
    told(ask("GET", "/nothing"), 404, "NOT_FOUND")
    told(ask("DELETE", "/agents/dummy/status"), 405, "METHOD_NOT_ALLOWED")


@pytest.mark.parametrize("body", [b"{oops", b"[]", b'"text"', b'{"message": 1}', b"{}", b"\xff"])
def test_http_invalid_json(ask: Ask, body: bytes) -> None:
    told(ask("POST", SEND, body), 400, "INVALID_REQUEST")


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"])
def test_http_wrong_content_type(ask: Ask, kind: str) -> None:
    body = json.dumps(MESSAGE).encode()
    told(ask("POST", SEND, body, {"Content-Type": kind}), 415, "UNSUPPORTED_MEDIA", "application/json")


def test_http_eleven_megabytes(ask: Ask) -> None:
    body = json.dumps({"message": {"role": "user", "parts": [{"type": "text", "text": "x" * ELEVEN_MB}]}}).encode()
    told(ask("POST", SEND, body), 413, "TOO_LARGE", str(len(body)))


def test_http_foreign_origin(ask: Ask, daemon: Daemon) -> None:
    body = json.dumps(MESSAGE).encode()
    for origin in ("http://evil.example", "null", f"http://localhost:{daemon.port + 1}"):
        told(ask("POST", SEND, body, {"Origin": origin}), 403, "FORBIDDEN", "foreign web pages")


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8090", "127.0.0.1.evil.example"])
def test_http_foreign_host(daemon: Served, host: str) -> None:
    """On TCP only: no browser reaches a Unix socket."""
    assert daemon.api is not None
    for port in (daemon.port, daemon.api.agent_port):
        answer = over_tcp(port, "GET", "/agents/dummy/status", headers={"Host": host})
        told(answer, 403, "FORBIDDEN", host.partition(":")[0], "allowed_hosts")


def test_http_control_needs_the_socket_or_the_token(daemon: Daemon) -> None:
    told(over_tcp(daemon.port, "POST", "/control/shutdown", b"{}"), 403, "FORBIDDEN", "Unix socket", "token")
    wrong = {"Authorization": "Bearer nobody"}
    told(over_tcp(daemon.port, "POST", "/control/shutdown", b"{}", wrong), 401, "UNAUTHORIZED")


ANOTHER_USER = """
import encodings.idna, os, socket, sys  # the name look-up wants it, which that user may not be able to read
port, path = int(sys.argv[1]), sys.argv[2]
os.setgroups([]); os.setgid(65534); os.setuid(65534)
with socket.create_connection(("127.0.0.1", port)) as tcp:
    tcp.sendall(b"GET /agents HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\n\\r\\n")
    sys.stdout.write(b"".join(iter(lambda: tcp.recv(65536), b"")).decode())
try:
    socket.socket(socket.AF_UNIX).connect(path)
except PermissionError:
    sys.stdout.write("\\nUNIX: permission denied")
"""


@pytest.mark.skipif(os.getuid() != 0 or not sys.platform.startswith("linux"), reason="becomes another user: needs root")
def test_another_user(daemon: Daemon) -> None:
    command = [sys.executable, "-c", ANOTHER_USER, str(daemon.port), str(daemon.socket)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    head, _, rest = done.stdout.partition("\n\n")
    assert head.startswith("HTTP/1.1 403 ")
    assert '"code": "FORBIDDEN"' in rest
    assert "other users" in rest
    assert "dummy" not in rest, "nothing is told of the agents"
    assert rest.endswith("UNIX: permission denied")
