"""The process that daemons of tests are forked from (`warm`): it imports the daemon's modules, and runs none of them.

`python -m tests.support.forking FD`: on that socket, in lines of JSON, it is asked to fork one, or whether one has
ended.
"""

import contextlib
import gc
import json
import os
import resource
import signal
import socket
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_AT_ONCE = 1 << 16
_FILES = 3
"""Come with a job: its stdin, stdout and stderr."""


@dataclass(frozen=True, slots=True)
class Job:
    arguments: list[str]
    env: dict[str, str]
    cwd: str
    files: list[int]


def serve(sock: socket.socket) -> Job | None:
    """Answers what it is asked. Returns the job in the process that is to do it, and None in this one at the end."""
    for question, files in _questions(sock):
        if "poll" in question:
            pid, status = os.waitpid(question["poll"], os.WNOHANG)
            answer = os.waitstatus_to_exitcode(status) if pid else None
        elif "cpu" in question:
            used = resource.getrusage(resource.RUSAGE_CHILDREN)
            answer = used.ru_utime + used.ru_stime
        elif (answer := os.fork()) == 0:
            return Job(question["arguments"], question["env"], question["cwd"], files)
        for fd in files:
            os.close(fd)
        sock.sendall(json.dumps({"number": question["number"], "answer": answer}).encode() + b"\n")
    return None


def _questions(sock: socket.socket) -> Iterator[tuple[dict[str, Any], list[int]]]:
    held, files = b"", list[int]()
    while True:
        while b"\n" not in held:
            data, more, _, _ = socket.recv_fds(sock, _AT_ONCE, _FILES)
            if not data:
                return
            held, files = held + data, files + more
        line, _, held = held.partition(b"\n")
        yield json.loads(line), files
        files = []


def become(job: Job) -> None:
    """Make this process what it would be if it had been started for `job`."""
    for number, fd in enumerate(job.files):
        os.dup2(fd, number)
        os.close(fd)
    os.environ.clear()
    os.environ.update(job.env)
    os.chdir(job.cwd)
    sys.argv = ["synapsed", *job.arguments]
    signal.signal(signal.SIGINT, signal.default_int_handler)


def main() -> int:
    gc.disable()  # as the daemon does it
    from synapsed import cli, daemon  # noqa: F401
    from synapsed.config import paths  # noqa: F401
    from synapsed.parts import loading
    from synapsed.parts.a2a import endpoints  # noqa: F401 - a daemon imports it when it is first asked
    from synapsed.process import logging, open_files  # noqa: F401
    from synapsed.profiles import library
    from tests.support import spare_screens

    loading.load_late()
    known = library.ProfileLibrary.builtin()
    for name in known.names():
        known.find(name)  # compiles the expressions of all profiles, which `re` keeps
    gc.freeze()
    gc.enable()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # where it is pressed at a terminal, the tests end their daemons first
    with contextlib.closing(socket.socket(fileno=int(sys.argv[1]))) as sock:
        job = serve(sock)
    if job is None:
        return 0
    become(job)
    if job.arguments[:1] == ["run"]:
        spare_screens.prepare()
    return cli.main(job.arguments)


if __name__ == "__main__":
    sys.exit(main())
