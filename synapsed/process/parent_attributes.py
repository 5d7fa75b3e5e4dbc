"""Attributes that a process has from its parent besides the environment: umask, nice value, CPUs, resource limits.

It uses the standard library only: the person's tool measures the attributes of its shell with it, and the daemon its
own before it raises its limits.
"""

import contextlib
import os
import resource
from pathlib import Path

ALIASES = frozenset({"OFILE", "VMEM"})
"""Other names of NOFILE and AS."""

HINDERING = ("AS", "CPU", "DATA", "FSIZE", "NPROC", "RSS")
"""Limits under which a daemon fails sooner or later. `open_files` handles NOFILE."""

ENOUGH = {"NOFILE": 1024, "NPROC": 1024}
"""Values that are enough for a daemon."""

OOM_SCORE_ADJ = Path("/proc/self/oom_score_adj")

_ALL_CPUS = range(4096)
"""The kernel ignores CPUs that do not exist, or that this process may not use."""


def usable_cpus() -> int:
    """Returns how many CPUs this process may use: one at least."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def measured() -> dict[str, object]:
    """Returns this process's attributes in the form of `model.attributes.ProcessAttributes`, without those that the
    platform lacks. Call it while there are no other threads: the umask can only be read by setting it."""
    umask = os.umask(0o077)
    os.umask(umask)
    found: dict[str, object] = {
        "umask": umask,
        "nice": os.getpriority(os.PRIO_PROCESS, 0),
        "limits": {
            name: {"soft": _limit_or_none(soft), "hard": _limit_or_none(hard)}
            for name, (soft, hard) in sorted(_limits().items())
        },
    }
    if hasattr(os, "sched_getaffinity"):
        cpus = sorted(os.sched_getaffinity(0))
        found["cpus"] = "all" if len(cpus) >= (os.cpu_count() or 1) else cpus
    with contextlib.suppress(OSError, ValueError):
        found["oom_score_adj"] = int(OOM_SCORE_ADJ.read_text(encoding="ascii"))
    return found


def make_room() -> None:
    """Raises the soft limits under which a daemon would fail to the hard ones."""
    for name in HINDERING:
        with contextlib.suppress(AttributeError, ValueError, OSError):
            number = getattr(resource, f"RLIMIT_{name}")
            hard = resource.getrlimit(number)[1]
            resource.setrlimit(number, (hard, hard))


def become_ordinary() -> None:
    """Sets ordinary priority and all CPUs, as far as this process may: the settings of the process that started it were
    meant for another program."""
    with contextlib.suppress(OSError):
        if os.getpriority(os.PRIO_PROCESS, 0) > 0:
            os.setpriority(os.PRIO_PROCESS, 0, 0)
    if hasattr(os, "sched_setaffinity"):
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, _ALL_CPUS)


def hindrances() -> list[str]:
    """Returns, in words, the attributes of this process that hinder a daemon and that the daemon cannot change."""
    nice = os.getpriority(os.PRIO_PROCESS, 0)
    told = [f"nice {nice}"] if nice > 0 and os.geteuid() != 0 else []
    for name, (_, hard) in sorted(_limits().items()):
        most = _limit_or_none(hard)
        if name in {*HINDERING, *ENOUGH} and most is not None and most < ENOUGH.get(name, most + 1):
            told.append(f"limit {name} {most}")
    return told


def _limits() -> dict[str, tuple[int, int]]:
    names = {name.removeprefix("RLIMIT_") for name in dir(resource) if name.startswith("RLIMIT_")}
    found = {}
    for name in names - ALIASES:
        with contextlib.suppress(ValueError, OSError):  # the kernel is older than the C library
            found[name] = resource.getrlimit(getattr(resource, f"RLIMIT_{name}"))
    return found


def _limit_or_none(value: int) -> int | None:
    return None if value < 0 or value >= resource.RLIM_INFINITY > 0 else value
