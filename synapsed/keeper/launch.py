"""Turns a launch specification into a running keeper: opens its files and its socket, starts the program, and puts the
keeper into the background."""

import fcntl
import json
import os
import resource
import signal
import socket
import sys
import time

from .clients import Listener
from .inputs import Journal
from .processes import become_subreaper
from .program import Keeper
from .spawn import spawn
from .spec import LaunchRefused, Spec
from .spool import OutputChannel, Spool

OWN_FILES = 256
"""The lowest limit of open files for a keeper: it opens files of the spool, of the program and of its clients."""

_USAGE = "usage: keeper --ptyprocess DIR [--foreground] [--spec FILE]"


def main(arguments: list[str]) -> int:
    """Runs the command line that `__main__` describes. Returns the exit status of the launching process; with
    `--foreground`, that of the keeper."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # were it ignored or blocked, as whoever started us may have it, no
    signal.pthread_sigmask(signal.SIG_SETMASK, ())  # end of a child would be seen; and with SIGTERM blocked, no stop
    try:
        ptyprocess_dir, foreground, spec_file = _options(arguments)
        spec = Spec(_read_spec(spec_file))
    except LaunchRefused as error:
        return _fail(error.code, str(error))
    _limit_files(spec.open_files)
    if foreground:
        return _keep(spec, ptyprocess_dir, None)
    return _daemonize(spec, ptyprocess_dir)


def _limit_files(soft: int) -> None:
    """Lowers the soft limit of open files to `soft`, which is what the daemon had at its start, before it raised its
    own; but not below OWN_FILES. 0 changes nothing. The program's own limits are set later, in `spawn`."""
    if soft:
        wanted = max(soft, OWN_FILES)
        now, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if now == resource.RLIM_INFINITY or wanted < now:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _options(arguments: list[str]) -> tuple[str, bool, str | None]:
    ptyprocess_dir = spec_file = None
    foreground = False
    rest = iter(arguments)
    for argument in rest:
        if argument == "--ptyprocess":
            ptyprocess_dir = next(rest, None)
        elif argument == "--spec":
            spec_file = next(rest, "")
        elif argument == "--foreground":
            foreground = True
        else:
            raise LaunchRefused("bad_spec", _USAGE)
    if ptyprocess_dir is None or spec_file == "":
        raise LaunchRefused("bad_spec", _USAGE)
    return ptyprocess_dir, foreground, spec_file


def _read_spec(path: str | None) -> bytes:
    if path is None:
        return sys.stdin.buffer.read()
    try:
        with open(path, "rb") as file:
            raw = file.read()
        os.unlink(path)
    except OSError as error:
        raise LaunchRefused("bad_spec", f"the launch specification cannot be read: {error}") from None
    return raw


def _fail(code: str, message: str) -> int:
    sys.stderr.write(json.dumps({"code": code, "message": message}) + "\n")
    sys.stderr.flush()
    return 1


def _daemonize(spec: Spec, ptyprocess_dir: str) -> int:
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        os.setsid()
        status = 1
        try:
            status = _keep(spec, ptyprocess_dir, writer)
        except BaseException:  # noqa: BLE001 - nothing else would report it: standard error is the keeper's log
            sys.excepthook(*sys.exc_info())
        sys.stderr.flush()
        os._exit(status)  # exit handlers and buffers of before the fork belong to the launcher
    os.close(writer)
    with os.fdopen(reader, "rb") as file:
        report = file.read()
    if report.startswith(b"+"):
        sys.stdout.write(report[1:].decode())
        return 0
    if report.startswith(b"-"):
        sys.stderr.write(report[1:].decode())
        return 1
    return _fail("keeper_failed", f"the keeper ended before the launch was done; see {spec.file('keeper.log')}")


def _keep(spec: Spec, ptyprocess_dir: str, report: int | None) -> int:
    """Becomes the keeper. `report` is the fd that takes the outcome of the launch; None: standard output and error."""
    os.umask(0o077)
    os.chdir("/")
    try:
        keeper = _start(spec, ptyprocess_dir, detach=report is not None)
    except LaunchRefused as error:
        if report is None:
            return _fail(error.code, str(error))
        os.write(report, b"-" + json.dumps({"code": error.code, "message": str(error)}).encode() + b"\n")
        return 1
    try:
        try:
            _tell(json.dumps(keeper.describe()).encode() + b"\n", report)
        except OSError as error:  # nobody learns of the program
            sys.stderr.write(f"the launch cannot be reported: {error}\n")
            keeper.terminate()
        keeper.run()
    finally:
        keeper.close()
    return 0


def _tell(facts: bytes, report: int | None) -> None:
    """Reports a launch that has succeeded. Raises OSError if nobody takes the report."""
    if report is None:
        sys.stdout.buffer.write(facts)
        sys.stdout.flush()
        _tell_ready(os.environ.pop("NOTIFY_SOCKET", ""))
    else:
        os.write(report, b"+" + facts)
        os.close(report)


def _start(spec: Spec, ptyprocess_dir: str, *, detach: bool) -> Keeper:
    """Starts the keeper. Everything that can fail comes before the program is spawned, so no program is left over."""
    try:
        os.makedirs(spec.state_dir, mode=0o700, exist_ok=True)
        if detach:
            _detach(spec.file("keeper.log"))
        lock = _lock(spec.file("keeper.lock"))
        channels: dict[str, OutputChannel] = {}
        for name in spec.channels:
            least = 0 if channels else spec.spool_at_least
            spool = Spool(spec.spool_dir(name), at_least=least, retention=spec.retention)
            channels[name] = OutputChannel(name, -1, spool)
        journal = Journal(spec.file("journal"), spec.launch_id)
    except OSError as error:
        raise LaunchRefused("state_failed", f"{error.filename or spec.state_dir}: {error.strerror}") from None
    listener = Listener(spec.socket)
    try:
        become_subreaper()
        program = spawn(spec, ptyprocess_dir)
    except LaunchRefused:
        listener.close()
        raise
    for name, fd in program.outputs.items():
        channels[name].fd = fd
    return Keeper(
        spec=spec,
        program=program,
        listener=listener,
        channels=channels,
        journal=journal,
        lock=lock,
        started_at=time.time(),
    )


def _tell_ready(path: str) -> None:
    """Reports to a waiting service manager that the keeper listens and the program runs."""
    if path:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.connect("\0" + path[1:] if path.startswith("@") else path)
            manager.send(b"READY=1")


def _detach(log: str) -> None:
    """Connects standard input and output to /dev/null, and standard error to the log. This closes the launcher's pipes,
    whose reader waits for their end."""
    null = os.open(os.devnull, os.O_RDWR)
    errors = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    for target, fd in ((0, null), (1, null), (2, errors)):
        os.dup2(fd, target)
    os.close(null)
    os.close(errors)


def _lock(path: str) -> int:
    """Takes the lock that lets only one keeper write to a spool. The lock is held while the returned fd is open."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise LaunchRefused("state_in_use", f"another keeper still runs a program with {path}") from None
    return fd
