"""Context of every verb: the environment, the output, and the daemon."""

import sys
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from synapsectl.client import Client
from synapsectl.output import CommandOutput
from synapsed.config.sockets import control_socket, lock_file

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from synapsectl.ahead import BegunAttach
    from synapsed.config.paths import Paths

AGENT_VARIABLES = (
    "SYNAPSE_AGENT_ID",
    "SYNAPSE_AGENT_NAME",
    "SYNAPSE_AGENT_TYPE",
    "SYNAPSE_ENDPOINT",
    "SYNAPSE_CONTROL_SOCKET",
    "SYNAPSE_AGENT_TOKEN",
)
"""Variables that an agent gets about itself; never passed on to another one."""


class CommandContext:
    """One call of the tool; with `as_json` a program reads its output."""

    def __init__(
        self,
        environ: Mapping[str, str],
        out: CommandOutput,
        *,
        as_json: bool = False,
        begun: "BegunAttach | None" = None,
    ) -> None:
        self.environ = environ
        self.out = out
        self.as_json = as_json
        self.begun = begun
        """Connection that has begun before the tool was loaded."""

    @cached_property
    def paths(self) -> "Paths":
        from synapsed.config.paths import Paths  # it imports pathlib, which the quick verbs do without

        return Paths.from_environ(self.environ)

    @cached_property
    def inside_agent(self) -> bool:
        """True in a shell of an agent that talks to the daemon which keeps it. An explicit SYNAPSED_HOME means the
        daemon there, which may be another one."""
        told = self.environ.get("SYNAPSE_CONTROL_SOCKET")
        return bool(told) and (not self.environ.get("SYNAPSED_HOME") or told == control_socket(self.environ))

    @cached_property
    def own_agent(self) -> str | None:
        """Id of the agent in whose shell this is, None in a person's."""
        return (self.environ.get("SYNAPSE_AGENT_ID") or None) if self.inside_agent else None

    @cached_property
    def client(self) -> Client:
        if self.inside_agent:
            return Client(self.environ["SYNAPSE_CONTROL_SOCKET"], token=self.environ.get("SYNAPSE_AGENT_TOKEN"))
        return Client(control_socket(self.environ), lock=lock_file(self.environ))

    def check_user(self) -> None:
        """Raises WrongUser if this is root, and the files would be in a person's home."""
        from synapsectl.errors import WrongUser
        from synapsed.process.file_owners import why_not_as_root

        paths = self.paths
        if (reason := why_not_as_root((paths.state, paths.config, paths.a2a), self.environ)) is not None:
            raise WrongUser(reason)

    @property
    def may_ask(self) -> bool:
        """Returns True if a person can be asked, who sees the question and types the answer."""
        on_terminal = self.out.on_terminal and self.out.stderr.isatty() and sys.stdin.isatty()
        return on_terminal and not self.as_json

    def asks(self, question: str) -> bool:
        """Returns True if a person answers yes; False if no person can be asked."""
        if not self.may_ask:
            return False
        from synapsectl.asking import ask_line

        self.out.note(question, end=" ")
        return ask_line(self.out.stderr, "[y/N] ").strip().lower() in ("y", "yes")

    def busy(self, what: str) -> "AbstractContextManager[None]":
        """Shows the present action on a terminal while the block runs, if it takes time and a person reads the output;
        the block may print nothing else."""
        if self.as_json:
            from contextlib import nullcontext

            return nullcontext()
        from synapsectl.progress import in_progress

        return in_progress(what, self.out.stderr, self.environ)

    @property
    def dumb(self) -> bool:
        """Returns True if stdout is a terminal without escape sequences."""
        return self.out.on_terminal and self.environ.get("TERM") == "dumb"

    @property
    def own_environment(self) -> dict[str, str]:
        """Returns the caller's environment, without the variables of the agent that the caller may be."""
        return {key: value for key, value in self.environ.items() if key not in AGENT_VARIABLES}
