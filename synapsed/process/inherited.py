"""The table of variables that never go from a shell's environment to processes that outlive it: agents, a daemon that a
verb starts.

A program that runs another sets variables for this one child: git for a hook, npm for a script, an editor for its
terminal. An agent that is started in such a child outlives it, and so would the variables: the agent would commit to
the repository of the hook. `inherited` takes them out. Variables that a person sets on purpose stay, and `activated`
names those that decide which code runs. `[environment] keep` and `drop` overrule the table.

The functions read nothing but their arguments, except links in the paths of virtual environments. docs/environment.md
shows the table.
"""

import os
import re
from collections.abc import Callable, Iterable, Mapping
from fnmatch import translate
from functools import lru_cache
from typing import NamedTuple


class Leftover(NamedTuple):
    """Variables that match one of `patterns` were set by the program `by`. They are not passed on, for the reason
    `why`, if their value matches one of `values`, and if a variable that matches `beside` is set, too."""

    by: str
    patterns: tuple[str, ...]
    why: str
    values: tuple[str, ...] = ("*",)
    beside: str = ""


IDENTITY = Leftover(
    "synapsed", ("SYNAPSE_*",), "who another agent is, and its token; `keep` does not bring them either"
)

GIT_LOCAL = (
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_CONFIG",
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_PARAMETERS",
    "GIT_DIR",
    "GIT_GRAFT_FILE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_INTERNAL_SUPER_PREFIX",
    "GIT_NO_REPLACE_OBJECTS",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_REPLACE_REF_BASE",
    "GIT_SHALLOW_FILE",
    "GIT_WORK_TREE",
)
"""Names from `git rev-parse --local-env-vars`."""

LEFTOVERS = (
    IDENTITY,
    Leftover("git", GIT_LOCAL, "they name the repository that a hook or an alias runs for, whatever folder git is in"),
    Leftover(
        "git",
        (
            "GIT_CHERRY_PICK_HELP",
            "GIT_CONFIG_KEY_*",
            "GIT_CONFIG_VALUE_*",
            "GIT_EXEC_PATH",
            "GIT_INTERNAL_*",
            "GIT_NAMESPACE",
            "GIT_PAGER_IN_USE",
            "GIT_PROTOCOL",
            "GIT_PUSH_*",
            "GIT_QUARANTINE_PATH",
            "GIT_REFLOG_ACTION",
            "GIT_TRACE2_PARENT_*",
        ),
        "what the command was about that runs the hook",
    ),
    Leftover("git", ("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"), "all later commits would be of that moment"),
    Leftover(
        "git",
        ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL"),
        "the author of the commit that the hook runs for; without a date beside them they are yours and stay",
        beside="GIT_AUTHOR_DATE",
    ),
    Leftover(
        "git, agents",
        ("GIT_EDITOR", "GIT_SEQUENCE_EDITOR"),
        "no editor in a hook or a turn; one of yours stays",
        values=(":", "true"),
    ),
    Leftover(
        "VS Code", ("GIT_ASKPASS", "SSH_ASKPASS"), "asks in a window of the editor", values=("*/extensions/git/*",)
    ),
    Leftover("Mercurial", ("HG", "HG_*"), "the repository that a hook runs for"),
    Leftover(
        "pre-commit",
        ("PRE_COMMIT", "PRE_COMMIT_*_BRANCH", "PRE_COMMIT_*_REF", "PRE_COMMIT_*_TYPE", "PRE_COMMIT_REMOTE_*"),
        "what the hook is run for",
    ),
    Leftover(
        "Node",
        ("NODE_CHANNEL_*", "NODE_UNIQUE_ID", "NODE_TEST_CONTEXT", "NODE_V8_COVERAGE", "JEST_WORKER_ID", "VITEST*"),
        "the pipe of one child to its parent, and of tests: another program would take another file for it",
    ),
    Leftover(
        "npm, npx, pnpm, yarn",
        (
            "BERRY_BIN_FOLDER",
            "INIT_CWD",
            "PNPM_PACKAGE_NAME",
            "PNPM_SCRIPT_SRC_DIR",
            "npm_command",
            "npm_execpath",
            "npm_lifecycle_*",
            "npm_node_execpath",
            "npm_package_*",
        ),
        "the package whose script runs",
    ),
    Leftover(
        "npm, npx, pnpm, yarn",
        ("COLOR", "NODE", "PROJECT_CWD", "npm_config_*"),
        "what npm was called with; without a script around it, settings of yours stay",
        beside="npm_execpath",
    ),
    Leftover("make", ("MAKELEVEL", "MAKEOVERRIDES", "MAKE_TERMERR", "MAKE_TERMOUT", "MFLAGS"), "the rule that runs"),
    Leftover(
        "make",
        ("MAKEFLAGS",),
        "options of that make, and pipes of its job server; outside of make, MAKEFLAGS is yours and stays",
        beside="MAKELEVEL",
    ),
    Leftover(
        "cargo",
        (
            "CARGO_BIN_*",
            "CARGO_CRATE_NAME",
            "CARGO_MAKEFLAGS",
            "CARGO_MANIFEST_*",
            "CARGO_PKG_*",
            "CARGO_PRIMARY_PACKAGE",
            "CARGO_TARGET_TMPDIR",
            "RUST_RECURSION_COUNT",
        ),
        "the package that is run",
    ),
    Leftover("cargo", ("CARGO", "OUT_DIR", "RUSTUP_TOOLCHAIN"), "the toolchain of that", beside="CARGO_MANIFEST_DIR"),
    Leftover(
        "poetry, pipenv, hatch, uv, tox, nox",
        ("HATCH_ENV_ACTIVE", "NOX_CURRENT_SESSION", "PIPENV_ACTIVE", "POETRY_ACTIVE", "TOX_ENV_*", "UV_RUN_*"),
        "the one command that they run",
    ),
    Leftover("uv", ("UV",), "the one command that it runs", beside="UV_RUN_RECURSION_DEPTH"),
    Leftover(
        "pytest, coverage",
        ("COVERAGE_PROCESS_*", "COVERAGE_RUN", "COV_CORE_*", "PYTEST_CURRENT_TEST", "PYTEST_VERSION", "PYTEST_XDIST_*"),
        "the test that runs, and where it is measured",
    ),
    Leftover("bundler", ("BUNDLER_*", "BUNDLE_BIN_PATH"), "the one command that it runs"),
    Leftover(
        "bundler",
        ("BUNDLE_GEMFILE", "RUBYLIB", "RUBYOPT"),
        "the bundle of that; without a bundle around it, yours stay",
        beside="BUNDLE_BIN_PATH",
    ),
    Leftover("bazel", ("BUILD_WORKING_DIRECTORY", "BUILD_WORKSPACE_DIRECTORY", "RUNFILES_*"), "the target that is run"),
    Leftover("GNU parallel", ("PARALLEL_*",), "the one job", beside="PARALLEL_SEQ"),
    Leftover("stdbuf", ("_STDBUF_*",), "the one command that it runs"),
    Leftover(
        "stdbuf", ("LD_PRELOAD",), "the one command that it runs; what you preload stays", values=("*/libstdbuf.so",)
    ),
    Leftover("fakeroot", ("FAKEROOTKEY", "FAKED_MODE"), "a server that ends with its command"),
    Leftover("debuggers", ("DEBUGPY_*", "PYCHARM_HOSTED", "PYDEVD_*"), "a debugger that waits for its one program"),
    Leftover(
        "sudo, doas, pkexec",
        ("DOAS_USER", "PKEXEC_UID", "SUDO_COMMAND", "SUDO_GID", "SUDO_HOME", "SUDO_TTY", "SUDO_UID", "SUDO_USER"),
        "who became another user for one command; SUDO_ASKPASS, SUDO_EDITOR and SUDO_PROMPT are yours and stay",
    ),
    Leftover(
        "agents",
        (
            "AI_AGENT",
            "AMP_CURRENT_THREAD_ID",
            "CLAUDECODE",
            "CLAUDE_AGENT_SDK_*",
            "CLAUDE_BRIDGE_*",
            "CLAUDE_CODE_CHILD_SESSION",
            "CLAUDE_CODE_ENTRYPOINT",
            "CLAUDE_CODE_REMOTE*",
            "CLAUDE_CODE_SESSION_*",
            "CLAUDE_CODE_SSE_PORT",
            "CLAUDE_ENV_FILE",
            "CLAUDE_PLUGIN_ROOT",
            "CLAUDE_PROJECT_DIR",
            "CLAUDE_SSH_*",
            "CLINE_ACTIVE",
            "CODEX_CI",
            "CODEX_INTERNAL_*",
            "CODEX_MANAGED_*",
            "CODEX_SANDBOX*",
            "CODEX_THREAD_ID",
            "COPILOT_CLI",
            "CURSOR_AGENT",
            "CURSOR_TRACE_ID",
            "GEMINI_CLI",
            "GEMINI_CLI_NO_RELAUNCH",
            "GOOSE_TERMINAL",
            "OPENCODE",
            "OPENCODE_PID",
            "OPENCODE_SERVER_*",
            "QWEN_CODE",
        ),
        "an agent's marks of its own turn and session: the next one would take itself for a part of it. Keys and "
        "settings (ANTHROPIC_API_KEY, CLAUDE_CONFIG_DIR, CODEX_HOME) are yours and stay",
    ),
    Leftover(
        "editors",
        (
            "CHROME_DESKTOP",
            "ELECTRON_NO_ATTACH_CONSOLE",
            "ELECTRON_RUN_AS_NODE",
            "EMACS",
            "INSIDE_EMACS",
            "INTELLIJ_*",
            "JPY_*",
            "MYVIMRC",
            "NVIM",
            "NVIM_LISTEN_ADDRESS",
            "NVIM_LOG_FILE",
            "ORIGINAL_XDG_CURRENT_DESKTOP",
            "TERMINAL_EMULATOR",
            "VIM",
            "VIMRUNTIME",
            "VIM_SERVERNAME",
            "VIM_TERMINAL",
            "VSCODE_*",
            "ZED_ENVIRONMENT",
            "ZED_TERM",
            "__INTELLIJ_*",
        ),
        "the window around the terminal: a program that thinks itself in there asks it, and it may be closed",
    ),
    Leftover("Jupyter", ("MPLBACKEND",), "it draws into a notebook", values=("module://*",)),
    Leftover(
        "snap, AppImage",
        ("APPDIR", "APPIMAGE", "SNAP", "SNAP_*", "*_VSCODE_SNAP_ORIG"),
        "the package that a program around this one comes from",
    ),
    Leftover("AppImage", ("ARGV0", "OWD"), "the same", beside="APPIMAGE"),
    Leftover("file managers", ("MC_SID", "MC_TMPDIR", "NNNLVL", "RANGER_LEVEL", "YAZI_*"), "the one around the shell"),
    Leftover(
        "service managers",
        (
            "CREDENTIALS_DIRECTORY",
            "FDSTORE",
            "INVOCATION_ID",
            "JOURNAL_STREAM",
            "LISTEN_*",
            "MAINPID",
            "MANAGERPID*",
            "MEMORY_PRESSURE_*",
            "MONITOR_*",
            "NOTIFY_SOCKET",
            "REMOTE_ADDR",
            "REMOTE_PORT",
            "SYSTEMD_EXEC_PID",
            "TRIGGER_*",
            "WATCHDOG_*",
            "XPC_SERVICE_NAME",
        ),
        "their business with one service: who has them would speak for it",
    ),
    Leftover(
        "service managers",
        ("CACHE_DIRECTORY", "CONFIGURATION_DIRECTORY", "LOGS_DIRECTORY", "RUNTIME_DIRECTORY", "STATE_DIRECTORY"),
        "folders of that service",
        beside="INVOCATION_ID",
    ),
    Leftover(
        "desktops",
        (
            "BAMF_DESKTOP_FILE_HINT",
            "DBUS_STARTER_*",
            "DESKTOP_STARTUP_ID",
            "GIO_LAUNCHED_DESKTOP_FILE*",
            "XDG_ACTIVATION_TOKEN",
            "__CFBundleIdentifier",
        ),
        "the start of one program",
    ),
    Leftover(
        "terminals",
        (
            "ALACRITTY_*",
            "COLORTERM",
            "COLUMNS",
            "GHOSTTY_*",
            "GPG_TTY",
            "ITERM_*",
            "KITTY_*",
            "KONSOLE_*",
            "LC_TERMINAL*",
            "LINES",
            "SSH_TTY",
            "STY",
            "TERM",
            "TERMCAP",
            "TERM_PROGRAM*",
            "TERM_SESSION_ID",
            "TMUX*",
            "VTE_VERSION",
            "WEZTERM_*",
            "WINDOW",
            "WINDOWID",
            "WT_PROFILE_ID",
            "WT_SESSION",
            "ZELLIJ*",
        ),
        "the terminal of the shell: the agent's is another",
    ),
    Leftover("sshd", ("SSH_ORIGINAL_COMMAND",), "the one command"),
    Leftover("shells", ("OLDPWD", "SHLVL", "_"), "where that shell was, and how deep"),
    Leftover("Python", ("__PYVENV_LAUNCHER__",), "which interpreter runs this tool (macOS)"),
)
"""Leftovers in the order in which they are shown."""

OWN_VENV = ("VIRTUAL_ENV", "VIRTUAL_ENV_PROMPT")
"""Variables that are not passed on if they name the environment that synapsed is installed in, and neither is its
folder on PATH: it was activated (`uv run`, an activation) only to run synapsed."""


class Prefixed(NamedTuple):
    """Folders that match `pattern` were put on PATH by the program `by`, if a variable that matches `beside` is set."""

    by: str
    pattern: str
    beside: str


ON_PATH = (
    Prefixed("npm, npx, pnpm, yarn", "*/node_modules/.bin", "npm_execpath"),
    Prefixed("npm, npx, pnpm, yarn", "*/node-gyp-bin", "npm_execpath"),
    Prefixed("git", "*/git-core", "GIT_EXEC_PATH"),
)
"""Folders that are taken from PATH with the variables."""

ACTIVATED = (
    "BASH_ENV",
    "CONDA_DEFAULT_ENV",
    "DYLD_*",
    "ENV",
    "IN_NIX_SHELL",
    "JAVA_TOOL_OPTIONS",
    "LD_AUDIT",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "NODE_OPTIONS",
    "NODE_PATH",
    "PERL5LIB",
    "PERL5OPT",
    "PYTHONHOME",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "RUBYLIB",
    "RUBYOPT",
    "VIRTUAL_ENV",
)
"""Variables set on purpose, which are named at the start because they decide which code runs."""

CONNECTION = (
    "DBUS_SESSION_BUS_ADDRESS",
    "DESKTOP_SESSION",
    "DISPLAY",
    "HYPRLAND_INSTANCE_SIGNATURE",
    "I3SOCK",
    "KRB5CCNAME",
    "MSYSTEM",
    "NIRI_SOCKET",
    "SSH_AGENT_PID",
    "SSH_ASKPASS",
    "SSH_AUTH_SOCK",
    "SSH_CLIENT",
    "SSH_CONNECTION",
    "SWAYSOCK",
    "WAYLAND_DISPLAY",
    "WSL_INTEROP",
    "XAUTHORITY",
    "XDG_CURRENT_DESKTOP",
    "XDG_RUNTIME_DIR",
    "XDG_SEAT",
    "XDG_SESSION_*",
    "XDG_VTNR",
)
"""Variables that lead to a login: another login has others, which `restart` and `attach` bring (tmux's
`update-environment`, and those that desktops have added since). PATH is not among them: it belongs to the activations
in the shell of the start, which stay, and no person has chosen a mixture of both."""

_OPTION = re.compile(r'(?:[^\s"]|"(?:\\.|[^"\\])*")+')
"""A word of NODE_OPTIONS; quoted parts may have blanks."""
_DEBUGS = ("--inspect", "--debug-port")
_TAKES_VALUE = ("--inspect-port", "--debug-port", "--inspect-publish-uid")


def inherited(
    environ: Mapping[str, str], *, own: str = "", keep: Iterable[str] = (), drop: Iterable[str] = ()
) -> dict[str, str]:
    """Returns `environ` without the leftovers. Variables that match `keep` always stay (except IDENTITY); those that
    match `drop` are left out. `own` is the folder of the environment that synapsed is installed in (`sys.prefix`)."""
    kept, dropped = _names(tuple(keep)), _names(tuple(drop))
    left = _left(environ, own)
    found = {
        name: value
        for name, value in environ.items()
        if (kept(name) and not _matches(IDENTITY.patterns, name)) or not (dropped(name) or name in left)
    }
    if "NODE_OPTIONS" in found and not kept("NODE_OPTIONS"):
        if options := _without_debugger(found["NODE_OPTIONS"]):
            found["NODE_OPTIONS"] = options
        else:
            del found["NODE_OPTIONS"]
    if "PATH" in found and not kept("PATH"):
        venv = environ["VIRTUAL_ENV"] if "VIRTUAL_ENV" in left and "VIRTUAL_ENV" not in found else ""
        found["PATH"] = _without_prefixes(environ, found["PATH"], venv)
    return found


def activated(environ: Mapping[str, str]) -> list[str]:
    """Returns the names of variables in `environ` that decide which code runs, sorted."""
    plain = environ.get("CONDA_DEFAULT_ENV") == "base"  # it is set so in every shell
    return sorted(name for name in environ if _matches(ACTIVATED, name) and not (plain and name == "CONDA_DEFAULT_ENV"))


def select(environ: Mapping[str, str], patterns: Iterable[str]) -> dict[str, str]:
    """Returns the variables of `environ` that match one of `patterns`."""
    matches = _names(tuple(patterns))
    return {name: value for name, value in environ.items() if matches(name)}


def without(environ: Mapping[str, str], patterns: Iterable[str]) -> dict[str, str]:
    """Returns `environ` without the variables that match one of `patterns`."""
    matches = _names(tuple(patterns))
    return {name: value for name, value in environ.items() if not matches(name)}


def _left(environ: Mapping[str, str], own: str) -> set[str]:
    """Returns the names that the table takes out."""
    found: set[str] = set()
    for row in LEFTOVERS:
        matches, values = _names(row.patterns), _names(row.values)
        if not row.beside or any(map(_names((row.beside,)), environ)):
            found.update(name for name, value in environ.items() if matches(name) and values(value))
    venv = environ.get("VIRTUAL_ENV")
    if own and venv and os.path.realpath(venv) == os.path.realpath(own):
        found.update(OWN_VENV)
    return found


def _without_debugger(options: str) -> str:
    kept = []
    words = iter(_OPTION.findall(options))
    for word in words:
        if not word.startswith(_DEBUGS):
            kept.append(word)
        elif word in _TAKES_VALUE:
            next(words, None)
    return " ".join(kept)


def _without_prefixes(environ: Mapping[str, str], path: str, venv: str) -> str:
    patterns = tuple(row.pattern for row in ON_PATH if any(map(_names((row.beside,)), environ)))
    matches, own = _names(patterns), f"{venv}/bin" if venv else None
    return os.pathsep.join(place for place in path.split(os.pathsep) if place != own and not matches(place))


def _matches(patterns: tuple[str, ...], name: str) -> bool:
    return _names(patterns)(name)


@lru_cache(maxsize=256)
def _names(patterns: tuple[str, ...]) -> Callable[[str], bool]:
    """Returns a function that tests if a text matches one of the shell patterns, with regard to case."""
    found = re.compile("|".join(map(translate, patterns)) or r"(?!)").match
    return lambda text: found(text) is not None
