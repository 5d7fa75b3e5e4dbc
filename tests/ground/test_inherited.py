"""The table of what never travels, and the function that obeys it."""

import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapsed.process.inherited import LEFTOVERS, activated, inherited

PLAIN = {"HOME": "/h", "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}

LEFT = {
    "a git hook": {
        "GIT_DIR": ".git",
        "GIT_INDEX_FILE": ".git/index",
        "GIT_PREFIX": "",
        "GIT_EXEC_PATH": "/usr/lib/git-core",
        "GIT_EDITOR": ":",
        "GIT_AUTHOR_NAME": "o",
        "GIT_AUTHOR_EMAIL": "o@o",
        "GIT_AUTHOR_DATE": "@1 +0000",
        "GIT_QUARANTINE_PATH": "/r/objects/incoming",
        "GIT_PUSH_OPTION_COUNT": "0",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.bare",
        "GIT_CONFIG_VALUE_0": "true",
    },
    "a debugger of node": {"NODE_OPTIONS": "--inspect-brk=127.0.0.1:9 --inspect-port 7"},
    "npm": {"npm_execpath": "/n", "npm_config_cache": "/c", "INIT_CWD": "/w", "NODE": "/n", "npm_lifecycle_event": "x"},
    "fork of node": {"NODE_CHANNEL_FD": "3", "NODE_UNIQUE_ID": "1"},
    "make": {"MAKELEVEL": "1", "MAKEFLAGS": "-j2 --jobserver-auth=3,4", "MFLAGS": "-j2"},
    "cargo": {"CARGO_MANIFEST_DIR": "/c", "CARGO_PKG_NAME": "p", "CARGO": "/cargo", "RUSTUP_TOOLCHAIN": "nightly"},
    "uv": {"UV_RUN_RECURSION_DEPTH": "1", "UV": "/uv"},
    "a test": {"PYTEST_CURRENT_TEST": "x", "COVERAGE_PROCESS_START": "c", "VITEST": "true"},
    "VS Code": {
        "VSCODE_IPC_HOOK_CLI": "/s",
        "ELECTRON_RUN_AS_NODE": "1",
        "TERM_PROGRAM": "vscode",
        "GIT_ASKPASS": "/v/extensions/git/dist/askpass.sh",
    },
    "nvim": {"NVIM": "/n", "VIMRUNTIME": "/v", "VIM": "/v", "MYVIMRC": "/m"},
    "an agent": {"CLAUDECODE": "1", "CLAUDE_CODE_ENTRYPOINT": "cli", "CODEX_THREAD_ID": "t", "GIT_EDITOR": "true"},
    "sudo": {"SUDO_UID": "1", "SUDO_USER": "u", "SUDO_GID": "1", "SUDO_COMMAND": "x", "SUDO_TTY": "/dev/pts/1"},
    "a service": {"NOTIFY_SOCKET": "/n", "LISTEN_FDS": "1", "INVOCATION_ID": "i", "STATE_DIRECTORY": "/s"},
    "a terminal": {"TMUX": "/t", "TMUX_PANE": "%1", "COLUMNS": "80", "GPG_TTY": "/dev/pts/1", "STY": "s"},
    "a shell": {"_": "/x", "SHLVL": "3", "OLDPWD": "/o"},
    "stdbuf": {"_STDBUF_O": "0", "LD_PRELOAD": "/usr/libexec/coreutils/libstdbuf.so"},
    "another agent": {"SYNAPSE_AGENT_TOKEN": "t"},
}

STAYS = {
    "VIRTUAL_ENV": "/project/.venv",
    "PYTHONPATH": "/p",
    "BASH_ENV": "/b",
    "LD_PRELOAD": "/mine.so",
    "NODE_OPTIONS": '--max-old-space-size=4096 --require "/a b/hook.js"',
    "MAKEFLAGS": "-j8",
    "npm_config_registry": "https://r.example",
    "GIT_AUTHOR_NAME": "me",
    "GIT_EDITOR": "vim",
    "GIT_SSH_COMMAND": "ssh -4",
    "GIT_ASKPASS": "/usr/bin/ksshaskpass",
    "SUDO_ASKPASS": "/a",
    "ANTHROPIC_API_KEY": "k",
    "CLAUDE_CONFIG_DIR": "/c",
    "CODEX_HOME": "/x",
    "SSH_AUTH_SOCK": "/s",
    "DIRENV_DIFF": "d",
    "RUSTUP_TOOLCHAIN": "stable",
    "SYNAPSED_HOME": "/s",
}


@pytest.mark.parametrize("around", LEFT)
def test_what_a_tool_set_for_its_one_child_stays_behind(around: str) -> None:
    assert inherited({**PLAIN, **LEFT[around]}) == PLAIN


@pytest.mark.parametrize("name", STAYS)
def test_what_a_person_sets_stays(name: str) -> None:
    environ = {**PLAIN, name: STAYS[name]}
    assert inherited(environ) == environ


@pytest.mark.skipif(shutil.which("git") is None, reason="no git")
def test_all_that_git_names_itself_is_in_the_table() -> None:
    """Another version of git may name more, or fewer."""
    told = subprocess.run(["git", "rev-parse", "--local-env-vars"], capture_output=True, text=True, check=True)
    assert set(told.stdout.split()) <= {name for row in LEFTOVERS if row.by == "git" for name in row.patterns}


def test_only_the_debugger_leaves_the_options_of_node() -> None:
    options = '--inspect-brk=9229 --require "/a b/--inspect.js" --inspect-port 0 --debug-port=1 --no-warnings'
    environ = inherited({"NODE_OPTIONS": options})
    assert environ == {"NODE_OPTIONS": '--require "/a b/--inspect.js" --no-warnings'}


def test_our_own_venv_goes_and_another_stays() -> None:
    environ = {"VIRTUAL_ENV": "/tools/synapsed", "PATH": "/tools/synapsed/bin:/usr/bin"}
    assert inherited(environ, own="/tools/synapsed") == {"PATH": "/usr/bin"}
    assert inherited(environ, own="/elsewhere") == environ
    assert inherited(environ, own="/tools/synapsed", keep=["VIRTUAL_ENV"]) == environ
    only = {"PATH": "/tools/synapsed/bin:/usr/bin"}
    assert inherited(only, own="/tools/synapsed") == only, "it is on PATH for good"


def test_what_a_tool_put_on_path_goes_with_its_variables() -> None:
    npm = "/w/node_modules/.bin:/node_modules/.bin:/npm/node-gyp-bin:/usr/bin"
    assert inherited({"PATH": npm, "npm_execpath": "/n"}) == {"PATH": "/usr/bin"}
    assert inherited({"PATH": npm}) == {"PATH": npm}
    git = "/usr/lib/git-core:/usr/bin"
    assert inherited({"PATH": git, "GIT_EXEC_PATH": "/usr/lib/git-core"}) == {"PATH": "/usr/bin"}
    assert inherited({"PATH": npm, "npm_execpath": "/n"}, keep=["PATH"]) == {"PATH": npm}


def test_keep_and_drop_overrule() -> None:
    environ = {**PLAIN, "TMUX": "/t", "AWS_KEY": "k", "SYNAPSE_AGENT_TOKEN": "t", "NODE_OPTIONS": "--inspect"}
    assert inherited(environ, keep=["TMUX", "NODE_*"], drop=["AWS_*"]) == {
        **PLAIN,
        "TMUX": "/t",
        "NODE_OPTIONS": "--inspect",
    }
    assert inherited(environ, keep=["HOME", "SYNAPSE_*"], drop=["*"]) == {"HOME": "/h"}, "no other agent's identity"


def test_what_decides_which_code_runs_is_named() -> None:
    named = {"VIRTUAL_ENV": "/v", "PYTHONPATH": "/p", "BASH_ENV": "/b", "NODE_OPTIONS": "-x", "LD_PRELOAD": "/l"}
    assert activated({**PLAIN, **named}) == sorted(named)
    assert activated({**PLAIN, "CONDA_DEFAULT_ENV": "base"}) == []
    assert activated({**PLAIN, "CONDA_DEFAULT_ENV": "ml"}) == ["CONDA_DEFAULT_ENV"]


@given(st.dictionaries(st.text(max_size=20), st.text(max_size=40)), st.text(max_size=60))
def test_any_environment_can_be_looked_through(environ: dict[str, str], options: str) -> None:
    once = inherited({**environ, "NODE_OPTIONS": options})
    assert inherited(once) == once
    assert set(once) <= {*environ, "NODE_OPTIONS"}
