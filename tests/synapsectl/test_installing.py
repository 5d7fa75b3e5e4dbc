"""What an installation writes: units and plist from their templates, files whole or not at all."""

import json
import plistlib
import stat
import subprocess
from pathlib import Path

import pytest

from synapsectl.commands import install
from synapsectl.errors import CtlError
from synapsectl.service import available, launchd, systemd
from synapsectl.service.files import WantedFile
from synapsectl.service.login import Login, ProgramPath
from synapsectl.service.manager import Finished
from synapsectl.service.settings import ConfiguredAgent, ServiceSettings, env_file
from synapsectl.upgrading.installation import Installation, Installer, commands
from synapsed import own_python
from synapsed.config.paths import Paths
from tests.synapsectl.conftest import Ctl

PATH = '/opt/odd "place"/$HOME/50%:/usr/bin'


@pytest.fixture
def settings(tmp_path: Path) -> ServiceSettings:
    return ServiceSettings(
        Paths.from_environ({"HOME": str(tmp_path), "XDG_RUNTIME_DIR": "/run/user/1"}),
        "/opt/py thon/50%/bin/python",
        "127.0.0.1:8090",
        (ConfiguredAgent("claude", "claude", "claude", True),),
        Login("/bin/bash", PATH, {}, (ProgramPath("claude", "/usr/bin/claude"), ProgramPath("lost", None))),
        {"PATH": PATH, "LANG": "C.UTF-8"},
    )


def units(settings: ServiceSettings, tmp_path: Path) -> dict[str, WantedFile]:
    return {file.path.name: file for file in systemd.Systemd({"HOME": str(tmp_path)}).files(settings)}


def test_what_is_written_for_systemd(settings: ServiceSettings, tmp_path: Path) -> None:
    files = units(settings, tmp_path)
    assert set(files) == {
        "synapsed.service",
        "synapse-agents.target",
        "synapsed-control.socket",
        "synapsed-http.socket",
        "synapsed-http6.socket",
        "service.env",
    }
    assert all("@" not in file.text for file in files.values())
    service = files["synapsed.service"].text.splitlines()
    own = f'ExecStart="/opt/py thon/50%%/bin/python" -P -E {own_python.FILE} synapsed.cli run --service systemd'
    assert own in service
    assert f"WorkingDirectory={own_python.PACKAGES}" in service
    assert "Sockets=synapsed-control.socket synapsed-http.socket synapsed-http6.socket" in service
    assert "ListenStream=127.0.0.1:8090" in files["synapsed-http.socket"].text
    assert "ListenStream=[::1]:8090" in files["synapsed-http6.socket"].text
    assert "ListenStream=/run/user/1/synapsed/control.sock" in files["synapsed-control.socket"].text
    assert (files["service.env"].mode, files["synapsed.service"].mode) == (0o600, 0o644)


def test_the_service_sets_no_umask(settings: ServiceSettings, tmp_path: Path) -> None:
    """It would be that of agents, too, of whose shell nothing is known; the daemon sets its own."""
    assert "UMask" not in units(settings, tmp_path)["synapsed.service"].text


def test_the_environment_file_is_read_back_as_it_was(settings: ServiceSettings, tmp_path: Path) -> None:
    file = units(settings, tmp_path)["service.env"]._replace(path=tmp_path / "service.env")
    file.write()
    lines = file.text.splitlines()
    assert "# claude: /usr/bin/claude" in lines
    assert "# lost: not found" in lines
    # A shell reads double quotes as systemd does.
    script = f'. "{file.path}"; printf "%s\\n" "$PATH" "$LANG"'
    read = subprocess.run(["/bin/sh", "-c", script], env={}, capture_output=True, text=True, check=True)
    assert read.stdout.splitlines() == [PATH, "C.UTF-8"]


@pytest.mark.parametrize("character", ["$", '"', "'", "\\"])
def test_a_shell_becomes_an_interpreter_that_systemd_does_not_take(
    settings: ServiceSettings, tmp_path: Path, character: str
) -> None:
    """See tests/service/test_odd_paths for a real systemd that reads it."""
    service = units(settings._replace(python=f"/opt/a{character}b/python"), tmp_path)["synapsed.service"].text
    started = next(line for line in service.splitlines() if line.startswith("ExecStart="))
    assert started.startswith(r'ExecStart=/bin/sh -c "exec \"$$0\" \"$$@\"" ')
    assert started.endswith(f" -P -E {own_python.FILE} synapsed.cli run --service systemd")


def test_a_variable_of_a_unit_is_no_command_line() -> None:
    assert systemd.quoted_word("A=$HOME 50%") == '"A=$HOME 50%%"'
    assert systemd.command_words(["/bin/x", "$HOME 50%"]) == '/bin/x "$$HOME 50%%"'
    assert systemd.folder_line("/a\\") == "/a\\/"


def test_no_socket_for_a_port_that_is_chosen_at_the_start(settings: ServiceSettings, tmp_path: Path) -> None:
    files = units(settings._replace(listen=None), tmp_path)
    assert "synapsed-http.socket" not in files
    assert "Wants=synapsed-control.socket\n" in files["synapsed.service"].text


def test_no_second_socket_for_an_address_that_localhost_does_not_mean(
    settings: ServiceSettings, tmp_path: Path
) -> None:
    assert "synapsed-http6.socket" not in units(settings._replace(listen="127.0.0.2:8090"), tmp_path)
    files = units(settings._replace(listen="[::1]:8090"), tmp_path)
    assert "ListenStream=127.0.0.1:8090" in files["synapsed-http6.socket"].text


def test_a_line_break_cannot_be_smuggled_in(settings: ServiceSettings, tmp_path: Path) -> None:
    for odd in (
        settings._replace(python="/x\nExecStart=/evil"),
        settings._replace(python="/x\r"),
        settings._replace(variables={"PATH": "/a\nX=1"}),
    ):
        with pytest.raises(CtlError, match="line break"):
            units(odd, tmp_path)


ALLOWED = {
    "Label": str,
    "ProgramArguments": list,
    "WorkingDirectory": str,
    "EnvironmentVariables": dict,
    "RunAtLoad": bool,
    "KeepAlive": dict,
    "ThrottleInterval": int,
    "ExitTimeOut": int,
    "AbandonProcessGroup": bool,
    "ProcessType": str,
    "SoftResourceLimits": dict,
    "StandardErrorPath": str,
}
"""The keys of launchd.plist(5) that are used, with their types."""


def test_the_plist_key_by_key(settings: ServiceSettings, tmp_path: Path) -> None:
    (file,) = launchd.Launchd({"HOME": str(tmp_path)}).files(settings)
    assert file.path == tmp_path / "Library/LaunchAgents/synapsed.plist"
    assert file.mode == 0o600, "launchd refuses what others can write to"
    plist = plistlib.loads(file.text.encode())
    assert {key: type(value) for key, value in plist.items()} == ALLOWED
    assert plist["Label"] == file.path.stem
    assert plist["ProgramArguments"] == own_python.command(
        "synapsed.cli", "run", "--log-file", "--late-port", python=settings.python
    )
    assert plist["EnvironmentVariables"] == settings.variables
    assert plist["KeepAlive"] == {"SuccessfulExit": False}
    assert plist["ThrottleInterval"] >= 10, "launchd takes no less"
    assert plist["ExitTimeOut"] > 20, "more than the agents' grace and the daemon's own end"
    assert plist["ProcessType"] in {"Background", "Standard", "Adaptive", "Interactive"}
    assert set(plist["SoftResourceLimits"]) <= {"NumberOfFiles", "NumberOfProcesses", "Core", "CPU", "Data", "Stack"}
    assert all(type(limit) is int for limit in plist["SoftResourceLimits"].values())
    assert "Umask" not in plist, "it would be that of agents, too, of whose shell nothing is known"
    for key in ("WorkingDirectory", "StandardErrorPath"):
        assert Path(plist[key]).is_absolute()


class Launchctl:
    """A launchctl that remembers; `loaded` is whether it knows the service."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []
        self.loaded = False

    def __call__(self, command: list[str], environ: object) -> Finished:
        del environ
        verb, *rest = command[1:]
        if verb == "print" and rest[0].count("/") > 1:
            return Finished(0, "\tstate = running\n\tpid = 77", "") if self.loaded else Finished(113, "", "not found")
        if verb != "print":
            self.calls.append([verb, *rest])
            self.loaded = verb != "bootout"
        return Finished(0, "", "")


def test_what_launchd_is_asked(settings: ServiceSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = Launchctl()
    monkeypatch.setattr(launchd, "run_tool", tool)
    service = launchd.Launchd({"HOME": str(tmp_path), "XDG_RUNTIME_DIR": "/run/user/1"})
    assert not service.is_ours()
    (file,) = service.files(settings)
    file.write()
    assert service.is_ours()
    service.load()
    service.load()
    assert service.state().pid == 77
    service.unload()
    service.unload()
    assert [call[0] for call in tool.calls] == ["bootstrap", "bootout", "bootstrap", "bootout"]
    assert tool.calls[0][2] == str(file.path)


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    file = WantedFile(tmp_path / "new" / "a.service", "one\ntwo\n", 0o600)
    assert file.diff()[:2] == ["--- /dev/null", f"+++ {file.path}"]
    file.write()
    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600
    assert file.is_current()
    assert file.diff() == []
    file.path.chmod(0o644)
    assert not file.is_current()
    assert file.diff() == [f"mode of {file.path} becomes 0600"]
    assert "-one" in file.diff(removed=True)
    (tmp_path / "file").write_text("")
    with pytest.raises(CtlError, match="cannot be written"):
        WantedFile(tmp_path / "file" / "below", "x").write()
    assert list((tmp_path / "new").iterdir()) == [file.path]


def test_no_service_manager_is_told_in_words_that_help(ctl: Ctl, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(available.shutil, "which", lambda _name: None)
    done = ctl("install")
    assert done.code == 6
    assert "'synapsed run'" in done.err


def test_a_service_manager_that_does_not_answer_changes_nothing(
    ctl: Ctl, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(available.shutil, "which", lambda name: f"/bin/{name}")
    monkeypatch.setattr(systemd, "run_tool", lambda *_: Finished(1, "", "Failed to connect to bus"))
    done = ctl("install", HOME=str(home), XDG_CONFIG_HOME="")
    assert done.code == 6
    assert "Failed to connect to bus" in done.err
    assert (done.out, len(done.err.splitlines())) == ("", 1), "that, and nothing else"
    assert "nothing was changed" in done.err
    assert not (home / ".config").exists()
    assert not env_file(Paths.from_environ()).exists()


@pytest.mark.parametrize(("booted", "told"), [(True, "log in as this user"), (False, "systemd does not run here")])
def test_what_would_be_written_is_shown_below_why_it_could_not_be(
    ctl: Ctl, home: Path, monkeypatch: pytest.MonkeyPatch, booted: bool, told: str
) -> None:
    monkeypatch.setattr(available.shutil, "which", lambda name: f"/bin/{name}")
    monkeypatch.setattr(systemd, "run_tool", lambda *_: Finished(1, "", "no bus"))
    monkeypatch.setattr(systemd, "BOOTED", home if booted else home / "none")
    done = ctl("install", "--dry-run", HOME=str(home), XDG_CONFIG_HOME="")
    assert done.code == 0
    assert done.err.startswith("synapsectl: it could not be installed now: ")
    assert told in done.err.splitlines()[0]
    assert "synapsed.service" in done.out


UVX = Installation(Installer.UVX, Path("/home/me/.cache/uv/archive-v0/7uRnsLz706P6stjj"))
PIPX_RUN = Installation(Installer.PIPX_RUN, Path("/home/me/.cache/pipx/f088fb4fd3ba4e5"))


@pytest.fixture(params=[UVX, PIPX_RUN], ids=lambda one: str(one.installer))
def fleeting(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """A synapsed that `uvx` or `pipx run` runs; the command that installs it for good."""
    place: Installation = request.param
    monkeypatch.setattr(install, "find_installation", lambda: place)
    monkeypatch.setattr(available.shutil, "which", lambda name: f"/bin/{name}")
    monkeypatch.setattr(systemd, "run_tool", lambda *_: Finished(0, "", ""))
    (lasting,) = commands(place)
    return lasting


def test_a_cache_is_no_place_for_a_service(ctl: Ctl, home: Path, fleeting: str) -> None:
    done = ctl("install", "--start", HOME=str(home), XDG_CONFIG_HOME="")
    assert (done.code, done.out) == (6, "")
    assert any(told in done.err for told in ("'uv cache clean'", "pipx removes it"))
    assert f"'{fleeting}'" in done.err
    assert "nothing was changed" in done.err
    assert not (home / ".config").exists()
    told = ctl("install", "--json", HOME=str(home), XDG_CONFIG_HOME="")
    assert json.loads(told.out)["error"]["code"] == "IN_CACHE"


def test_what_would_be_written_into_a_cache_is_shown_below_that(ctl: Ctl, home: Path, fleeting: str) -> None:
    done = ctl("install", "--dry-run", HOME=str(home), XDG_CONFIG_HOME="")
    assert (done.code, fleeting in done.err.splitlines()[0]) == (0, True)
    assert "synapsed.service" in done.out
    assert not (home / ".config").exists()


def test_a_person_may_insist_on_a_cache(ctl: Ctl, home: Path, fleeting: str) -> None:
    done = ctl("install", "--force", HOME=str(home), XDG_CONFIG_HOME="")
    assert (done.code, fleeting in done.err) == (0, True)
    assert (home / ".config/systemd/user/synapsed.service").exists()


def test_an_agent_installs_nothing(ctl: Ctl, home: Path) -> None:
    socket = str(Paths.from_environ().control_socket)
    assert ctl("install", SYNAPSE_CONTROL_SOCKET=socket).code == 2
    assert ctl("uninstall", SYNAPSE_CONTROL_SOCKET=socket).code == 2


def test_an_agent_that_is_gone_by_then_holds_up_no_uninstall(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []

    def tool(command: list[str], _environ: object) -> Finished:
        asked.append(command[2:])
        gone = systemd.AGENTS in command
        return Finished(int(gone), "", "Unit synapse-agent-a.service not loaded." if gone else "")

    monkeypatch.setattr(systemd, "run_tool", tool)
    manager = systemd.Systemd({"HOME": str(home)})
    units = home / ".config" / "systemd" / "user"
    units.mkdir(parents=True)
    (units / systemd.SERVICE).touch()
    manager.unload()
    assert asked == [["stop", systemd.SERVICE], ["stop", systemd.AGENTS], ["disable", systemd.SERVICE]]
