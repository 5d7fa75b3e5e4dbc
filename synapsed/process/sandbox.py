"""Gives up permanently the rights that a process which only computes does not need: to files, the network, other
processes, memory.

It is for processes that feed hostile bytes to native code. It leaves out protections that the system does not have, and
reports those that took effect:

=====================  ============  ==================================================================================
protection             where         keeps the process from
=====================  ============  ==================================================================================
limits                 everywhere    opening a file or a socket, more memory and time than it is given, a core dump,
                                     and, unless it runs as root, starting another process
no new privileges      Linux         gaining rights from a program that it starts
undumpable             Linux         being read by other processes of its user, and leaving its memory in a dump
landlock               Linux 5.13    every file; from 6.7 on TCP; from 6.12 on signals and abstract sockets of others
seccomp                Linux, on     every system call except those that read, write, close, wait, return the time and
                       x86-64, ARM64 manage its own memory
=====================  ============  ==================================================================================

Open files stay open. Modules that are not imported yet cannot be imported any more.
"""

import ctypes
import errno
import json
import os
import platform
import resource
import struct
import sys
from typing import Final

MEMORY: Final = 1 << 30
"""Bytes of address space: libraries count, and the largest screen takes a few hundred megabytes."""

# Read into a variable so that mypy checks both branches on every platform.
_LINUX = sys.platform.startswith("linux")

# --- include/uapi/linux: prctl.h, landlock.h, seccomp.h, audit.h, filter.h ---

_PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS = 4, 38
_CREATE_RULESET, _RESTRICT_SELF, _SECCOMP = 444, 446, {"x86_64": 317, "aarch64": 277}
_RULESET_VERSION, _SET_MODE_FILTER = 1, 1
_FILES = {1: (1 << 13) - 1, 2: 1 << 13, 3: 1 << 14, 5: 1 << 15}
"""Rights to files that each version of landlock has added; all of them are denied."""
_NETWORK_SINCE, _NETWORK, _SCOPES_SINCE, _SCOPES = 4, 0b11, 6, 0b11

_LOAD, _JUMP_EQUAL, _RETURN = 0x20, 0x15, 0x06
_NUMBER_AT, _ARCHITECTURE_AT = 0, 4
_ALLOW, _KILL, _REFUSE = 0x7FFF0000, 0x80000000, 0x00050000 | errno.EPERM

_ARCHITECTURES: Final = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_CALLS: Final = {
    "read": (0, 63),
    "write": (1, 64),
    "close": (3, 57),
    "fstat": (5, 80),
    "poll": (7, None),
    "ppoll": (271, 73),
    "lseek": (8, 62),
    "mmap": (9, 222),
    "mprotect": (10, 226),
    "munmap": (11, 215),
    "brk": (12, 214),
    "mremap": (25, 216),
    "madvise": (28, 233),
    "rt_sigaction": (13, 134),
    "rt_sigprocmask": (14, 135),
    "rt_sigreturn": (15, 139),
    "sigaltstack": (131, 132),
    "readv": (19, 65),
    "writev": (20, 66),
    "sched_yield": (24, 124),
    "nanosleep": (35, 101),
    "clock_nanosleep": (230, 115),
    "clock_gettime": (228, 113),
    "gettimeofday": (96, 169),
    "getpid": (39, 172),
    "gettid": (186, 178),
    "getrusage": (98, 165),
    "futex": (202, 98),
    "restart_syscall": (219, 128),
    "getrandom": (318, 278),
    "exit": (60, 93),
    "exit_group": (231, 94),
}
"""Allowed calls by their numbers on x86-64 and ARM64: reading and writing open files, own memory, time, the end."""


class _Instruction(ctypes.Structure):
    _fields_ = (
        ("code", ctypes.c_uint16),
        ("if_true", ctypes.c_uint8),
        ("if_false", ctypes.c_uint8),
        ("operand", ctypes.c_uint32),
    )


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_uint16), ("instructions", ctypes.POINTER(_Instruction)))


def give_up_rights(*, memory: int = MEMORY, cpu_s: int | None = None, files: int = 0) -> frozenset[str]:
    """Gives up the rights, and returns the names of the protections above that took effect. The process must have one
    thread. `cpu_s`: the process is ended after this many seconds of computing, however long a busy machine takes for
    them. `files`: descriptors below this number may be opened, because `poll` needs that limit."""
    held = set()
    libc = ctypes.CDLL(None, use_errno=True)
    if _LINUX:
        if libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0) == 0:
            held.add("undumpable")
        if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0:  # the filters need it
            held.add("no new privileges")
            if _deny_files(libc):  # this opens a file
                held.add("landlock")
    if _limit(memory, cpu_s, files):
        held.add("limits")
    if "no new privileges" in held and _deny_calls(libc):
        held.add("seccomp")
    return frozenset(held)


def _limit(memory: int, cpu_s: int | None, files: int) -> bool:
    limits = {
        resource.RLIMIT_CORE: (0, 0),
        resource.RLIMIT_NPROC: (0, 0),
        resource.RLIMIT_NOFILE: (files, files),
        resource.RLIMIT_AS: (memory, memory),
    }
    if cpu_s is not None:
        limits[resource.RLIMIT_CPU] = (cpu_s, cpu_s + 1)  # SIGXCPU comes first: SIGKILL looks as if others sent it
    held = True
    for limit, wanted in limits.items():
        hard = resource.getrlimit(limit)[1]
        soft, most = wanted if hard == resource.RLIM_INFINITY else (min(one, hard) for one in wanted)
        try:
            resource.setrlimit(limit, (soft, most))
        except (OSError, ValueError):  # macOS takes no limit of the address space
            held = False
    return held


def _deny_files(libc: ctypes.CDLL) -> bool:
    """Denies all rights that landlock handles, by a ruleset without rules. Returns True if it took effect."""
    version = libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _RULESET_VERSION)
    if version < 1:
        return False
    rights = [sum(bits for since, bits in _FILES.items() if since <= version)]
    if version >= _NETWORK_SINCE:
        rights.append(_NETWORK)
    if version >= _SCOPES_SINCE:
        rights.append(_SCOPES)
    wanted = struct.pack(f"<{len(rights)}Q", *rights)
    ruleset = libc.syscall(_CREATE_RULESET, wanted, ctypes.c_size_t(len(wanted)), 0)
    if ruleset < 0:
        return False
    held = libc.syscall(_RESTRICT_SELF, ruleset, 0) == 0
    os.close(ruleset)
    return bool(held)


def _deny_calls(libc: ctypes.CDLL) -> bool:
    """Makes each call that is not allowed fail with EPERM; one with another architecture's numbers ends the process."""
    machine = platform.machine()
    if machine not in _ARCHITECTURES or sys.maxsize < 1 << 32:  # a process of 32 bits has other numbers
        return False
    column = list(_ARCHITECTURES).index(machine)
    allowed = [number for numbers in _CALLS.values() if (number := numbers[column]) is not None]
    program = [
        (_LOAD, 0, 0, _ARCHITECTURE_AT),
        (_JUMP_EQUAL, 1, 0, _ARCHITECTURES[machine]),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER_AT),
        *((_JUMP_EQUAL, len(allowed) - index, 0, number) for index, number in enumerate(allowed)),
        (_RETURN, 0, 0, _REFUSE),
        (_RETURN, 0, 0, _ALLOW),
    ]
    instructions = (_Instruction * len(program))(*(_Instruction(*line) for line in program))
    filter_ = _Program(len(program), instructions)
    return bool(libc.syscall(_SECCOMP[machine], _SET_MODE_FILTER, 0, ctypes.byref(filter_)) == 0)


def main() -> None:
    """Prints the protections that take effect on this machine, as a JSON array."""
    sys.stdout.write(json.dumps(sorted(give_up_rights(files=1))))
