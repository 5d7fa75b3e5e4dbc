"""The version of a program, asked of fake programs in files."""

import json
import os
from pathlib import Path

import pytest

from synapsed.profiles.releases import drift, package_version
from synapsed.profiles.variants import VersionCheck
from synapsed.pty import program_version
from synapsed.pty.program_version import VersionReader

CHECK = VersionCheck()


def program(folder: Path, body: str) -> Path:
    file = folder / "program"
    file.write_text(f"#!/bin/sh\necho asked >> '{folder}/asked'\n{body}\n")
    file.chmod(0o755)
    return file


def asked(folder: Path) -> int:
    return len((folder / "asked").read_text().splitlines())


async def read(reader: VersionReader, file: Path, check: VersionCheck = CHECK, **env: str) -> str | None:
    return await reader.read(check, str(file), env={"PATH": os.defpath, **env}, cwd=str(file.parent))


async def test_it_is_asked_once_and_by_the_next_daemon_not_at_all(tmp_path: Path) -> None:
    file = program(tmp_path, '[ "$1" = --version ] && echo "tool $V (of $PWD)"')
    reader = VersionReader(tmp_path / "versions.json")
    assert await read(reader, file, V="1.2.3") == "1.2.3"
    assert await read(reader, file, V="9") == "1.2.3"
    (tmp_path / "link").symlink_to(file)
    assert await read(VersionReader(tmp_path / "versions.json"), tmp_path / "link") == "1.2.3"
    assert asked(tmp_path) == 1


async def test_another_file_is_asked_again(tmp_path: Path) -> None:
    reader = VersionReader(tmp_path / "versions.json")
    assert await read(reader, program(tmp_path, "echo 1.2")) == "1.2"
    assert await read(reader, program(tmp_path, "echo 1.2.4")) == "1.2.4"


@pytest.mark.parametrize(
    "body", ["exit 1", "echo no number", "echo 'unknown option' >&2; exit 2", "head -c 9000 /dev/zero"]
)
async def test_what_does_not_tell_has_no_version(body: str, tmp_path: Path) -> None:
    reader = VersionReader(tmp_path / "versions.json")
    file = program(tmp_path, body)
    assert await read(reader, file) is None
    assert await read(reader, file) is None
    assert asked(tmp_path) == 1, "nor is it asked at each start"


async def test_one_that_hangs_is_ended_with_what_it_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program_version, "ANSWER_S", 0.2)
    file = program(tmp_path, "echo 1.2.3; sleep 1000 & wait")
    assert await read(VersionReader(tmp_path / "versions.json"), file) is None


async def test_a_time_out_is_no_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine's program may tell it the next time."""
    monkeypatch.setattr(program_version, "ANSWER_S", 0.2)
    file = program(tmp_path, '[ "$V" ] || sleep 1000; echo "$V"')
    reader = VersionReader(tmp_path / "versions.json")
    assert await read(reader, file) is None
    monkeypatch.setattr(program_version, "ANSWER_S", 60.0)
    assert await read(reader, file, V="1.2.3") == "1.2.3"


async def test_one_that_could_not_be_started_is_asked_again(tmp_path: Path) -> None:
    """The daemon may have had no descriptor left, and the file may have been without its permission."""
    file = program(tmp_path, "echo 1.2.3")
    was = file.stat()
    reader = VersionReader(tmp_path / "versions.json")
    file.chmod(0o600)
    assert await read(reader, file) is None
    file.chmod(0o755)
    assert file.stat().st_mtime_ns == was.st_mtime_ns
    assert await read(reader, file) == "1.2.3"


def npm(folder: Path, version: str, *, binary: object) -> Path:
    package = folder / "lib" / "node_modules" / "@maker" / "tool"
    (package / "dist").mkdir(parents=True, exist_ok=True)
    (package / "package.json").write_text(json.dumps({"name": "@maker/tool", "version": version, "bin": binary}))
    (package / "dist" / "package.json").write_text('{"type": "module"}')
    file = program(package / "dist", "sleep 1000")
    (folder / "bin").mkdir(exist_ok=True)
    link = folder / "bin" / "tool"
    link.unlink(missing_ok=True)
    link.symlink_to(file)
    return link


async def test_the_package_says_it_and_nothing_is_run(tmp_path: Path) -> None:
    """An update leaves npm's files with the time and the size that they had."""
    reader = VersionReader(tmp_path / "versions.json")
    link = npm(tmp_path, "0.61.0", binary={"tool": "dist/program"})
    os.utime(link, ns=(0, 0))
    assert await read(reader, link) == "0.61.0"
    npm(tmp_path, "0.62.0", binary={"tool": "./dist/program"})
    os.utime(link, ns=(0, 0))
    assert await read(reader, link) == "0.62.0"
    assert not list(tmp_path.rglob("asked"))


@pytest.mark.parametrize("binary", [{"other": "dist/other"}, "dist/other", None, 7, ["x"]])
def test_a_package_that_does_not_name_the_program_says_nothing_of_it(binary: object, tmp_path: Path) -> None:
    assert package_version(str(npm(tmp_path, "1.2.3", binary=binary))) is None


@pytest.mark.parametrize("text", ["", "[", "[]", '{"version": 7, "bin": "dist/program"}', "[" * 100_000])
def test_a_package_that_cannot_be_read_says_nothing(text: str, tmp_path: Path) -> None:
    link = npm(tmp_path, "1.2.3", binary="dist/program")
    (Path(os.path.realpath(link)).parents[1] / "package.json").write_text(text)
    assert package_version(str(link)) is None


def test_what_pip_installed(tmp_path: Path) -> None:
    info = tmp_path / "env" / "lib" / "python3.13" / "site-packages" / "tool_chat-0.86.2.dist-info"
    info.mkdir(parents=True)
    (info / "entry_points.txt").write_text("[console_scripts]\ntool = tool.main:main\n")
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tool-chat\nVersion: 0.86.2\n\nVersion: 9\n")
    (tmp_path / "env" / "bin").mkdir()
    for name in ("tool", "python3"):
        (tmp_path / "env" / "bin" / name).write_text("#!/bin/sh\n")
    (tmp_path / "tool").symlink_to(tmp_path / "env" / "bin" / "tool")
    assert package_version(str(tmp_path / "tool")) == "0.86.2"
    assert package_version(str(tmp_path / "env" / "bin" / "python3")) is None


def test_a_version_that_was_not_told_is_not_the_same() -> None:
    assert (
        drift("", verified="1.2.3", since=None)
        == "profile verified on 1.2.3, and its version is not known: the program did not print it"
    )
    assert drift(None, verified="1.2.3", since=None) is None, "it was not asked yet"


async def test_what_is_not_there_has_no_version(tmp_path: Path) -> None:
    (tmp_path / "versions.json").write_text('[["/x", 1]]')
    reader = VersionReader(tmp_path / "versions.json")
    assert await read(reader, tmp_path / "nothing") is None
    noted = tmp_path / "no-program"
    noted.write_text("1.2.3")
    assert await read(reader, noted) is None


async def test_a_pattern_says_where_it_stands(tmp_path: Path) -> None:
    file = program(tmp_path, "echo 'WARNING: 0.0.1 is old'; echo 'tool-cli 7.1'")
    check = VersionCheck(args=["-V"], pattern=r"^tool-cli (?P<version>\S+)")
    assert await read(VersionReader(tmp_path / "versions.json"), file, check) == "7.1"
