"""`env_file`: variables in lines of `NAME=value`, as shells and service managers read them."""

import re
from pathlib import Path

from synapsed.errors import ConfigError
from synapsed.model.records import AgentRecord

SIZE_MAX = 1 << 20
"""Bytes of such a file."""

_LINE = re.compile(r"(?:export\s+)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)=(?P<value>.*)")


def with_env_file(record: AgentRecord, env_file: str | None, base: Path) -> AgentRecord:
    """`record` with the variables of `env_file` (`~` allowed, relative to `base`) below its own. Raises ConfigError."""
    if env_file is None:
        return record
    found = read_env_file(base / Path(env_file).expanduser())
    return record.model_copy(update={"extra_env": {**found, **record.extra_env}})


def read_env_file(path: Path) -> dict[str, str]:
    """The variables of `path`. Empty lines and those that begin with `#` are passed over; a value in quotes is what is
    between them. Nothing is expanded. Raises ConfigError, which names file and line and never shows a value."""
    try:
        if path.stat().st_size > SIZE_MAX:
            raise ConfigError(f"{path}: more than {SIZE_MAX} bytes are no file of variables", file=str(path))
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"env_file {path}: {error}", file=str(path)) from None
    found = {}
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        match = _LINE.fullmatch(text)
        if match is None or "\0" in text:
            raise ConfigError(f"{path}:{number}: a line is NAME=value", file=str(path))
        found[match["name"]] = _unquoted(match["value"])
    return found


def _unquoted(value: str) -> str:
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        return value[1:-1]
    return value
