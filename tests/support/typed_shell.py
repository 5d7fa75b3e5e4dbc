"""A shell that somebody types into, with the tool's completion."""

import os
import re
import select
import shutil
from collections.abc import Mapping
from pathlib import Path

from ptyprocess import PtyProcess

from tests.support.daemon import PATIENCE_S

STARTS = {
    "bash": (["--norc", "--noprofile", "-i"], 'eval "$({tool} completion bash)"'),
    "zsh": (["-f", "-i"], 'autoload -Uz compinit; compinit -D -u; eval "$({tool} completion zsh)"'),
    "fish": (["--no-config", "-i"], "{tool} completion fish | source"),
}
"""How each begins without what a person has configured, and what reads the completion."""


class TypedShell:
    """The shell `name`, with the tool in `folder`; `first` is typed before the completion is read, and `around` becomes
    the shell."""

    def __init__(
        self, name: str, folder: Path, env: Mapping[str, str], *, first: str = "", around: tuple[str, ...] = ()
    ) -> None:
        arguments, prepare = STARTS[name]
        env = {"TERM": "dumb" if name == "bash" else "xterm", **env, "PS1": ""}
        env["PATH"] = f"{folder}:{env['PATH']}"
        command = [*around, shutil.which(name) or name, *arguments]
        self.pty = PtyProcess.spawn(command, env=env, cwd=env["HOME"], dimensions=(40, 160))
        self.shown = b""
        self.told = b""
        """All that was shown."""
        if first:
            self.enter(first)
        self.enter(prepare.format(tool=folder / "synapsectl"))

    def enter(self, line: str) -> None:
        """Types it, and waits for the next prompt."""
        self.shown = b""
        self.pty.write(f"{line}\rprintf '%s-%s\\n' rea dy\r".encode())
        self.until("rea-dy")

    def until(self, text: str) -> None:
        """Waits for a line that begins so."""
        self.until_shown(rb"[\r\n]" + re.escape(text.encode()))

    def until_shown(self, pattern: bytes) -> None:
        while not re.search(pattern, self.shown):
            readable, _, _ = select.select([self.pty.fd], [], [], PATIENCE_S)
            assert readable, f"{pattern!r} was not shown: {self.shown!r}"
            data = os.read(self.pty.fd, 65536)
            self.shown += data
            self.told += data

    def completes(self, typed: str, to: str) -> None:
        """The line that the shell has made of it is printed by `echo`, which Ctrl-A puts in front of it."""
        self.shown = b""
        self.pty.write(f"{typed}\t\x01echo @\r".encode())
        self.until(f"@{to}")

    def close(self) -> None:
        self.pty.close(force=True)
