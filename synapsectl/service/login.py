"""Asks the login shell for its PATH, and for the places of programs. No shell starts a service, and the most repeated
complaint about such services is that they do not find the programs that every shell finds."""

import json
import os
import pwd
import secrets
import shlex
import shutil
import signal
import subprocess
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from synapsed import own_python

SHELL_TIMEOUT_S = 20.0
"""Seconds for a login shell's start-up files; some install things."""

BASE_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""PATH with which a login shell is started, as by login(1)."""

CARRIED = ("HOME", "USER", "LOGNAME", "LANG", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME")
"""Variables of the caller that its login shell would have as well."""

_REPORT = "import json,os;print(json.dumps(dict(os.environ)))"


class ProgramPath(NamedTuple):
    """A program that an agent needs. `path` is absolute; None: it was not found. `remark` describes a problem with
    it."""

    name: str
    path: str | None
    remark: str = ""


class Login(NamedTuple):
    """Answers of the login shell. `problem`: the reason why it gave no answers, for people; the caller's own PATH is
    used then."""

    shell: str
    path: str
    environ: Mapping[str, str]
    programs: tuple[ProgramPath, ...]
    problem: str = ""


def _own_shell() -> str:
    """Returns this user's shell; empty for a user that the system does not know."""
    try:
        return pwd.getpwuid(os.getuid()).pw_shell
    except KeyError:
        return ""


def ask_login_shell(names: Iterable[str], environ: Mapping[str, str]) -> Login:
    """Starts the login shell without this shell's environment, and asks it for the programs `names`.

    A program that only this shell's PATH has is taken from there, and a program that is an alias from the path in the
    alias: in both cases its directory stands at the end of `path`.
    """
    shell = environ.get("SHELL") or _own_shell() or "/bin/sh"
    wanted = list(dict.fromkeys(names))
    try:
        answers, told = _ask(shell, wanted, environ)
        problem = ""
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        answers, told = {}, {"PATH": environ.get("PATH", BASE_PATH)}
        problem = f"{shell} -lic did not answer ({error}); the PATH of this shell is taken"
    places = [place for place in told.get("PATH", "").split(os.pathsep) if place.startswith("/")]
    programs = []
    for name in wanted:
        program = _find(name, answers.get(name, ""), os.pathsep.join(places), environ)
        programs.append(program)
        if program.path is not None and "/" not in name and shutil.which(name, path=os.pathsep.join(places)) is None:
            places.append(os.path.dirname(program.path))  # noqa: PTH120 - a path as text, for PATH
    return Login(shell, os.pathsep.join(dict.fromkeys(places)), told, tuple(programs), problem)


def _ask(shell: str, names: list[str], environ: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    mark = f"synapsectl-{secrets.token_hex(8)}"
    say = f"printf '%s\\n' {mark}"
    plain = [name for name in names if "/" not in name]
    steps = [f"command -v {shlex.quote(name)}" for name in plain]
    steps.append(f"{shlex.join(own_python.alone('-c', _REPORT))}")
    script = "; ".join([say, *(f"{step}; {say}" for step in steps)])
    clean = {key: environ[key] for key in CARRIED if key in environ}
    process = subprocess.Popen(
        [shell, "-lic", script],
        env={**clean, "SHELL": shell, "PATH": BASE_PATH, "TERM": "dumb"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        errors="surrogateescape",
        start_new_session=True,  # an interactive shell takes the terminal that it finds
    )
    try:
        output, _ = process.communicate(timeout=SHELL_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise
    parts = output.split(f"{mark}\n")
    if len(parts) != len(steps) + 2:
        raise ValueError(f"it ended with {process.returncode}")
    *found, told = (part.strip() for part in parts[1:-1])
    return dict(zip(plain, found, strict=True)), json.loads(told)


def _find(name: str, answer: str, path: str, environ: Mapping[str, str]) -> ProgramPath:
    if "/" in name:
        given = Path(name).expanduser()
        runs = given.is_absolute() and given.is_file() and os.access(given, os.X_OK)
        return ProgramPath(name, str(given) if runs else None)
    if answer.startswith("/") and "\n" not in answer:
        return ProgramPath(name, answer)
    if (found := shutil.which(name, path=path)) is not None:
        return ProgramPath(name, found)
    if (target := _alias(answer)) is not None:
        if os.path.basename(target) == name:  # noqa: PTH119 - a path as text
            return ProgramPath(name, target, "an alias in the login shell; its directory is put on PATH")
        return ProgramPath(
            name, None, f"an alias in the login shell: write command = {json.dumps(target)} for the agent"
        )
    if (found := shutil.which(name, path=environ.get("PATH", ""))) is not None:
        return ProgramPath(name, os.path.abspath(found), "on this shell's PATH only; its directory is put on PATH")  # noqa: PTH100
    return ProgramPath(name, None)


def _alias(answer: str) -> str | None:
    """Returns the absolute path in `alias NAME='/the/path …'`."""
    _, equals, value = answer.removeprefix("alias ").partition("=")
    with suppress(ValueError):
        words = shlex.split(" ".join(shlex.split(value))) if equals else []
        if words and words[0].startswith("/") and os.access(words[0], os.X_OK):
            return words[0]
    return None
