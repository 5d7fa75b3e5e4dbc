"""Starts a process without blocking the event loop, sends it one input, and returns its output.

`subprocess` and `os.posix_spawn` hold the interpreter's lock (GIL) until the child has executed its program: on a busy
machine the whole daemon stands still meanwhile. This module calls the C library's `posix_spawn` by ctypes, in a thread
and without the lock, so that only that thread waits.
"""

import asyncio
import contextlib
import ctypes
import os
import signal
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import IO, BinaryIO, Final

AT_ONCE: Final = 8
"""Number of children that run at a time; a further one is started when one of them has ended."""
_THREADS: Final = ThreadPoolExecutor(AT_ONCE, "spawn")
_LIBC: Final = ctypes.CDLL(None)
_ACTIONS_SIZE: Final = 1024
"""Bytes for a `posix_spawn_file_actions_t`; no C library needs more than 80."""
_STANDARD: Final = range(3)
_ENDS_S: Final = 0.001
"""Seconds between two looks at a child that has closed its output and is about to end."""


@dataclass(frozen=True, slots=True)
class ChildEnd:
    """The exit code of a child (negative: the signal), and its output."""

    code: int
    output: bytes
    errors: bytes


class Child:
    """A process of `command`, whose first word is a path. It gets `environ`, starts in `/`, inherits no open file."""

    def __init__(self, command: Sequence[str], environ: Mapping[str, str]) -> None:
        self._command = [os.fsencode(word) for word in command]
        self._environ = [os.fsencode(f"{name}={value}") for name, value in environ.items()]
        self._lock = threading.Lock()
        self._pid: int | None = None
        """The child's pid from its start until it is reaped, else None."""
        self._unwanted = threading.Event()

    async def talk(self, told: bytes = b"") -> ChildEnd:
        """Starts the child, writes `told` to its input, and waits for its end. Raises OSError if the child cannot be
        started. If the caller is cancelled, the child is killed."""
        talking = asyncio.get_running_loop().run_in_executor(_THREADS, self._talk, told)
        try:
            return await asyncio.shield(talking)
        except asyncio.CancelledError:
            talking.add_done_callback(asyncio.Future.exception)  # no caller waits for it any more
            self._give_up()
            raise

    def _give_up(self) -> None:
        with self._lock:
            self._unwanted.set()
            if self._pid is not None:
                os.kill(self._pid, signal.SIGKILL)

    # --- in a thread -------------------------------------------------------------------------------------------------

    def _talk(self, told: bytes) -> ChildEnd:
        with contextlib.ExitStack() as opened:
            errors = opened.enter_context(_scratch())  # unlike a pipe, it need not be read while the child writes
            stdin, to_it = _pipe(opened)
            from_it, stdout = _pipe(opened)
            self._start((stdin.fileno(), stdout.fileno(), errors.fileno()))
            stdin.close()
            stdout.close()
            with contextlib.suppress(BrokenPipeError):  # the child has ended before it read all
                to_it.write(told)
            with contextlib.suppress(BrokenPipeError):
                to_it.close()
            output = from_it.read()
            code = self._wait()
            errors.seek(0)
            return ChildEnd(code, output, errors.read())

    def _start(self, files: Sequence[int]) -> None:
        """Starts the child with `files` as standard input, output and error."""
        if self._unwanted.is_set():
            raise ProcessLookupError("it is not wanted any more")
        pid = _spawn(self._command, self._environ, files)
        with self._lock:
            self._pid = pid
            if self._unwanted.is_set():
                os.kill(pid, signal.SIGKILL)

    def _wait(self) -> int:
        while True:
            with self._lock:
                assert self._pid is not None
                pid, status = os.waitpid(self._pid, os.WNOHANG)
                if pid:
                    self._pid = None  # another process may get the number from now on
                    return os.waitstatus_to_exitcode(status)
            time.sleep(_ENDS_S)


def _scratch() -> IO[bytes]:
    """Returns a new file without a name; in memory where that can be, since the folder for files may be gone."""
    if hasattr(os, "memfd_create"):
        return open(os.memfd_create("errors"), "w+b")
    tempfile.tempdir = None  # the folder is found again
    return tempfile.TemporaryFile()


def _pipe(opened: contextlib.ExitStack) -> tuple[BinaryIO, BinaryIO]:
    """Returns the ends of a new pipe, for reading and for writing; `opened` closes them."""
    reader, writer = os.pipe()
    return opened.enter_context(open(reader, "rb")), opened.enter_context(open(writer, "wb"))


def _spawn(command: Sequence[bytes], environ: Sequence[bytes], files: Sequence[int]) -> int:
    """Returns the pid of the new process."""
    pid = ctypes.c_int()
    actions = ctypes.create_string_buffer(_ACTIONS_SIZE)
    _check(_LIBC.posix_spawn_file_actions_init(actions), command)
    try:
        for number, file in enumerate(files):
            _check(_LIBC.posix_spawn_file_actions_adddup2(actions, file, number), command)
        _close_others(actions, command)
        with contextlib.suppress(AttributeError):  # an old C library has no such call; keepers change to / themselves
            _check(_LIBC.posix_spawn_file_actions_addchdir_np(actions, b"/"), command)
        argv = (ctypes.c_char_p * (len(command) + 1))(*command)
        envp = (ctypes.c_char_p * (len(environ) + 1))(*environ)
        _check(_LIBC.posix_spawn(ctypes.byref(pid), command[0], actions, None, argv, envp), command)
    finally:
        _LIBC.posix_spawn_file_actions_destroy(actions)
    return pid.value


def _close_others(actions: "ctypes.Array[ctypes.c_char]", command: Sequence[bytes]) -> None:
    """Makes the child close all files except the first three. Files that Python has opened are closed by the exec, so
    without `closefrom` only the inheritable ones are listed."""
    if hasattr(_LIBC, "posix_spawn_file_actions_addclosefrom_np"):
        _check(_LIBC.posix_spawn_file_actions_addclosefrom_np(actions, len(_STANDARD)), command)
        return
    for number in [int(file.name) for file in Path("/dev/fd").iterdir()]:
        with contextlib.suppress(OSError):  # the fd of the listing itself is closed by now
            if number not in _STANDARD and os.get_inheritable(number):
                _check(_LIBC.posix_spawn_file_actions_addclose(actions, number), command)


def _check(error: int, command: Sequence[bytes]) -> None:
    if error:
        raise OSError(error, os.strerror(error), os.fsdecode(command[0]))
