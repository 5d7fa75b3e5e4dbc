"""`upgrade --check`: how it was installed, what is offered, what happens then. No network, and fakes for installers."""

import functools
import http.server
import itertools
import json
import os
import shutil
import subprocess
import sys
import threading
import zipfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from synapsectl.checkup.finding import NOTE
from synapsectl.checkup.surroundings import look_at_cache
from synapsectl.commands import upgrade
from synapsectl.errors import UsageError
from synapsectl.upgrading import advice
from synapsectl.upgrading.advice import UpgradeFacts
from synapsectl.upgrading.installation import BASE, Installation, Installer, commands, find_installation
from synapsectl.upgrading.offer import MEMBER_MAX, NoIndex, Offer, compared, of_index, of_wheel
from synapsed import __version__
from tests.synapsectl.conftest import Ctl
from tests.synapsectl.fake_daemon import FakeDaemon

NUMBERS = {"store": {"schema": 12, "oldest": 7}, "keeper": {"protocol": 3, "oldest": 2}}
PYTHON = "/opt/synapsed/bin/python"


def numbers(*, schema: int = 12, oldest: int = 7, protocol: int = 3, oldest_keeper: int = 2) -> dict[str, Any]:
    return {
        "store": {"schema": schema, "oldest": oldest},
        "keeper": {"protocol": protocol, "oldest": oldest_keeper},
    }


def facts(offer: Offer | None = None, **changed: Any) -> UpgradeFacts:
    usual = UpgradeFacts(
        installed=Installation(Installer.UV_TOOL, Path("/opt/synapsed"), PYTHON),
        version="1.2.0",
        commit="aaaaaaaaaa",
        numbers=NUMBERS,
        running=("1.2.0", "aaaaaaaaaa"),
        agents=("claude", "codex"),
        service="",
        parts=(),
        offer=offer,
    )
    return usual._replace(**changed)


def wheel(folder: Path, *, name: str = "synapsed", version: str = "9.0.0", **files: str) -> Path:
    path = folder / f"{name}-{version.partition(' ')[0]}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
        metadata = f"Metadata-Version: 2.4\nName: {name}\nVersion: {version}\n\nName: a line of the description\n"
        out.writestr(f"{name}-{version}.dist-info/METADATA", metadata)
        out.writestr(
            f"{name}-{version}.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        out.writestr(f"{name}-{version}.dist-info/RECORD", "")
        for file, text in files.items():
            out.writestr(f"synapsed/{file}", text)
    return path


class _CachedFiles(http.server.SimpleHTTPRequestHandler):
    """Answers as an index does: clients may keep what they got."""

    def end_headers(self) -> None:
        self.send_header("Cache-Control", "max-age=600, public")
        super().end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its own name
        pass


class TestInstallation:
    def installed(self, folder: Path, by: str, source: str | None = None) -> Path:
        """Returns the folder of packages, with the metadata as an installer leaves it."""
        about = folder / "lib/synapsed-1.2.0.dist-info"
        about.mkdir(parents=True)
        (about / "INSTALLER").write_text(by)
        if source is not None:
            (about / "direct_url.json").write_text(json.dumps({"url": source}))
        return folder / "lib"

    @pytest.mark.parametrize(
        ("by", "mark", "found"),
        [
            ("uv", "uv-receipt.toml", Installer.UV_TOOL),
            ("pip", "pipx_metadata.json", Installer.PIPX),
            ("uv\n", None, Installer.UV),
            ("pip\n", None, Installer.PIP),
            ("debian", None, Installer.DEBIAN),
            ("conda", None, Installer.UNKNOWN),
            ("", None, Installer.UNKNOWN),
        ],
    )
    def test_it_is_told_by_the_installers_own_marks(
        self, tmp_path: Path, by: str, mark: str | None, found: Installer
    ) -> None:
        packages = self.installed(tmp_path, by)
        if mark is not None:
            (tmp_path / mark).touch()
        place = packages if found is Installer.DEBIAN else tmp_path
        assert find_installation(packages, tmp_path)[:2] == (found, place)

    def test_homebrew_is_told_by_its_cellar(self, tmp_path: Path) -> None:
        prefix = tmp_path / "Cellar/synapsed/1.2.0/libexec"
        assert find_installation(self.installed(prefix, "pip"), prefix).installer is Installer.HOMEBREW

    def test_uvx_is_told_by_its_place_in_uvs_cache(self, tmp_path: Path) -> None:
        prefix = tmp_path / "uv/archive-v0/7uRnsLz706P6stjj"
        packages = self.installed(prefix, "uv", "file:///src/synapsed-1.2.0-py3-none-any.whl")
        assert find_installation(packages, prefix).installer is Installer.UV, "another folder of such a name"
        (tmp_path / "uv/CACHEDIR.TAG").touch()
        found = find_installation(packages, prefix)
        assert (found.installer, found.place) == (Installer.UVX, prefix)
        tool = f"uv tool install --python {BASE} --reinstall"
        assert commands(found) == [f"{tool} /src/synapsed-1.2.0-py3-none-any.whl"]
        assert commands(found._replace(source="")) == [f"{tool} synapsed"], "never into the cache's own environment"
        assert "'uvx --refresh --from …'" in dict(advice.effects(facts(installed=found)))["uvx"]
        (note,) = look_at_cache(found)
        assert (note.status, note.mend) == (NOTE, f"{tool} /src/synapsed-1.2.0-py3-none-any.whl")
        assert [*look_at_cache(found._replace(installer=Installer.UV_TOOL))] == []

    @pytest.mark.parametrize("home", [".cache/pipx", ".local/pipx/.cache", "Library/Caches/pipx", "own/.cache"])
    def test_pipx_run_is_told_by_its_place_outside_what_pipx_installs(self, tmp_path: Path, home: str) -> None:
        prefix = tmp_path / home / "f088fb4fd3ba4e5"
        packages = self.installed(prefix, "pip")
        (prefix / "pipx_metadata.json").touch()
        found = find_installation(packages, prefix)
        assert (found.installer, found.place) == (Installer.PIPX_RUN, prefix)
        lasting = f"pipx install --python {BASE} --force synapsed"
        assert commands(found) == [lasting]
        assert "'pipx run --no-cache …'" in dict(advice.effects(facts(installed=found)))["pipx run"]
        (note,) = look_at_cache(found)
        assert (note.status, note.mend) == (NOTE, lasting)
        assert "pipx removes it" in note.detail

    @pytest.mark.parametrize("name", ["synapsed", "synapsed-dev", "f088fb4fd3ba4e5"])
    def test_what_pipx_installed_is_no_cache(self, tmp_path: Path, name: str) -> None:
        prefix = tmp_path / "pipx/venvs" / name
        packages = self.installed(prefix, "pip")
        (prefix / "pipx_metadata.json").touch()
        assert find_installation(packages, prefix).installer is Installer.PIPX

    def test_its_source_is_a_file_a_folder_or_an_index(self, tmp_path: Path) -> None:
        repository = tmp_path / "a b"
        (repository / ".git").mkdir(parents=True)
        found = find_installation(self.installed(tmp_path, "pip", repository.as_uri()), tmp_path)
        assert (found.source, found.under_git) == (str(repository), True)
        (tmp_path / "lib/synapsed-1.2.0.dist-info/direct_url.json").write_text("[1")
        assert find_installation(tmp_path / "lib", tmp_path).source == ""

    @pytest.mark.parametrize(
        ("told", "source"),
        [
            ({"vcs": "git", "requested_revision": "v2"}, "git+https://example.org/s.git@v2#subdirectory=py"),
            ({"vcs": "git"}, "git+https://example.org/s.git#subdirectory=py"),
            ({}, "https://example.org/s.git"),
            ([1], ""),
        ],
    )
    def test_a_repository_is_named_as_an_installer_takes_it(self, tmp_path: Path, told: Any, source: str) -> None:
        packages = self.installed(tmp_path, "pip", "")
        url = {"url": "https://example.org/s.git", "vcs_info": told, "subdirectory": "py"}
        (packages / "synapsed-1.2.0.dist-info/direct_url.json").write_text(json.dumps(url))
        assert find_installation(packages, tmp_path).source == source

    def test_a_checkout_has_no_metadata_beside_it(self, tmp_path: Path) -> None:
        assert find_installation(tmp_path, tmp_path) == Installation(Installer.CHECKOUT, tmp_path)

    @pytest.mark.parametrize(
        ("installer", "from_index", "from_file"),
        [
            (Installer.UV_TOOL, "uv tool upgrade synapsed", f"uv tool install --python {BASE} --force 'a b.whl'"),
            (Installer.PIPX, "pipx upgrade synapsed", f"pipx install --python {BASE} --force 'a b.whl'"),
            (
                Installer.UV,
                f"uv pip install --python {PYTHON} --upgrade synapsed",
                f"uv pip install --python {PYTHON} --upgrade 'a b.whl'",
            ),
            (
                Installer.PIP,
                f"{PYTHON} -m pip install --upgrade synapsed",
                f"{PYTHON} -m pip install --upgrade 'a b.whl'",
            ),
            (Installer.HOMEBREW, "brew upgrade synapsed", "brew upgrade synapsed"),
            (
                Installer.DEBIAN,
                "sudo apt install ./synapsed_VERSION_ARCHITECTURE.deb",
                "sudo apt install ./synapsed_VERSION_ARCHITECTURE.deb",
            ),
        ],
    )
    def test_the_command_is_the_installers(self, installer: Installer, from_index: str, from_file: str) -> None:
        installed = Installation(installer, Path("/opt/synapsed"), PYTHON)
        assert (commands(installed), commands(installed, "a b.whl")) == ([from_index], [from_file])

    def test_what_came_from_a_folder_is_installed_from_there_again(self) -> None:
        installed = Installation(Installer.UV_TOOL, Path("/t"), PYTHON, "/src/a b", under_git=True)
        assert commands(installed) == [
            "git -C '/src/a b' pull",
            f"uv tool install --python {BASE} --reinstall '/src/a b'",
        ]
        checkout = Installation(Installer.CHECKOUT, Path("/src"), PYTHON, under_git=True)
        assert commands(checkout) == commands(checkout, "x.whl") == ["git -C /src pull", "make -C /src setup"]


class TestOffer:
    def test_versions_are_in_their_order(self) -> None:
        order = ["0.9", "1.0.dev3", "1.0a1", "1.0b2", "1.0rc1", "1.0", "1.0.post1", "1.0.1", "1.2", "1.10.0", "2"]
        for before, after in itertools.pairwise(order):
            assert (compared(before, after), compared(after, before)) == (-1, 1), (before, after)
        assert compared("1.0", "1.0.0") == compared("1.0+abc", "1.0") == 0
        for text in ("", "one", "1.0; rm", "1\x1b[2J", "1" * 65):
            with pytest.raises(ValueError, match="not a version"):
                compared(text, "1.0")

    def test_a_wheel_says_what_it_is(self, tmp_path: Path) -> None:
        file = wheel(tmp_path, _commit="0123456789abcdef\n", **{"_versions.json": json.dumps(numbers(schema=13))})
        told = of_wheel(str(file))
        assert told[:4] == ("9.0.0", "wheel", "0123456789", str(file))
        assert told.numbers["store"]["schema"] == 13

    def test_a_wheel_of_before_says_less(self, tmp_path: Path) -> None:
        assert of_wheel(str(wheel(tmp_path))) == Offer(
            "9.0.0", "wheel", "", str(tmp_path / "synapsed-9.0.0-py3-none-any.whl")
        )

    @pytest.mark.parametrize(
        "said", ["[]", "{", '{"store": {"schema": "x", "oldest": 1}}', '{"store": 1}', "[" * 10_000]
    )
    def test_odd_numbers_are_no_numbers(self, tmp_path: Path, said: str) -> None:
        file = wheel(tmp_path, _commit="\x1b[2J", **{"_versions.json": said})
        assert of_wheel(str(file))[2:] == ("", str(file), {})

    def test_what_is_no_wheel_of_ours_is_named(self, tmp_path: Path) -> None:
        (tmp_path / "text.whl").write_text("no archive")
        os.mkfifo(tmp_path / "fifo.whl")
        with zipfile.ZipFile(tmp_path / "empty.whl", "w"):
            pass
        large = wheel(tmp_path, version="8.0", _commit="x" * (MEMBER_MAX + 1))
        for file, words in (
            (tmp_path / "gone.whl", "is no file: name a wheel"),
            (tmp_path / "fifo.whl", "is no file"),
            (tmp_path, "is no file"),
            (tmp_path / "text.whl", "cannot be read as a wheel"),
            (tmp_path / "empty.whl", "is no wheel, and not a wheel of synapsed"),
            (large, "is larger than"),
            (wheel(tmp_path, name="other"), "is of 'other', and not a wheel of synapsed"),
            (wheel(tmp_path, version="1 or so"), "'1 or so' as its version"),
        ):
            with pytest.raises(UsageError, match=words):
                of_wheel(str(file))

    @pytest.mark.parametrize("damage", [0x00, 0xFF])
    def test_a_damaged_wheel_is_refused_and_nothing_else(self, tmp_path: Path, damage: int) -> None:
        whole = bytearray(wheel(tmp_path, _commit="abc").read_bytes())
        file = tmp_path / "damaged.whl"
        for place in range(len(whole)):
            file.write_bytes(whole[:place] + bytes([damage]) + whole[place + 1 :])
            with suppress(UsageError):
                of_wheel(str(file))
        file.write_bytes(whole[: len(whole) // 2])
        with pytest.raises(UsageError, match="cannot be read as a wheel"):
            of_wheel(str(file))

    def ask(self, installer: Installer, answers: dict[str, tuple[int, str, str]]) -> tuple[Offer, list[list[str]]]:
        asked: list[list[str]] = []

        def run(command: Sequence[str]) -> tuple[int, str, str]:
            asked.append(list(command))
            if command[0] not in answers:
                raise FileNotFoundError(command[0])
            return answers[command[0]]

        return of_index(Installation(installer, Path("/opt"), PYTHON), run), asked

    def test_uv_is_asked_where_uv_installed_it(self) -> None:
        err = "Resolved 1 package\nWould install 1 package\n - synapsed==0.1.0\n + synapsed==0.2.0\n"
        offer, asked = self.ask(Installer.UV_TOOL, {"uv": (0, "", err)})
        assert offer == Offer("0.2.0", "index")
        (command,) = asked
        assert {"--dry-run", "--no-deps"} <= set(command)
        assert command[command.index("--only-binary") + 1] == "synapsed", "else an sdist would run its build"
        assert command[command.index("--reinstall-package") + 1] == "synapsed", "else what is there will do"

    def test_pip_is_asked_where_anything_else_did_and_uv_where_there_is_no_pip(self) -> None:
        report = json.dumps({"install": [{"metadata": {"version": "0.3.0"}}]})
        offer, asked = self.ask(Installer.PIPX, {PYTHON: (0, report, "")})
        assert offer == Offer("0.3.0", "index")
        assert {"--dry-run", "--no-deps", "--only-binary"} <= set(asked[0])
        offer, asked = self.ask(
            Installer.PIP, {PYTHON: (1, "", "No module named pip"), "uv": (0, " + synapsed==1", "")}
        )
        assert (offer.version, len(asked)) == ("1", 2)

    @pytest.mark.parametrize(
        "answers",
        [
            {},
            {"uv": (1, "", ""), PYTHON: (1, "", "ERROR: No matching distribution found for synapsed")},
            {"uv": (0, "", "Resolved 1 package\nWould make no changes\n"), PYTHON: (0, "{}", "")},
            {"uv": (0, " + synapsed==\x1b[2J", ""), PYTHON: (0, '{"install": [{"metadata": {"version": "x y"}}]}', "")},
        ],
    )
    def test_an_index_that_does_not_say_it_is_an_error_with_the_next_step(
        self, answers: dict[str, tuple[int, str, str]]
    ) -> None:
        with pytest.raises(NoIndex, match=r"the index did not say.*upgrade --check --wheel FILE") as failed:
            self.ask(Installer.UV_TOOL, answers)
        assert "\x1b" not in str(failed.value)
        assert failed.value.exit_code == 6

    @pytest.mark.slow
    @pytest.mark.skipif(shutil.which("uv") is None, reason="NOT TRIED: uv is not installed")
    def test_the_real_uv_says_it_of_a_folder(self, tmp_path: Path) -> None:
        """What is installed already is no answer."""

        def run(command: Sequence[str]) -> tuple[int, str, str]:
            env = os.environ | {"UV_NO_INDEX": "1", "UV_FIND_LINKS": str(tmp_path), "UV_NO_CACHE": "1"}
            done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, check=False)
            return done.returncode, done.stdout, done.stderr if command[0] == "uv" else "pip is not meant"

        installed = Installation(Installer.UV, Path(sys.prefix), sys.executable)
        with pytest.raises(NoIndex):
            of_index(installed, run)
        wheel(tmp_path, version="7.0.0")
        wheel(tmp_path, version="7.10.0")
        assert of_index(installed, run) == Offer("7.10.0", "index")

    @pytest.mark.slow
    @pytest.mark.skipif(shutil.which("uv") is None, reason="NOT TRIED: uv is not installed")
    def test_the_real_uvx_leaves_its_marks_and_runs_the_version_that_it_ran(self, tmp_path: Path) -> None:
        """A newer version in the index is taken with `--refresh` only: what the advice says."""
        (index := tmp_path / "simple/synapsed").mkdir(parents=True)
        handler = functools.partial(_CachedFiles, directory=str(tmp_path))
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            address = f"http://127.0.0.1:{server.server_address[1]}/simple"
            env = os.environ | {"UV_CACHE_DIR": str(tmp_path / "cache"), "UV_TOOL_DIR": str(tmp_path / "tools")}
            env |= {"UV_PYTHON": sys.executable, "UV_DEFAULT_INDEX": address, "NO_PROXY": "127.0.0.1"}

            def uvx(*options: str) -> tuple[Path, str]:
                say = "import sys, importlib.metadata as m; print(sys.prefix, m.version('synapsed'))"
                command = ["uv", "tool", "run", *options, "--from", "synapsed", "python", "-c", say]
                done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
                prefix, _, version = done.stdout.strip().rpartition(" ")
                return Path(prefix), version

            wheel(index, version="7.0.0")
            prefix, version = uvx()
            found = find_installation(next(prefix.glob("lib/python*/site-packages")), prefix)
            assert (found.installer, version) == (Installer.UVX, "7.0.0")
            wheel(index, version="7.1.0")
            assert [uvx()[1], uvx("--refresh")[1]] == ["7.0.0", "7.1.0"]
            server.shutdown()

    @pytest.mark.slow
    def test_the_real_pip_says_it_of_a_folder(self, tmp_path: Path) -> None:
        """It reads its own configuration, installs nothing, and takes no sdist."""
        wheel(tmp_path, version="7.0.0")
        wheel(tmp_path, version="7.10.0")
        (tmp_path / "synapsed-8.0.0.tar.gz").write_bytes(b"whose build would be run")

        def run(command: Sequence[str]) -> tuple[int, str, str]:
            env = os.environ | {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path)}
            done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, check=False)
            return done.returncode, done.stdout, done.stderr

        found = of_index(Installation(Installer.PIP, Path(sys.prefix), sys.executable), run)
        assert found == Offer("7.10.0", "index")


class TestAdvice:
    @pytest.mark.parametrize(
        ("offer", "newer", "words"),
        [
            (None, None, "nothing was asked"),
            (Offer("1.3.0", "index"), True, "newer than"),
            (Offer("1.2.0", "index"), False, "not newer"),
            (Offer("1.2", "wheel", "aaaaaaaaaa", "/x.whl"), False, "not newer"),
            (Offer("1.2.0", "wheel", "bbbbbbbbbb", "/x.whl"), True, "another build"),
            (Offer("1.1.0", "wheel", "", "/x.whl"), False, "a way back"),
        ],
    )
    def test_what_is_newer(self, offer: Offer | None, newer: bool | None, words: str) -> None:
        assert advice.newer(facts(offer)) is newer
        assert words in advice.verdict(facts(offer))

    def effect(self, of: str, told: UpgradeFacts) -> str:
        return dict(advice.effects(told))[of]

    @pytest.mark.parametrize(
        ("then", "words"),
        [
            (numbers(), "they and their turns go on"),
            (numbers(protocol=4, oldest_keeper=3), "restart older ones first"),
            (numbers(protocol=5, oldest_keeper=4), "does NOT take them up"),
            (numbers(protocol=2, oldest_keeper=1), "does NOT take them up"),
            ({}, "as between any two versions that follow each other"),
        ],
    )
    def test_agents_that_live(self, then: dict[str, Any], words: str) -> None:
        told = self.effect("agents", facts(Offer("1.3.0", "wheel", "", "/x.whl", then)))
        assert "2 live (claude, codex)" in told
        assert words in told

    @pytest.mark.parametrize(
        ("then", "words"),
        [
            (numbers(), "of the same form"),
            (numbers(schema=13), "1.2.0 works on it still"),
            (numbers(schema=13, oldest=13), "1.2.0 does NOT work on it any more"),
            (numbers(schema=11, oldest=3), "works on it as it is"),
            (numbers(schema=6, oldest=3), "does NOT work on it: it knows form 6"),
            ({}, "works on it still, or refuses"),
        ],
    )
    def test_the_database(self, then: dict[str, Any], words: str) -> None:
        assert words in self.effect("database", facts(Offer("1.3.0", "wheel", "", "/x.whl", then)))

    def test_nobody_is_there(self) -> None:
        assert "agents that live on without one" in self.effect("agents", facts(running=None, agents=()))
        assert self.effect("agents", facts(agents=())) == "none lives now"
        assert "fleet: pinned" in self.effect("parts", facts(parts=("fleet",)))
        assert PYTHON in self.effect("hooks", facts())

    def test_the_commands_stand_in_their_order(self) -> None:
        said = [command for command, _ in advice.steps(facts(Offer("1.3.0", "index"), service="systemd"))]
        assert said == [
            "uv tool upgrade synapsed",
            "synapsectl install --dry-run",
            "systemctl --user restart synapsed",
            "synapsectl doctor",
        ]
        folder = Installation(Installer.PIPX, Path("/opt/synapsed"), PYTHON, source="/src/synapsed")
        (first, *_) = (command for command, _ in advice.steps(facts(Offer("1.3.0", "index"), installed=folder)))
        assert first == f"pipx install --python {BASE} --force synapsed==1.3.0", "it upgrades from the folder else"
        said = [command for command, _ in advice.steps(facts(Offer("1.3.0", "wheel", "", "/x.whl")))]
        assert said[0] == f"uv tool install --python {BASE} --force /x.whl"
        assert said[1:3] == ["synapsectl shutdown --keep-agents", "synapsectl up"]
        said = [command for command, _ in advice.steps(facts(Offer("1.1.0", "wheel", "", "/x.whl"), running=None))]
        assert said == [f"uv tool install --python {BASE} --force /x.whl", "synapsectl doctor"], (
            "a way back is a person's choice"
        )

    def test_there_may_be_nothing_to_do(self) -> None:
        for version in ("1.2.0", "1.1.0"):
            assert advice.steps(facts(Offer(version, "index"))) == []
        behind = facts(Offer("1.2.0", "index"), running=("1.1.0", ""))
        assert advice.is_behind(behind)
        assert next(command for command, _ in advice.steps(behind)) == "synapsectl shutdown --keep-agents"


class TestVerb:
    @pytest.fixture(autouse=True)
    def no_index(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def refused(command: Sequence[str]) -> tuple[int, str, str]:
            raise AssertionError(f"nobody has asked for {command}")

        monkeypatch.setattr(upgrade, "run_program", refused)

    def test_it_changes_nothing_itself(self, ctl: Ctl) -> None:
        refused = ctl("upgrade")
        assert (refused.code, "'synapsectl upgrade --check'" in refused.err) == (2, True)

    def test_it_asks_no_index_unless_it_is_told(self, ctl: Ctl, daemon: FakeDaemon) -> None:
        told = ctl("upgrade", "--check")
        assert told.code == 0
        assert f"installed  {__version__}" in told.out
        assert "nothing was asked" in told.out
        assert "synapsectl shutdown --keep-agents" in told.out

    def test_it_needs_no_daemon(self, ctl: Ctl) -> None:
        assert "running    no daemon" in ctl("upgrade", "--check").out

    def test_a_wheel_as_json(self, ctl: Ctl, daemon: FakeDaemon, tmp_path: Path) -> None:
        file = wheel(tmp_path, **{"_versions.json": json.dumps(numbers(protocol=99, oldest_keeper=99))})
        told = json.loads(ctl("upgrade", "--check", "--wheel", str(file), "--json").out)
        assert told["offer"] == {"version": "9.0.0", "commit": None, "origin": "wheel", "file": str(file)}
        assert told["newer"] is True
        assert told["installed"]["version"] == __version__
        assert set(told["effects"]) >= {"agents", "hooks", "service", "database"}
        assert told["commands"][-1] == "synapsectl doctor"
        assert set(told["agents"]) <= set(daemon.agents)

    def test_what_cannot_be_read_is_a_document_too(self, ctl: Ctl) -> None:
        told = ctl("upgrade", "--check", "--wheel", "/nowhere.whl", "--json")
        assert (told.code, json.loads(told.out)["error"]["code"]) == (2, "USAGE")
