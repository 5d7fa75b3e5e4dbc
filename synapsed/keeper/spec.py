"""The launch specification: one JSON object on the keeper's standard input, so that secrets are on no command line."""

import json
import os
import resource

FORMAT = 1
"""Version of the launch specification."""

MAX_CELLS = 4096
"""Columns or rows that a window has at most; more is a mistake of the caller."""

MAX_CPU = 65_535
"""The highest number of a processor."""


class LaunchRefused(Exception):
    """Error of a launch that cannot be done. `code` is stable (docs/keeper-protocol.md), the text is for people."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Spec:
    """The program to run, its arguments, environment and limits, and the places of its files. Paths are absolute."""

    __slots__ = (
        "argv",
        "cols",
        "cpus",
        "cwd",
        "env",
        "launch_id",
        "linger_s",
        "nice",
        "oom_score_adj",
        "open_files",
        "retention",
        "rlimits",
        "rows",
        "socket",
        "spool_at_least",
        "state_dir",
        "sweep_on_exit",
        "term_grace_s",
        "transport",
        "umask",
    )

    def __init__(self, raw: bytes) -> None:
        """Reads the JSON object `raw`. Raises LaunchRefused `bad_spec`."""
        try:
            fields = json.loads(raw)
        except ValueError as error:
            raise _bad(f"the launch specification is no JSON: {error}") from None
        if not isinstance(fields, dict) or fields.get("format") != FORMAT:
            raise _bad(f"the launch specification must be an object with format {FORMAT}")
        self.launch_id = _text(fields, "launch_id")
        self.argv = _texts(fields, "argv")
        self.env = _environment(fields)
        self.env["SYNAPSE_LAUNCH_ID"] = self.launch_id
        self.cwd = _path(fields, "cwd")
        self.state_dir = _path(fields, "state_dir")
        self.socket = _path(fields, "socket")
        self.transport = _text(fields, "transport", "pty")
        if self.transport not in ("pty", "pipes"):
            raise _bad("transport must be 'pty' or 'pipes'")
        self.cols = _integer(fields, "cols", 1, MAX_CELLS, 80)
        self.rows = _integer(fields, "rows", 1, MAX_CELLS, 24)
        self.umask = _integer(fields, "umask", 0, 0o777, 0o022)
        self.nice = _optional(fields, "nice", -20, 20)
        self.oom_score_adj = _optional(fields, "oom_score_adj", -1000, 1000)
        self.cpus = _cpus(fields)
        self.rlimits = _rlimits(fields)
        self.spool_at_least = _integer(fields, "spool_at_least", 0, 1 << 62, 0)
        self.retention = _integer(fields, "retention", 1, 1 << 50, 64 * 1024 * 1024)
        self.linger_s = _integer(fields, "linger_s", 0, 10 * 365 * 86400, 7 * 86400)
        self.term_grace_s = _integer(fields, "term_grace_s", 0, 3600, 5)
        self.open_files = _integer(fields, "open_files", 0, 1 << 40, 0)
        self.sweep_on_exit = fields.get("sweep_on_exit", True) is True

    @property
    def channels(self) -> tuple[str, ...]:
        """Names of the output channels; the first is the default."""
        return ("pty",) if self.transport == "pty" else ("stdout", "stderr")

    def spool_dir(self, channel: str) -> str:
        """Returns the directory of a channel's spool: `spool`, and `spool-stderr` for the second channel of pipes."""
        return os.path.join(self.state_dir, "spool-stderr" if channel == "stderr" else "spool")

    def file(self, name: str) -> str:
        return os.path.join(self.state_dir, name)


def _bad(message: str) -> LaunchRefused:
    return LaunchRefused("bad_spec", message)


def _text(fields: dict[str, object], name: str, default: str | None = None) -> str:
    value = fields.get(name, default)
    if not isinstance(value, str) or not value or "\0" in value:
        raise _bad(f"{name} must be a non-empty string without NUL")
    return value


def _path(fields: dict[str, object], name: str) -> str:
    value = _text(fields, name)
    if not os.path.isabs(value):
        raise _bad(f"{name} must be an absolute path, not {value!r}")
    return value


def _texts(fields: dict[str, object], name: str) -> list[str]:
    value = fields.get(name)
    if not isinstance(value, list) or not value or not value[0]:
        raise _bad(f"{name} must be a non-empty list of strings")
    if not all(isinstance(item, str) and "\0" not in item for item in value):
        raise _bad(f"{name} must hold strings without NUL")
    return value


def _environment(fields: dict[str, object]) -> dict[str, str]:
    value = fields.get("env")
    if not isinstance(value, dict):
        raise _bad("env must be an object")
    for key, text in value.items():
        if not key or "=" in key or not isinstance(text, str) or "\0" in key + text:
            raise _bad(f"env: {key!r} is no variable with a string value")
    return dict(value)


def _optional(fields: dict[str, object], name: str, low: int, high: int) -> int | None:
    return None if fields.get(name) is None else _integer(fields, name, low, high, low)


def _cpus(fields: dict[str, object]) -> list[int] | None:
    """Returns the CPUs; an empty list stands for all."""
    value = fields.get("cpus")
    if value is None:
        return None
    if value == "all":
        return []
    if not isinstance(value, list) or not value:
        raise _bad("cpus must be 'all' or a list of processors")
    return [_integer({"cpus": cpu}, "cpus", 0, MAX_CPU, 0) for cpu in value]


def _rlimits(fields: dict[str, object]) -> dict[str, tuple[int, int]]:
    value = fields.get("rlimits", {})
    if not isinstance(value, dict):
        raise _bad("rlimits must be an object")
    return {name: (_bound(pair, 0), _bound(pair, 1)) for name, pair in value.items()}


def _bound(pair: object, place: int) -> int:
    if not isinstance(pair, list) or len(pair) != 2:
        raise _bad("rlimits: a limit is [soft, hard]")
    if pair[place] is None:
        return resource.RLIM_INFINITY
    return _integer({"rlimits": pair[place]}, "rlimits", 0, (1 << 63) - 1, 0)


def _integer(fields: dict[str, object], name: str, low: int, high: int, default: int) -> int:
    value = fields.get(name, default)
    if type(value) is not int or not low <= value <= high:
        raise _bad(f"{name} must be an integer from {low} to {high}")
    return value
