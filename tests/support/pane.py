"""A window of tmux that a test types into and reads, as a person does: a server of its own, ended by its own socket."""

import shlex
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.support.daemon import eventually

UNREAD = "…  Enter attaches"
"""What stands below the chosen row of an inbox until it counts as read."""


class Pane:
    """A shell in a terminal of tmux. A context manager; `folder` is for the socket, `env` what the shell has."""

    def __init__(self, folder: Path, env: Mapping[str, str], *, cols: int = 80, rows: int = 24) -> None:
        self._socket = folder / "pane"
        self._env = {**env, "PS1": "shell$ ", "LC_ALL": "C.UTF-8"}
        self._size = (cols, rows)

    def __enter__(self) -> Self:
        cols, rows = self._size
        shell = ["env", "-i", *(f"{key}={value}" for key, value in self._env.items() if key != "TMUX"), "sh"]
        self._tmux("-u", "-f", "/dev/null", "new-session", "-d", "-x", str(cols), "-y", str(rows), shlex.join(shell))
        for option, value in (("status", "off"), ("window-size", "manual"), ("escape-time", "0")):
            self._tmux("set-option", "-g", option, value)
        self.resize(cols, rows)
        self.until("shell$")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._tmux("kill-server")

    def run(self, *command: str) -> None:
        """Type a command line, and Enter."""
        self.type(shlex.join(command))
        self.press("Enter")

    def type(self, text: str) -> None:
        self._tmux("send-keys", "-l", "--", text)

    def press(self, *keys: str) -> None:
        """Keys by the names that tmux has for them."""
        self._tmux("send-keys", *keys)

    def resize(self, cols: int, rows: int) -> None:
        self._tmux("resize-window", "-x", str(cols), "-y", str(rows))

    def on_bell(self, command: str) -> None:
        """Have the shell run `command` whenever the bell rings here."""
        self._tmux("set-option", "-g", "monitor-bell", "on")
        self._tmux("set-option", "-g", "bell-action", "any")
        self._tmux("set-hook", "-g", "alert-bell", f"run-shell {shlex.quote(command)}")

    @property
    def screen(self) -> str:
        """What stands there now."""
        return self._tmux("capture-pane", "-p")

    @property
    def coloured(self) -> str:
        """The same with its escape sequences."""
        return self._tmux("capture-pane", "-p", "-e")

    def says(self, what: str) -> str:
        """A format of tmux, such as `#{alternate_on}`."""
        return self._tmux("display-message", "-p", what).strip()

    def until(self, *wanted: str, gone: Sequence[str] = ()) -> str:
        """The screen, once every one of `wanted` stands there and each of `gone` does not."""

        def look() -> str:
            shown = self.screen
            return shown if all(w in shown for w in wanted) and not any(g in shown for g in gone) else ""

        try:
            return eventually(look, f"{wanted} is shown, {list(gone)} is not")
        except AssertionError as error:
            raise AssertionError(f"{error}; it shows:\n{self.screen}") from None

    def when(self, is_so: Callable[[str], bool], what: str) -> str:
        """The screen, once `is_so` of it."""

        def look() -> str:
            shown = self.screen
            return shown if is_so(shown) else ""

        return eventually(look, what)

    def _tmux(self, *arguments: str) -> str:
        command = ["tmux", "-S", str(self._socket), *arguments]
        done = subprocess.run(command, check=True, text=True, capture_output=True)
        return done.stdout
