"""Starts the program, on a terminal of its own or on pipes, with default signal handlers, no blocked signals and none
of the keeper's fds. The program gets the umask, the priority, the processors and the limits of the launch's requester.

Attributes that the system does not allow (a lower nice value, limits above the hard ones, missing CPUs) are set as far
as possible, and the differences are reported as text for people.
"""

import errno
import os
import resource
import signal
import sys

from .spec import LaunchRefused, Spec

_OOM = "/proc/self/oom_score_adj"

_ALL_CPUS = range(4096)
"""The kernel ignores CPUs that do not exist."""

_MEMORY = ("AS", "DATA", "RSS", "STACK")
"""Limits that are set last: after them the process may get no memory for further steps."""


def give(spec: Spec) -> list[str]:
    """Sets the attributes of `spec` for this process, the child. Returns a text for each that was not possible."""
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
        pass  # this system has no such file


def _nice(wanted: int) -> list[str]:
    if os.getpriority(os.PRIO_PROCESS, 0) != wanted:
        try:
            os.setpriority(os.PRIO_PROCESS, 0, wanted)
        except OSError:
            return [f"nice {wanted} (it has {os.getpriority(os.PRIO_PROCESS, 0)})"]
    return []


def _cpus(wanted: list[int]) -> list[str]:
    """Sets the CPUs; an empty list in `wanted` means all."""
    if not hasattr(os, "sched_setaffinity"):
        return []
    try:  # noqa: SIM105 - contextlib stays unimported
        os.sched_setaffinity(0, wanted or _ALL_CPUS)
    except OSError:
        pass  # the system allows none of them: the process keeps its own
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
            pass  # the final values are reported below
    has = resource.getrlimit(number)
    if has == (soft, hard):
        return []
    return [f"limit {name} {_pair((soft, hard))} (it has {_pair(has)})"]


def _lower(*values: int) -> int:
    """Returns the lowest of these limits."""
    finite = [value for value in values if value != resource.RLIM_INFINITY]
    return min(finite, default=resource.RLIM_INFINITY)


def _pair(limit: tuple[int, int]) -> str:
    soft, hard = ("unlimited" if value == resource.RLIM_INFINITY else str(value) for value in limit)
    return soft if soft == hard else f"{soft} of {hard}"


class Program:
    """A running program: its `pid`, the fd that takes its `input`, and the fds of its `outputs` by channel. `withheld`
    describes the attributes that it could not get; `tty` is the path of its terminal, empty on pipes."""

    __slots__ = ("_keep", "input", "outputs", "pid", "terminal", "tty", "withheld")

    def __init__(
        self, pid: int, *, input_fd: int, outputs: dict[str, int], terminal: bool, keep: object = None
    ) -> None:
        self.pid = pid
        self.input = input_fd
        self.outputs = outputs
        self.terminal = terminal
        self.withheld: list[str] = []
        self.tty = ""
        self._keep = keep
        for fd in {input_fd, *outputs.values()}:
            os.set_blocking(fd, False)


def spawn(spec: Spec, ptyprocess_dir: str) -> Program:
    """Starts the program of `spec`. Raises LaunchRefused: cwd_missing, program_not_found, exec_failed, bad_spec."""
    if not os.path.isdir(spec.cwd):
        raise LaunchRefused("cwd_missing", f"the working directory {spec.cwd} does not exist or is no directory")
    path = _resolve(spec)
    argv = [path, *spec.argv[1:]]
    hear, tell = os.pipe()
    try:
        if spec.transport == "pipes":
            program = _spawn_pipes(spec, argv, tell)
        else:
            program = _spawn_pty(spec, argv, ptyprocess_dir, tell)
        os.close(tell)
        tell = -1
        with os.fdopen(os.dup(hear), encoding="utf-8") as told:  # all is there: the child's end closed with its exec
            program.tty, _, withheld = told.read().partition("\n")
            program.withheld = withheld.splitlines()
    except OSError as error:
        raise LaunchRefused("exec_failed", f"{path} could not be started: {_reason(error, path)}") from None
    finally:
        os.close(hear)
        if tell >= 0:
            os.close(tell)
    return program


def _resolve(spec: Spec) -> str:
    name = spec.argv[0]
    if "/" in name:
        path = os.path.join(spec.cwd, name)
        if not os.path.exists(path):
            raise LaunchRefused("program_not_found", f"the program {path} does not exist")
        if os.path.isdir(path) or not os.access(path, os.X_OK):
            raise LaunchRefused("program_not_found", f"{path} is not an executable file")
        return path
    places = spec.env.get("PATH", os.defpath).split(os.pathsep)
    for place in places:
        path = os.path.join(spec.cwd, place, name)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    looked = ", ".join(place or "." for place in places)
    raise LaunchRefused("program_not_found", f"the program {name!r} was not found; looked in {looked}")


def _reason(error: OSError, path: str) -> str:
    if error.errno == errno.ENOENT and os.path.exists(path):
        return "the interpreter named in its first line does not exist"
    if error.errno == errno.ENOEXEC:
        return "it is neither a binary for this machine nor a script with a #! line"
    return str(error)


def _clean_slate(spec: Spec, tell: int) -> None:
    """Runs in the child just before exec, and undoes what the keeper has set up for itself. Writes to the fd `tell` a
    line with the path of the terminal, and then the attributes that the program could not get."""
    os.write(tell, f"{_terminal()}\n".encode())
    for number in signal.valid_signals():
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    os.chdir(spec.cwd)
    if withheld := give(spec):
        os.write(tell, "\n".join(withheld).encode())


def _spawn_pty(spec: Spec, argv: list[str], ptyprocess_dir: str, tell: int) -> Program:
    # ptyprocess imports shutil for its `which` if it can, and shutil imports bz2, lzma and re: 1.2 MB for each agent.
    # The path is resolved already, so the small `which` that ptyprocess has itself is enough.
    shutil = sys.modules.get("shutil")
    sys.modules["shutil"] = None  # type: ignore[assignment]  # None is how the import system spells "cannot import"
    sys.path.append(ptyprocess_dir)
    try:
        from ptyprocess.ptyprocess import PtyProcess
    except ImportError as error:
        raise LaunchRefused("bad_spec", f"ptyprocess is not in {ptyprocess_dir}: {error}") from None
    finally:
        sys.path.remove(ptyprocess_dir)
        del sys.modules["shutil"]
        if shutil is not None:
            sys.modules["shutil"] = shutil

    def prepare() -> None:
        _utf8_erase(0)
        _clean_slate(spec, tell)

    keeper = os.getpid()
    try:
        process = PtyProcess.spawn(
            argv, env=spec.env, preexec_fn=prepare, dimensions=(spec.rows, spec.cols), pass_fds=(tell,)
        )
    finally:
        if os.getpid() != keeper:
            os._exit(127)  # this is the child: its limits were too low even for exec
    # The keeper reaps, stops and closes; without this, ptyprocess would do so again, and sleep, when it is collected.
    process.closed = True
    return Program(process.pid, input_fd=process.fd, outputs={"pty": process.fd}, terminal=True, keep=process)


def _terminal() -> str:
    """Returns the path of the terminal that this process reads from, or an empty text."""
    try:
        return os.ttyname(0)
    except OSError:
        return ""


def _utf8_erase(fd: int) -> None:
    """Sets IUTF8, as every terminal emulator does: in line mode the erase key then removes whole characters."""
    import termios

    flag = getattr(termios, "IUTF8", 0)
    if flag:
        attributes = termios.tcgetattr(fd)
        attributes[0] |= flag
        termios.tcsetattr(fd, termios.TCSANOW, attributes)


def _spawn_pipes(spec: Spec, argv: list[str], tell: int) -> Program:
    child_in, parent_in = os.pipe()
    parent_out, child_out = os.pipe()
    parent_err, child_err = os.pipe()
    report, trouble = os.pipe()
    pid = os.fork()
    if pid == 0:
        _become(spec, argv, (child_in, child_out, child_err), trouble, tell)
    for fd in (child_in, child_out, child_err, trouble):
        os.close(fd)
    number = os.read(report, 16)
    os.close(report)
    if number:
        for fd in (parent_in, parent_out, parent_err):
            os.close(fd)
        os.waitpid(pid, 0)
        raise OSError(int(number), os.strerror(int(number)))
    return Program(pid, input_fd=parent_in, outputs={"stdout": parent_out, "stderr": parent_err}, terminal=False)


def _become(spec: Spec, argv: list[str], stdio: tuple[int, int, int], trouble: int, tell: int) -> None:
    """Becomes the program, in the forked child: execs, or reports the errno to `trouble`. Never returns. All fds but
    0 to 2 are closed by the exec."""
    try:
        os.setsid()
        for target, fd in enumerate(stdio):
            os.dup2(fd, target)
        _clean_slate(spec, tell)
        os.execve(argv[0], argv, spec.env)  # noqa: S606 - the user's own command, as an argv
    except OSError as error:
        os.write(trouble, str(error.errno).encode())
    finally:
        os._exit(127)
