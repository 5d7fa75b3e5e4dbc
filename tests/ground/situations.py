"""Situations in which a person, or a program of theirs, calls synapsectl: a table.

Each row is used twice (`test_situations`): a daemon that runs already is found from there, and one is started there.
`{home}`, `{runtime}` and `{folder}` (a folder of the row's own) are filled in.
"""

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.ground.person import Person
from tests.support.daemon import Ctl

__all__ = ["SITUATIONS", "Called", "Situation"]

ROOT_ONLY = "unshare"
"""In `needs`: makes namespaces."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What there is around one call of the tool."""

    name: str
    base: str = "login"
    """The environment that `env` changes: `login`, `cron`, or `bare`, which has nothing."""
    env: Mapping[str, str | None] = field(default_factory=dict)
    """None removes a variable."""
    make: Sequence[str] = ()
    """Folders that are there before; a file where the name ends in `.file` or `.json`."""
    through: Sequence[str] = ()
    """Programs that call the next one, from the outside inwards."""
    first: str = ""
    """What a shell does before it becomes the tool."""
    to: str = ""
    """Redirections of the tool."""
    by: str = ""
    """A command that runs the command line in the variable CALL, where a program takes no command to run."""
    cwd: str = "{home}"
    needs: str = ""
    """A program without which it is skipped; `unshare` is root's."""
    ours: bool = True
    """False: the issue has it."""
    starts: bool = True
    """False: what is started there ends with it, so that only a daemon that runs is asked."""
    gate: bool = False
    """It is tried in the gate too, on the daemon that runs."""
    says: str = ""
    """Words that `start` has to say there."""


SITUATIONS = (
    # --- logins of all kinds ---
    Situation(name="a login", ours=False),
    Situation(
        name="a job of cron",
        base="cron",
        env={"TMPDIR": None, "LANG": None, "LOGNAME": "root", "SHELL": "/bin/sh", "PATH": "/usr/bin:/bin"},
        ours=False,
        gate=True,
    ),
    Situation(
        name="su without a login, from a user with a runtime directory",
        env={"XDG_RUNTIME_DIR": "{folder}/run", "USER": "root", "LOGNAME": "root"},
        make=("run",),
        first="chown 65534 {folder}/run",
        needs=ROOT_ONLY,
        ours=False,
        gate=True,
    ),
    Situation(
        name="su with a login",
        base="cron",
        env={"TMPDIR": None, "TERM": "xterm", "SHELL": "/bin/bash", "USER": "root", "LOGNAME": "root", "MAIL": "/m"},
        ours=False,
    ),
    Situation(
        name="sudo with a home of root's",
        base="cron",
        env={"SUDO_UID": "1000", "SUDO_GID": "1000", "SUDO_USER": "ann", "SUDO_COMMAND": "/usr/bin/synapsectl"},
        ours=False,
    ),
    Situation(
        name="docker exec",
        base="cron",
        env={"TMPDIR": None, "LANG": None, "HOSTNAME": "0d3b130ce450"},
        cwd="/",
        ours=False,
    ),
    Situation(
        name="the terminal of an editor that is a snap",
        env={
            "XDG_RUNTIME_DIR": "{folder}/snap.code",
            "SNAP": "/snap/code/1",
            "SNAP_NAME": "code",
            "SNAP_USER_DATA": "{home}/snap/code/1",
            "XDG_DATA_DIRS": "/snap/code/1/share",
            "GTK_PATH": "/snap/code/1/lib",
            "LD_LIBRARY_PATH": "/snap/code/1/lib",
        },
        make=("snap.code",),
        ours=False,
    ),
    Situation(
        name="WSL, whose runtime directory is everybody's",
        env={
            "XDG_RUNTIME_DIR": "{folder}/wslg",
            "WSL_DISTRO_NAME": "Ubuntu",
            "WSL_INTEROP": "/run/WSL/8_interop",
            "WSLENV": "",
            "PATH": "/usr/bin:/bin:/mnt/c/Program Files (x86)/Common Files:/mnt/c/WINDOWS",
        },
        make=("wslg",),
        first="chmod 1777 {folder}/wslg",
        ours=False,
    ),
    Situation(
        name="ssh without a login",
        base="cron",
        env={
            "TMPDIR": None,
            "LANG": None,
            "SSH_CLIENT": "10.0.0.2 40000 22",
            "SSH_CONNECTION": "10.0.0.2 4 10.0.0.1 22",
        },
        ours=False,
    ),
    Situation(
        name="ssh with the locale of another machine",
        env={"LANG": "xx_YY.UTF-8", "LC_ALL": "xx_YY.UTF-8", "LC_CTYPE": "UTF-8", "SSH_TTY": "/dev/pts/77"},
    ),
    Situation(name="a service of systemd", base="cron", env={"INVOCATION_ID": "0" * 32, "JOURNAL_STREAM": "8:12"}),
    # --- the runtime directory ---
    Situation(name="a runtime directory that is named by nothing", env={"XDG_RUNTIME_DIR": ""}),
    Situation(name="a runtime directory that is gone", env={"XDG_RUNTIME_DIR": "{folder}/gone"}, ours=False),
    Situation(name="a runtime directory that is a file", env={"XDG_RUNTIME_DIR": "{folder}/a.file"}, make=("a.file",)),
    Situation(name="a runtime directory without its whole path", env={"XDG_RUNTIME_DIR": "rt"}, cwd="{folder}"),
    Situation(
        name="a runtime directory that nothing can be written to",
        env={"XDG_RUNTIME_DIR": "{folder}/ro"},
        make=("ro",),
        through=("unshare", "--mount"),
        first="mount -t tmpfs -o ro none {folder}/ro",
        needs=ROOT_ONLY,
    ),
    Situation(name="a runtime directory with a long path", env={"XDG_RUNTIME_DIR": "{folder}/" + 9 * "a long path/"}),
    # --- the home, and the other folders ---
    Situation(
        name="a home by a link",
        base="cron",
        env={"HOME": "{folder}/link"},
        first="ln -sfn {home} {folder}/link",
        ours=False,
        gate=True,
    ),
    Situation(name="a home with a slash at its end", base="cron", env={"HOME": "{home}//"}),
    Situation(name="a home by a way around", base="cron", env={"HOME": "{home}/.local/.."}),
    Situation(
        name="a state directory without its whole path",
        base="cron",
        env={"XDG_STATE_HOME": "here"},
        cwd="{folder}",
        gate=True,
    ),
    Situation(name="a configuration without its whole path", base="cron", env={"XDG_CONFIG_HOME": "c"}, cwd="{folder}"),
    Situation(name="XDG directories that are named by nothing", env={"XDG_STATE_HOME": "", "XDG_CONFIG_HOME": ""}),
    Situation(name="SYNAPSED_HOME that is named by nothing", env={"SYNAPSED_HOME": "", "SYNAPSED_A2A_HOME": ""}),
    Situation(
        name="no HOME, and a user whom the system knows",
        base="cron",
        env={"HOME": None},
        through=("unshare", "--mount"),
        first="echo root:x:0:0::{home}:/bin/sh > {folder}/passwd; mount --bind {folder}/passwd /etc/passwd",
        needs=ROOT_ONLY,
    ),
    Situation(
        name="an empty environment",
        base="bare",
        through=("unshare", "--mount"),
        first="echo root:x:0:0::{home}:/bin/sh > {folder}/passwd; mount --bind {folder}/passwd /etc/passwd",
        needs=ROOT_ONLY,
    ),
    Situation(
        name="a user whom the system does not know",
        through=("unshare", "--mount"),
        first=": > {folder}/passwd; mount --bind {folder}/passwd /etc/passwd",
        needs=ROOT_ONLY,
        ours=False,
    ),
    Situation(name="TMPDIR that is gone", env={"TMPDIR": "{folder}/gone"}),
    Situation(
        name="a folder for temporary files that runs nothing",
        env={"TMPDIR": "{folder}/noexec"},
        make=("noexec",),
        through=("unshare", "--mount"),
        first="mount -t tmpfs -o noexec none {folder}/noexec",
        needs=ROOT_ONLY,
    ),
    Situation(
        name="a home that runs nothing",
        through=("unshare", "--mount"),
        first="mount --bind {home} {home}; mount -o remount,bind,noexec {home}; cd {home}",
        needs=ROOT_ONLY,
    ),
    # --- the current folder ---
    Situation(name="the root folder", cwd="/"),
    Situation(
        name="a current folder that is gone",
        make=("gone",),
        first="cd {folder}/gone; rmdir {folder}/gone",
        ours=False,
        says="the current directory is gone",
    ),
    Situation(name="a folder of processes", cwd="/proc/self"),
    Situation(name="a folder with any name", make=("a 'b'\n\"c\" $d €",), cwd="{folder}/a 'b'\n\"c\" $d €"),
    Situation(
        name="a current folder that may not be looked into",
        cwd="{folder}/closed",
        make=("closed",),
        through=(
            "sh",
            "-c",
            'chown 65534 . && chmod 0 . && exec "$@"',
            "sh",
            "setpriv",
            "--bounding-set=-all",
            "--inh-caps=-all",
        ),
        needs=ROOT_ONLY,
        starts=False,
    ),
    # --- what is inherited ---
    Situation(name="a umask of 0", first="umask 000", ours=False, gate=True),
    Situation(name="a umask of 077", first="umask 077", ours=False),
    Situation(name="a umask of 0777", first="umask 0777"),
    Situation(name="64 open files", first="ulimit -n 64"),
    Situation(name="no core dumps, and little memory for the stack", first="ulimit -c 0; ulimit -s 512"),
    Situation(name="the lowest priority", through=("nice", "-n", "19")),
    Situation(name="nohup", through=("nohup",)),
    Situation(name="a session of its own", through=("setsid", "--wait")),
    Situation(name="a shell that ignores signals", first="trap '' HUP INT QUIT PIPE TERM CHLD USR1 ALRM", gate=True),
    Situation(name="a stdin that is closed", to="<&-"),
    Situation(name="a stdin that never ends", to="< /dev/zero"),
    Situation(name="one more file that leads to who reads the output", to="9>&1", gate=True),
    Situation(
        name="no new privileges, and no capabilities",
        needs="setpriv",
        through=("setpriv", "--no-new-privs", "--bounding-set=-all", "--inh-caps=-all"),
    ),
    # --- a terminal, or none ---
    Situation(name="a terminal that can do nothing", env={"TERM": "dumb"}),
    Situation(name="a terminal that nobody knows", env={"TERM": "nonsense", "COLUMNS": "0", "LINES": "many"}),
    Situation(name="no name of a terminal", env={"TERM": None}),
    # --- languages ---
    Situation(name="the language C", env={"LANG": "C", "LC_ALL": "C"}),
    Situation(
        name="Python in ASCII",
        env={"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii", "PYTHONCOERCECLOCALE": "0"},
    ),
    Situation(name="a time zone that there is not", env={"TZ": ":/nowhere/at/all"}),
    # --- variables ---
    Situation(name="no PATH", env={"PATH": None}),
    Situation(name="an empty PATH", env={"PATH": ""}),
    Situation(
        name="another Python's environment",
        env={"VIRTUAL_ENV": "{folder}/v", "CONDA_PREFIX": "{folder}/c", "PATH": "{folder}/v/bin:/usr/bin:/bin"},
    ),
    Situation(
        name="variables of Python",
        env={
            "PYTHONPATH": "{folder}/gone",
            "PYTHONSTARTUP": "{folder}/gone.py",
            "PYTHONOPTIMIZE": "2",
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONUNBUFFERED": "1",
            "PYTHONNOUSERSITE": "1",
            "PYTHONSAFEPATH": "1",
        },
        ours=False,
    ),
    Situation(name="warnings of Python that are errors", env={"PYTHONWARNINGS": "error"}),
    Situation(
        name="Python for developers", env={"PYTHONDEVMODE": "1", "PYTHONASYNCIODEBUG": "1", "PYTHONWARNINGS": "error"}
    ),
    Situation(name="a variable of 120 KB", env={"LARGE": 120_000 * "x"}),
    Situation(name="a variable that is no text", first="export LATIN=$(printf 'caf\\351')"),
    Situation(name="an exported function of bash", env={"BASH_FUNC_hello%%": "() {  echo hi\n}"}),
    Situation(
        name="a library that is not there", env={"OPENSSL_CONF": "{folder}/gone", "SSL_CERT_FILE": "{folder}/gone"}
    ),
    Situation(name="a shell that nobody may log in with", env={"SHELL": "/usr/sbin/nologin", "USER": None}),
    # --- programs around it ---
    Situation(
        name="a recipe of make",
        by="make --silent -f {folder}/Makefile.file",
        needs="make",
        ours=False,
        make=("Makefile.file",),
    ),
    Situation(
        name="a script of npm",
        by="npm run --silent --prefix {folder} call",
        needs="npm",
        make=("package.json",),
        env={"npm_config_cache": "{folder}/npm"},
        ours=False,
    ),
    Situation(name="an alias of git", by="git -c 'alias.call=!eval \"exec $CALL\"' call", needs="git"),
    Situation(name="timeout", through=("timeout", "100")),
    Situation(
        name="xargs", through=("xargs", "-I{}", "--arg-file={folder}/one.file", "env", "GIVEN={}"), make=("one.file",)
    ),
    Situation(
        name="a trace of system calls", through=("strace", "-f", "-qq", "-o", "/dev/null"), needs="strace", starts=False
    ),
    Situation(name="flock", through=("flock", "{folder}/lock.file"), make=("lock.file",)),
    # --- another host, or none ---
    Situation(
        name="another name of the host",
        through=("unshare", "--uts"),
        first="hostname other",
        needs=ROOT_ONLY,
        ours=False,
    ),
    Situation(name="a network without anything", through=("unshare", "--net"), needs=ROOT_ONLY, ours=False),
    Situation(
        name="a network with loopback only",
        through=("unshare", "--net"),
        first="ip link set lo up",
        needs=ROOT_ONLY,
        ours=False,
    ),
    Situation(
        name="a machine without IPv6",
        through=("unshare", "--net"),
        needs=ROOT_ONLY,
        first="sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.lo.disable_ipv6=1; ip link set lo up",
    ),
    Situation(name="other queues and shared memory", through=("unshare", "--ipc"), needs=ROOT_ONLY),
    Situation(
        name="a user's namespace, as rootless containers",
        through=("unshare", "--user", "--map-root-user"),
        needs=ROOT_ONLY,
    ),
    Situation(
        name="another namespace of processes",
        through=("unshare", "--pid", "--fork", "--mount-proc"),
        needs=ROOT_ONLY,
        ours=False,
        starts=False,
    ),
    Situation(
        name="a machine without /proc",
        through=("unshare", "--mount"),
        first="mount -t tmpfs none /proc",
        needs=ROOT_ONLY,
        starts=False,
    ),
    Situation(
        name="a clock that is years ahead",
        needs=ROOT_ONLY,
        through=("unshare", "--time", "--fork", "--boottime", "100000000", "--monotonic", "100000000"),
    ),
    Situation(
        name="a laptop that has slept for most of a year",
        needs=ROOT_ONLY,
        through=("unshare", "--time", "--fork", "--boottime", "20000000"),
    ),
)


WRITTEN = {
    "Makefile.file": 'all:\n\t@eval "exec $$CALL"\n',
    "package.json": json.dumps({"name": "one", "version": "1.0.0", "scripts": {"call": 'eval "exec $CALL"'}}),
    "one.file": "one\n",
}
"""What is in some of the files."""


class Called:
    """A situation of a person: `ctl` runs the tool there."""

    def __init__(self, situation: Situation, person: Person, folder: Path) -> None:
        self.situation = situation
        self.person = person
        self._places = {"{home}": person.home, "{runtime}": person.runtime, "{folder}": folder}
        folder.mkdir(exist_ok=True)
        for name in situation.make:
            if name.endswith((".file", ".json")):
                (folder / name).write_text(WRITTEN.get(name, ""))
            else:
                (folder / name).mkdir(exist_ok=True, mode=0o700)

    def _fill(self, text: str) -> str:
        for name, place in self._places.items():
            text = text.replace(name, str(place))
        return text

    @property
    def env(self) -> dict[str, str]:
        base: dict[str, str] = getattr(self.person, self.situation.base)
        changed = {name: None if value is None else self._fill(value) for name, value in self.situation.env.items()}
        return {name: value for name, value in {**base, **changed}.items() if value is not None}

    def ctl(self, *arguments: str) -> Ctl:
        one = self.situation
        call = f"CALL={shlex.quote(shlex.join([str(self.person.installed.tool), *arguments]))} exec {one.by}"
        last = call if one.by else 'exec "$@"'
        shell = ["/bin/sh", "-c", self._fill(f"{one.first or ':'}; {last} {one.to}"), "sh"]
        around = [*map(self._fill, one.through), *shell]
        return self.person.ctl(*arguments, env=self.env, around=around, cwd=self._fill(one.cwd))
