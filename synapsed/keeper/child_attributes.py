"""Attributes that a shell gives its children besides the environment: for the program alone, just before its exec.

What may not be given (a lower nice value, limits above the hard ones, CPUs that are not there) is given as far as it
may, and told in words.
"""

import os
import resource

from .spec import Spec

_OOM = "/proc/self/oom_score_adj"

_ALL_CPUS = range(4096)
"""The kernel leaves out those that are not there."""

_MEMORY = ("AS", "DATA", "RSS", "STACK")
"""Limits that come last: under them there may be no room for anything more."""


def give(spec: Spec) -> list[str]:
    """Give this process, the child, what `spec` says. Returns what it could not have."""
    os.umask(spec.umask)
    told = []
    if spec.oom_score_adj is not None:
        _go_first(spec.oom_score_adj)
    if spec.cpus is not None:
        told += _cpus(spec.cpus)
    if spec.nice is not None:
        told += _nice(spec.nice)
    limits = dict(spec.rlimits)
    if spec.open_files and "NOFILE" not in limits:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        limits["NOFILE"] = _lower(spec.open_files, soft), hard
    for name in sorted(limits, key=lambda name: (name in _MEMORY, name)):
        told += _limit(name, *limits[name])
    return told


def _go_first(wanted: int) -> None:
    """Raises this process's `oom_score_adj` to `wanted`, and never lowers it."""
    try:
        with open(_OOM) as file:
            has = int(file.read())
        if has < wanted:
            with open(_OOM, "w") as file:
                file.write(str(wanted))
    except (OSError, ValueError):
        pass  # there is no such thing here


def _nice(wanted: int) -> list[str]:
    if os.getpriority(os.PRIO_PROCESS, 0) != wanted:
        try:
            os.setpriority(os.PRIO_PROCESS, 0, wanted)
        except OSError:
            return [f"nice {wanted} (it has {os.getpriority(os.PRIO_PROCESS, 0)})"]
    return []


def _cpus(wanted: list[int]) -> list[str]:
    """`wanted`: an empty list for all."""
    if not hasattr(os, "sched_setaffinity"):
        return []
    try:  # noqa: SIM105 - contextlib stays unimported
        os.sched_setaffinity(0, wanted or _ALL_CPUS)
    except OSError:
        pass  # it may have none of them, and keeps its own
    has = os.sched_getaffinity(0)
    return [] if has.issuperset(wanted) else [f"CPUs {_listed(set(wanted) - has)} (it has {_listed(has)})"]


def _listed(cpus: set[int]) -> str:
    return ",".join(map(str, sorted(cpus)[:16])) + (",…" if len(cpus) > 16 else "")


def _limit(name: str, soft: int, hard: int) -> list[str]:
    number = getattr(resource, f"RLIMIT_{name}", None)
    if number is None:
        return []  # this platform has no such limit
    try:
        resource.setrlimit(number, (soft, hard))
    except (OSError, ValueError):
        top = resource.getrlimit(number)[1]
        try:  # noqa: SIM105 - contextlib stays unimported
            resource.setrlimit(number, (_lower(soft, hard, top), _lower(hard, top)))
        except (OSError, ValueError):
            pass  # what it has is told below
    has = resource.getrlimit(number)
    if has == (soft, hard):
        return []
    return [f"limit {name} {_pair((soft, hard))} (it has {_pair(has)})"]


def _lower(*values: int) -> int:
    """The lowest of these limits."""
    finite = [value for value in values if value != resource.RLIM_INFINITY]
    return min(finite, default=resource.RLIM_INFINITY)


def _pair(limit: tuple[int, int]) -> str:
    soft, hard = ("unlimited" if value == resource.RLIM_INFINITY else str(value) for value in limit)
    return soft if soft == hard else f"{soft} of {hard}"
