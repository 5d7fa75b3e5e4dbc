"""Profiles: all that is known of a program, as data. TOML in, one frozen model out; no code asks which agent it is.

What of it is about the screen stands in `screenspec`, about side channels in `channelspec`. Where the files are and how
they are read: `library`.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, PrivateAttr, model_validator

from synapsed.model.released_names import Right
from synapsed.profiles.channel_spec import Channel, ShownTools
from synapsed.profiles.releases import drift, key, within
from synapsed.profiles.screen_spec import (
    AccountSpec,
    AnswerSpec,
    Background,
    BusySigns,
    Composer,
    DeliverySpec,
    ErrorPattern,
    Interrupt,
    LimitPattern,
    Prompts,
    Ready,
    Signs,
    StreamSpec,
)
from synapsed.profiles.setting_spec import SettingsSpec
from synapsed.profiles.variants import Variant, VersionCheck

EXAMPLES = Path(__file__).parent.parent / "_examples"
"""Where a wheel has the examples that a profile runs; a checkout has them beside the package."""
_CHECKOUT = Path(__file__).parent.parent.parent


def _speaker(value: bool | str) -> bool | str:
    if isinstance(value, str) and re.fullmatch(r"[A-Za-z0-9_.+-]{1,32}", value) is None:
        raise ValueError(f"{value[:40]!r} is no name of an app: true, false, or 1 to 32 of A-Z a-z 0-9 _ . + -")
    return value


def _alone(command: object) -> object:
    if isinstance(command, list):
        raise ValueError("must be the program alone: its arguments stand in 'args'")  # noqa: TRY004 - pydantic's
    return command


def _ordered(ports: tuple[int, int]) -> tuple[int, int]:
    if ports[0] > ports[1]:
        raise ValueError("must be the first and the last port of the range")
    return ports


type Port = Annotated[int, Field(ge=1, le=65535)]


class _Section(BaseModel):
    # Each would build a validator of its own when it is imported, and again as a part of `Profile`'s.
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class Exit(_Section):
    """The program's own way out."""

    keys: list[str] = []
    gap_ms: int = Field(default=200, ge=0, le=5000)
    grace_ms: int = Field(default=3000, ge=0, le=60_000)
    """How long the program has after the keys, and again after SIGTERM."""
    codes: list[int] = [0]
    """Exit codes that are fine (restart policy `on-failure` leaves them be)."""


class Parsers(_Section):
    """What of an answer becomes an artifact of its own."""

    code: bool = True
    """Fenced blocks."""
    data: bool = True
    """JSON documents outside of them."""
    files: bool = True
    """`[File: x]`, `Created: x`, `Wrote: x`."""
    errors: bool = True
    """Lines that begin with a word for an error, tracebacks."""


class Resume(_Section):
    """Arguments that continue the program's last conversation; `{conversation}` is its id."""

    args: list[str] = []
    fresh_args: list[str] = []
    """Arguments of a first start; `{conversation}` is an id chosen by synapsed."""
    needs_conversation: bool = False
    own: list[Annotated[str, Field(pattern=r"^\S+( \S+)?$")]] = []
    """A person's own arguments that choose the conversation: options (`--continue`, or `--resume ID` for one that has,
    or may have, a value) and subcommands (`resume ID`). Where one of them is given, `args` and `fresh_args` are not; a
    restart goes on with the conversation that the program told, without them."""

    def chosen_by(self, args: Sequence[str]) -> bool:
        """Whether the person's own `args` choose the conversation."""
        return len(self.without_choice(args)) != len(args)

    def without_choice(self, args: Sequence[str]) -> list[str]:
        """`args` without those that choose the conversation."""
        takes_value = {own.partition(" ")[0]: " " in own for own in self.own}
        kept: list[str] = []
        value_follows = False
        for number, arg in enumerate(args):
            if arg == "--":
                return [*kept, *args[number:]]
            is_value, value_follows = value_follows and not arg.startswith("-"), False
            if is_value:
                continue
            name, with_value, _ = arg.partition("=")
            if name in takes_value and (name.startswith("-") or number == 0):
                value_follows = takes_value[name] and not with_value
            else:
                kept.append(arg)
        return kept


class Skill(_Section):
    """What the program is good at, for the card that authenticated clients get (A2A's AgentSkill)."""

    id: str = Field(pattern=r"^[A-Za-z0-9._-]{1,64}$")
    name: str = Field(min_length=1)
    description: str = Field(min_length=1)
    tags: list[str] = Field(min_length=1)
    examples: list[str] = []


class SlashCommand(_Section):
    """A command of the program that does its work by its text alone: an editor offers it. `hint` says what may stand
    behind it. With `files`, a path in which `{cwd}` is the agent's folder and one `*` any name, it is each of the
    commands that a person has written into such files, and `*` in its name is what it is there."""

    name: str = Field(pattern=r"^[A-Za-z*][\w*:.-]{0,99}$")
    description: str = Field(min_length=1, max_length=300)
    hint: str = Field(default="", max_length=300)
    files: str = Field(default="", pattern=r"^$|^(/|~/|\{cwd\}/)[^*\x00]*\*[^*\x00]*$")

    @model_validator(mode="after")
    def _named_by_its_files(self) -> "SlashCommand":
        if ("*" in self.name) is not bool(self.files) or self.name.count("*") > 1:
            raise ValueError("name: has a * where there are files, which stands for what it is in their paths")
        return self


class AcpSpec(_Section):
    """A program that speaks the Agent Client Protocol on pipes (`transport = "pipes"`)."""

    modes: list[str] = ["default", "ask"]
    """Its modes in which it asks before it does something: the first of them that it offers is set in each session."""


class Instructions(_Section):
    """How the program is told what synapsed has to say to its model: through its own system prompt, by `args`, `env`
    and `files`, in which `{instructions}` is the text, `{instructions_json}` the same escaped for a JSON or TOML string
    and `{file:instructions.md}` a file of it; or else, `typed`, as the first message. A program on pipes may have it
    `before_message`: in front of the first message of a conversation, as a block of its own."""

    args: list[str] = []
    env: dict[str, str] = {}
    files: dict[str, dict[str, Any]] = {}
    resumed_files: dict[str, dict[str, Any]] = {}
    """Files of a launch that goes on with a conversation, besides `files`: where these count in a new one only."""
    typed: bool = False
    before_message: bool = False

    @property
    def used(self) -> bool:
        return self.typed or self.before_message or bool(self.args or self.env or self.files)


class McpInjection(_Section):
    """How the program is told of `synapsectl mcp` at a launch. In all values `{python}` is the interpreter,
    `{mcp}` in a list the words, and `{mcp_json}` the JSON array, that make it that server, `{packages}` where its
    packages are, `{control_socket}` the daemon's, besides what `Channel` knows; a file that a
    channel writes too becomes one with both contents."""

    args: list[str] = []
    env: dict[str, str] = {}
    files: dict[str, dict[str, Any]] = {}

    @property
    def used(self) -> bool:
        return bool(self.args or self.env or self.files)


class Profile(_Section):  # noqa: PLW1641 - it has lists: it cannot be hashed
    """What is known of one program. `source` is where it was read."""

    name: str
    extends: str | None = None
    """The profile that this one is written over, key by key; its ports and its description are no part of that."""
    description: str = ""
    command: Annotated[str, Field(min_length=1), BeforeValidator(_alone)]
    args: list[str] = []
    env: dict[str, str] = {}
    unset_env: list[str] = []
    """Variables (shell patterns) that would make the program think it runs inside another of its kind, or without a
    person."""
    ports: Annotated[tuple[Port, Port], AfterValidator(_ordered)] = (8140, 8189)
    transport: Literal["pty", "pipes"] = "pty"
    cols: int = Field(default=120, ge=20, le=1000)
    rows: int = Field(default=40, ge=5, le=1000)
    verified: str | None = None
    """The program's version that this profile was measured on."""
    unverified: str = ""
    """A sentence for a person where nobody has measured it on the program: what was seen of that. It is said at each
    start."""
    install: str = ""
    """A command that installs the program, for a person who has not got it."""
    version: VersionCheck | None = None
    versions: list[Variant] = []
    """In the order in which they count: the last one wins."""
    status_records: Annotated[bool | str, AfterValidator(_speaker)] = True
    """Whose OSC 7501 records are believed: those of the `app` that is named here, of any program (true), of no program
    (false)."""
    ready: Ready = Ready()
    busy: BusySigns = BusySigns()
    background: Background = Background()
    waiting: Signs = Signs()
    error: list[ErrorPattern] = []
    limit: list[LimitPattern] = []
    account: AccountSpec = AccountSpec()
    composer: Composer = Composer()
    delivery: DeliverySpec = DeliverySpec()
    interrupt: Interrupt = Interrupt()
    exit: Exit = Exit()
    answer: AnswerSpec = AnswerSpec()
    stream: StreamSpec = StreamSpec()
    prompts: Prompts = Prompts()
    tools: ShownTools = ShownTools()
    resume: Resume = Resume()
    channels: dict[str, Channel] = {}
    mcp: McpInjection = McpInjection()
    instructions: Instructions = Instructions()
    acp: AcpSpec = AcpSpec()
    settings: SettingsSpec = SettingsSpec()
    parsers: Parsers = Parsers()
    model: bool = False
    """A model reads what is typed. To another program, a shell or what reads commands, each line is an order: what
    other agents write is not typed there unless a person has allowed it for that agent (`accept_agents`)."""
    rights: list[Right] = []
    """What its agents may do beyond an agent's rights, to others and never to themselves."""
    skills: list[Skill] = []
    commands: list[SlashCommand] = []
    source: str = ""
    _at: tuple[tuple[tuple[int, ...], "Profile"], ...] = PrivateAttr(default=())
    """What counts from which version on."""

    def with_variants(self, variants: Mapping[str, "Profile"]) -> "Profile":
        """This one, with what counts from each of those versions on until the next."""
        profile = self.model_copy()
        known = {at: variant for version, variant in variants.items() if (at := key(version)) is not None}
        profile._at = tuple(sorted(known.items(), key=lambda pair: pair[0]))  # noqa: SLF001 - a copy of itself
        return profile

    def at(self, version: str | None) -> "Profile":
        """The profile as it counts for that version of the program; itself where the version is not known."""
        number = key(version) if version is not None else None
        if number is None:
            return self
        return next((variant for first, variant in reversed(self._at) if first <= number), self)

    def drift(self, version: str | None) -> str | None:
        """What a person should know of a program of that version; None where there is nothing to tell."""
        if self.unverified:
            return f"its profile is not verified: {self.unverified}"
        told = drift(version, verified=self.verified, since=self.version.since if self.version else None)
        notes = [each.note for each in self.versions if each.note and within(version or "", each.since, each.below)]
        return "; ".join([told, *notes]) if told is not None else None

    def __eq__(self, other: object) -> bool:
        """Whether both say the same; what counts for other versions follows from `versions`."""
        return isinstance(other, Profile) and self.__dict__ == other.__dict__

    @property
    def resumes(self) -> bool:
        """Whether a program can be started in the conversation of the one before: by arguments, or on pipes by the
        protocol, as far as the program can."""
        return bool(self.resume.args) or self.transport == "pipes"

    @property
    def status_app(self) -> str | None:
        """The `app` of the program's own status records; None where they may have any."""
        return self.status_records if isinstance(self.status_records, str) else None

    def argv(self, python: str) -> list[str]:
        """`command` and `args`; `{python}` in them is this interpreter, `{examples}` the directory of the examples."""
        known = {"{python}": python, "{examples}": str(EXAMPLES if EXAMPLES.is_dir() else _CHECKOUT / "examples")}
        return [_replaced(part, known) for part in (self.command, *self.args)]


def _replaced(text: str, known: Mapping[str, str]) -> str:
    for name, value in known.items():
        text = text.replace(name, value)
    return text
