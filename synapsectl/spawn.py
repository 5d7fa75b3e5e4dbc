"""Starts a daemon if none runs: starts it detached, waits for it, and shows the end of its log if it does not come
up."""

import fcntl
import os
import select
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NoReturn

from synapsectl.client import SLOW_TIMEOUT
from synapsectl.context import CommandContext
from synapsectl.errors import CtlError, NoDaemon, TimedOut
from synapsectl.writable_folders import unwritable
from synapsed import own_python
from synapsed.process.file_owners import told_foreign
from synapsed.process.lock_record import advice, elsewhere, here, is_locked, whose
from synapsed.process.parent_attributes import become_ordinary, hindrances

START_DEADLINE = 30.0
"""Seconds for a daemon to answer: it imports, opens its database and finds its keepers first; on a loaded machine this
takes ten times as long."""

GUARD_DEADLINE = START_DEADLINE + SLOW_TIMEOUT
"""Seconds to wait for another verb that starts or ends the daemon: that verb takes less, unless it is suspended."""

POLL = 0.02
"""Seconds between two looks at the socket."""

TAIL_LINES = 20
TAIL_BYTES = 16 * 1024
LOG_MAX = 4 * 1024 * 1024
"""Bytes of the log at which the next start moves it to daemon.log.1."""

CANNOT_RUN = 127

FILES_WITHOUT_A_LIST = 1024
"""Number of descriptors that are tried if the system does not list the open ones."""

SHUT_DOWN = "shut-down"
"""A file beside the log, with the time at which a person last ended a daemon."""


def start_daemon(ctx: CommandContext) -> None:
    """Returns when a daemon answers on the control socket. Raises NoDaemon with the end of its log; TimedOut if the
    person's own limit is over first."""
    ctx.check_user()
    _check_room(ctx, "no daemon runs, and none can be started")
    logs = ctx.paths.logs
    noted = _shut_down_note(ctx)
    before = os.umask(0o077)
    try:
        logs.mkdir(parents=True, exist_ok=True)
        # Two callers at once start one daemon: the second waits here, then finds the first one's.
        with guarded(ctx):
            if _answers(ctx):
                return
            if _shut_down_note(ctx) != noted:
                raise NoDaemon("the daemon was shut down just now, so no new one is started: try again if you want one")
            _check_place(ctx)
            if not _start_service(ctx):
                _start(ctx, logs / "daemon.log", before)
    except OSError as error:
        found = told_foreign((ctx.paths.state, ctx.paths.config))
        told = f"; {found[0]}; '{found[1]}' gives it back" if found else ""
        raise NoDaemon(f"no daemon runs, and none can be started: {logs}: {error.strerror}{told}") from None
    finally:
        os.umask(before)


def _check_place(ctx: CommandContext) -> None:
    """Raises NoDaemon if the state belongs to a daemon in another place, so that ours would be refused."""
    if (record := elsewhere(str(ctx.paths.lock))) is not None:
        state = str(ctx.paths.state)
        raise NoDaemon(whose(state, record), advice(state))


def _check_room(ctx: CommandContext, reason: str) -> None:
    """Raises NoDaemon if the daemon could not write its files."""
    if found := unwritable((ctx.paths.state, ctx.paths.sockets)):
        raise NoDaemon(f"{reason}: {found[0].cause}", found[0].mend)


def is_elsewhere(ctx: CommandContext) -> bool:
    """Returns True if the state belongs to a daemon in another place."""
    return elsewhere(str(ctx.paths.lock)) is not None


def take_over(ctx: CommandContext) -> None:
    """Releases the state, so that the next daemon can have it, wherever the last one ran. Raises NoDaemon if the last
    one still runs."""
    try:
        lock = os.open(ctx.paths.lock, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return
    except OSError as error:
        raise NoDaemon(f"{ctx.paths.lock}: {error.strerror}") from None
    try:
        if not _locked(lock):
            told = (record := elsewhere(str(ctx.paths.lock))) and record.describe(here())
            raise NoDaemon(f"it cannot be taken over while its daemon runs: {told or 'it is starting, or ends'}")
        os.ftruncate(lock, 0)
    finally:
        os.close(lock)


@contextmanager
def guarded(ctx: CommandContext) -> Iterator[None]:
    """Keeps other verbs from starting or shutting down this home's daemon while the block runs; waits first for a verb
    that does so now. Raises TimedOut if that verb does not end, OSError if there is no folder for the daemon's log."""
    guard = os.open(ctx.paths.logs, os.O_RDONLY | os.O_CLOEXEC)
    try:
        deadline = _until(ctx, GUARD_DEADLINE)
        while not _locked(guard):
            if time.monotonic() > deadline:
                raise TimedOut(
                    f"another synapsectl starts or ends the daemon, and has not come to an end within"
                    f" {ctx.client.told(GUARD_DEADLINE)}; where it is suspended, 'fg' lets it go on"
                )
            time.sleep(POLL)
        yield
    finally:
        os.close(guard)


def _locked(guard: int) -> bool:
    try:
        fcntl.flock(guard, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _until(ctx: CommandContext, seconds: float) -> float:
    """Returns the time on the monotonic clock: `seconds` from now, or the end of the person's own limit."""
    until = time.monotonic() + seconds
    return until if ctx.client.deadline is None else min(until, ctx.client.deadline)


def _check_limit(ctx: CommandContext) -> None:
    """Raises TimedOut if the person's own limit is over."""
    if ctx.client.deadline is not None and time.monotonic() > ctx.client.deadline:
        raise TimedOut(f"the daemon, which did not run, has not come up within {ctx.client.told(START_DEADLINE)}")


def note_shutdown(ctx: CommandContext) -> None:
    """Notes that a person has just ended the daemon: a verb that was waiting for that end starts no other daemon."""
    noted = ctx.paths.logs / SHUT_DOWN
    with suppress(OSError):
        noted.touch(mode=0o600)
        now = time.time_ns()  # the time that `touch` sets may be milliseconds old
        os.utime(noted, ns=(now, now))


def _shut_down_note(ctx: CommandContext) -> int | None:
    """Returns a mark that changes when a person has ended a daemon; it is compared with itself, never with a clock."""
    try:
        return (ctx.paths.logs / SHUT_DOWN).stat().st_mtime_ns
    except OSError:
        return None


def _start_service(ctx: CommandContext) -> bool:
    """Starts the service, if the daemon of this home is installed as one. Returns True if it is."""
    from synapsectl.service.available import this_machines
    from synapsectl.service.manager import NoServiceManager

    try:
        manager = this_machines(ctx.environ)
    except NoServiceManager:
        return False
    if not manager.is_ours() or manager.problem() is not None:
        return False
    try:
        manager.start()
    except CtlError as error:
        raise NoDaemon(f"the service does not start: {error}; see {manager.how_to_log()}") from None
    deadline = _until(ctx, START_DEADLINE)
    while not _answers(ctx):
        if time.monotonic() > deadline:
            _check_limit(ctx)
            raise NoDaemon(f"the service did not answer within {START_DEADLINE:g} s; see {manager.how_to_log()}")
        time.sleep(POLL)
    ctx.out.note("no daemon was running: started the service")
    return True


def _start(ctx: CommandContext, log: Path, umask: int) -> None:
    if log.exists() and log.stat().st_size > LOG_MAX:
        log.replace(log.with_suffix(".log.1"))
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    begins = os.fstat(output).st_size
    environ = lasting_environment(ctx)
    try:
        alive = spawn_detached(own_python.command("synapsed.cli", "run", "--late-port"), environ, output, umask=umask)
    finally:
        os.close(output)
    try:
        _wait_for(ctx, alive, log, begins)
    except KeyboardInterrupt:
        ctx.out.note("the daemon comes up all the same: 'synapsectl shutdown' ends it")
        raise
    finally:
        os.close(alive)
    pid = ctx.client.get("/control/status").get("pid")
    ctx.out.note(f"no daemon was running: started one (pid {pid}, log {log})")
    if told := hindrances():
        ctx.out.note(f"this shell's {', '.join(told)} holds for the daemon too: end it and start it from another shell")


def lasting_environment(ctx: CommandContext) -> dict[str, str]:
    """Returns this shell's environment for a daemon, which outlives the shell. The daemon reports a configuration that
    cannot be read."""
    import sys
    import tomllib

    from synapsed.process.inherited import inherited

    try:
        rules = tomllib.loads(ctx.paths.config_file.read_text(encoding="utf-8-sig")).get("environment", {})
        keep, drop = ([str(each) for each in rules.get(key, ())] for key in ("keep", "drop"))
    except (OSError, ValueError, AttributeError, TypeError):
        keep, drop = [], []
    return inherited(ctx.environ, own=sys.prefix, keep=keep, drop=drop)


def spawn_detached(argv: list[str], environ: dict[str, str], output: int, *, umask: int = 0o077) -> int:
    """Starts `argv` as a child of init in a session of its own, with ordinary priority and all CPUs: this shell's
    limits were not meant for it. Returns a descriptor that becomes readable when the process ends, since only that
    process has the other end."""
    alive, end = os.pipe()
    child = os.fork()
    if child:
        os.close(end)
        os.waitpid(child, 0)
        return alive
    try:
        os.setsid()
        if os.fork():
            os._exit(0)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(output, 1)
        os.dup2(output, 2)
        _inherit_nothing()
        os.set_inheritable(end, True)
        os.umask(umask)
        become_ordinary()
        os.chdir(own_python.PACKAGES)
        os.execve(argv[0], argv, environ)  # noqa: S606 - our own interpreter
    finally:
        os._exit(CANNOT_RUN)


def _inherit_nothing() -> None:
    """Leaves the next program no file but stdin, stdout and stderr, and no signal blocked: it would hold a lock of the
    caller's (`flock 9`), or a pipe that is read to its end, for as long as it lives."""
    try:
        numbers = [int(name) for name in os.listdir("/dev/fd")]  # noqa: PTH208 - it has the descriptor that lists too
    except OSError:
        numbers = list(range(FILES_WITHOUT_A_LIST))
    for number in numbers:
        if number > 2:
            with suppress(OSError):
                os.set_inheritable(number, False)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _wait_for(ctx: CommandContext, alive: int, log: Path, begins: int) -> None:
    deadline = _until(ctx, START_DEADLINE)
    while not _answers(ctx):
        ended, _, _ = select.select([alive], [], [], POLL)
        if ended and not _answers(ctx):
            # Ours may have given way to one that a service manager started at the same time: it will answer soon.
            if not holds_lock(ctx):
                _give_up(ctx, "the daemon ended at once", log, begins)
            time.sleep(POLL)
        if time.monotonic() > deadline:
            _check_limit(ctx)
            _give_up(ctx, f"the daemon did not answer within {START_DEADLINE:g} s", log, begins)


def holds_lock(ctx: CommandContext) -> bool:
    """Returns True while a daemon holds the lock of this home: from before it answers until it has ended altogether."""
    return is_locked(str(ctx.paths.lock)) or is_locked(str(ctx.paths.run_lock))


def _answers(ctx: CommandContext) -> bool:
    try:
        ctx.client.get("/control/status")
    except CtlError:
        return False
    return True


def _give_up(ctx: CommandContext, reason: str, log: Path, begins: int) -> NoReturn:
    with log.open("rb") as file:
        file.seek(max(begins, file.seek(0, os.SEEK_END) - TAIL_BYTES))
        lines = file.read().decode("utf-8", "replace").splitlines()[-TAIL_LINES:]
    for line in lines:
        ctx.out.remark(f"  {line}")
    _check_room(ctx, reason)
    raise NoDaemon(f"{reason}; the whole log is {log}")
