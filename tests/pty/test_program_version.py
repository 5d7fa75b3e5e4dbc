"""The version of a program, asked of fake programs in files."""

import os
from pathlib import Path

import pytest

from synapsed.pty import program_version
from synapsed.pty.program_version import VersionReader
from synapsed.variants import VersionCheck

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
