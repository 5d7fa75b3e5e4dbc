"""Finds an offered version: that of a wheel, which is read and not run, or of the index that the installer knows."""

import json
import lzma
import re
import subprocess
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from synapsectl.errors import REFUSED, CtlError, UsageError
from synapsectl.upgrading.installation import NAME, Installation, Installer
from synapsed import own_python
from synapsed.process.installed import COMMIT_FILE, COMMIT_LENGTH, VERSIONS_FILE

INDEX_S = 60.0
"""Seconds for an index to answer."""
MEMBER_MAX = 1 << 20
"""Bytes that are read of a file in a wheel."""
VERSION_MAX = 64
"""Characters of a version."""
_VERSION = re.compile(r"(?P<release>\d+(?:\.\d+)*)(?:\.?(?P<stage>a|b|rc|dev|post)(?P<number>\d+))?(?:\+[\w.]+)?")
_UNREADABLE = (OSError, ValueError, KeyError, RuntimeError, EOFError)
"""Errors of a damaged archive, besides those of its compression."""
_STAGES = ("dev", "a", "b", "rc", None, "post")
_OFFERED = re.compile(rf"^ *\+ {NAME}==(\S+)", re.MULTILINE)
"""Line of `uv pip install --dry-run` with the version that it would install."""

Run = Callable[[Sequence[str]], tuple[int, str, str]]
"""Runs a command; returns exit code, stdout, stderr. Raises OSError or SubprocessError."""


class NoIndex(CtlError):
    """The index did not say which version it has."""

    exit_code = REFUSED
    code = "NO_INDEX"


class Offer(NamedTuple):
    """A version that could be installed. `numbers` are those of `synapsed version --json`, empty if they are
    unknown."""

    version: str
    origin: str
    """`wheel` or `index`."""
    commit: str = ""
    file: str = ""
    numbers: Mapping[str, Any] = {}


def compared(version: str, other: str) -> int:
    """Returns a number below, equal to or above 0, as `version` is older than, the same as or newer than `other`.
    Raises ValueError for a text that is no version."""
    one, two = _key(version), _key(other)
    return (one > two) - (one < two)


def _key(version: str) -> tuple[list[int], int, int]:
    found = _VERSION.fullmatch(version)
    if found is None or len(version) > VERSION_MAX:
        raise ValueError(f"not a version: {version[:VERSION_MAX]!r}")
    numbers = [int(number) for number in found["release"].split(".")]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return numbers, _STAGES.index(found["stage"]), int(found["number"] or 0)


def of_wheel(file: str) -> Offer:
    """Returns the version in a wheel, from the wheel's own files. Raises UsageError."""
    path = Path(file)
    if not path.is_file():
        raise UsageError(f"{file} is no file: name a wheel, as in --wheel dist/synapsed-1.2.3-py3-none-any.whl")
    try:
        with zipfile.ZipFile(path) as wheel:
            names = wheel.namelist()
            metadata = next((name for name in names if re.fullmatch(r"[^/]+\.dist-info/METADATA", name)), "")
            headers = _headers(_member(wheel, metadata)) if metadata else {}
            commit = _member(wheel, f"{NAME}/{COMMIT_FILE}") if f"{NAME}/{COMMIT_FILE}" in names else ""
            numbers = _member(wheel, f"{NAME}/{VERSIONS_FILE}") if f"{NAME}/{VERSIONS_FILE}" in names else "{}"
    except (*_UNREADABLE, lzma.LZMAError, zlib.error, zipfile.BadZipFile) as error:
        raise UsageError(f"{file} cannot be read as a wheel ({error}): build or download it again") from None
    if headers.get("name") != NAME:
        of = f"of {headers['name'][:VERSION_MAX]!r}" if "name" in headers else "no wheel"
        raise UsageError(f"{file} is {of}, and not a wheel of {NAME}: name that of {NAME}")
    version = headers.get("version", "")
    _checked(version, file)
    commit = commit.strip()[:COMMIT_LENGTH]
    known = commit if re.fullmatch(r"[0-9a-f]*", commit) else ""
    return Offer(version, "wheel", known, str(path.resolve()), _numbers(numbers))


def _member(wheel: zipfile.ZipFile, name: str) -> str:
    """Returns the text of a file in the wheel. Raises ValueError if it is too large or no text."""
    with wheel.open(name) as member:
        data = member.read(MEMBER_MAX + 1)
    if len(data) > MEMBER_MAX:
        raise ValueError(f"{name} in it is larger than {MEMBER_MAX} bytes")
    return data.decode()


def _headers(metadata: str) -> dict[str, str]:
    lines = metadata.partition("\n\n")[0].splitlines()
    return {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in reversed(lines))}


def _numbers(text: str) -> Mapping[str, Any]:
    """Returns the numbers if all that are compared are there; else an empty mapping."""
    try:
        told = json.loads(text)
        asked = (told["store"]["schema"], told["store"]["oldest"], told["keeper"]["protocol"], told["keeper"]["oldest"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return {}
    found: Mapping[str, Any] = told if all(isinstance(number, int) for number in asked) else {}
    return found


def of_index(installed: Installation, run: Run) -> Offer:
    """Asks the index that the installer is configured with for the newest version that this Python takes; nothing is
    installed, and nothing is built. Raises NoIndex."""
    by_uv = installed.installer in (Installer.UV_TOOL, Installer.UVX, Installer.UV)
    asked = (_by_uv, _by_pip) if by_uv else (_by_pip, _by_uv)
    reasons = []
    for ask in asked:
        try:
            return Offer(_checked(ask(installed, run), "the index"), "index")
        except (NoIndex, UsageError) as error:
            reasons.append(str(error))
    raise NoIndex(
        f"the index did not say which {NAME} it has: {'; '.join(reasons)}; look at a file instead: "
        "'synapsectl upgrade --check --wheel FILE'"
    )


def _checked(version: str, place: str) -> str:
    try:
        compared(version, version)
    except ValueError:
        raise UsageError(
            f"{place} names {version[:VERSION_MAX]!r} as its version, which is not one: use another file"
        ) from None
    return version


def _by_uv(installed: Installation, run: Run) -> str:
    command = ["uv", "pip", "install", "--python", installed.python, "--dry-run", "--no-deps", "--upgrade"]
    # Without this, uv keeps the installed version, and does not look at the index.
    more = ("--reinstall-package", NAME, "--only-binary", NAME, "--color", "never", NAME)
    code, out, err = _ran(run, [*command, *more])
    if code == 0 and (found := _OFFERED.search(out + err)):
        return found[1]
    raise NoIndex(f"uv: {_last(err)}")


def _by_pip(installed: Installation, run: Run) -> str:
    asked = ("install", "--disable-pip-version-check", "--dry-run")
    command = own_python.installed("pip", *asked, python=installed.python)
    more = ("--no-deps", "--ignore-installed", "--only-binary", NAME, "--quiet", "--report", "-", NAME)
    code, out, err = _ran(run, [*command, *more])
    try:
        if code == 0:
            return str(json.loads(out)["install"][0]["metadata"]["version"])
    except (ValueError, KeyError, IndexError, TypeError):
        raise NoIndex("pip: its report cannot be read") from None
    raise NoIndex(f"pip: {_last(err)}")


def _ran(run: Run, command: Sequence[str]) -> tuple[int, str, str]:
    try:
        return run(command)
    except (OSError, subprocess.SubprocessError) as error:
        return 1, "", f"{command[0]} cannot be asked: {error}"


def _last(err: str) -> str:
    return (err.strip().splitlines() or ["it said nothing"])[-1].strip().removeprefix("ERROR: ")


def run_program(command: Sequence[str]) -> tuple[int, str, str]:
    """Runs an installer with the caller's environment, which has the installer's configuration, and not in the current
    folder, which may have that of a project."""
    done = subprocess.run(
        command,
        cwd=own_python.PACKAGES,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=INDEX_S,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr
