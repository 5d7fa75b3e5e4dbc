"""Profiles: everything that is known about a program, as data. TOML in, one frozen model out; no code asks which
program an agent runs.

`screen_spec` has the tables about the screen, `channel_spec` those about side channels, `setting_spec` those about the
person's own settings. `library` finds and reads the files.
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
    AnswerSpec,
    Background,
    BusySigns,
    Composer,
    DeliverySpec,
    ErrorPattern,
    Interrupt,
    Prompts,
    Ready,
    Signs,
    StreamSpec,
)
from synapsed.profiles.setting_spec import AccountSpec, LimitPattern, SettingsSpec
from synapsed.profiles.variants import Variant, VersionCheck

EXAMPLES = Path(__file__).parent.parent / "_examples"
"""The place of the examples that a profile runs, in a wheel; a checkout has them beside the package."""
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
    # Without `defer_build` each model would build a validator at import, and again as a part of `Profile`'s.
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class Exit(_Section):
    """The keys and exit codes with which the program ends."""

    keys: list[str] = []
    gap_ms: int = Field(default=200, ge=0, le=5000)
    grace_ms: int = Field(default=3000, ge=0, le=60_000)
    """Milliseconds that the program has after the keys, and again after SIGTERM."""
    codes: list[int] = [0]
    """Exit codes of a normal end (with restart policy `on-failure` the program is not restarted)."""


class Parsers(_Section):
    """Selects the parts of an answer that become artifacts of their own."""

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
    """Arguments for a first start; `{conversation}` is an id chosen by synapsed."""
    needs_conversation: bool = False
    own: list[Annotated[str, Field(pattern=r"^\S+( \S+)?$")]] = []
    """The person's arguments that choose the conversation: options (`--continue`, or `--resume ID` for one that has, or
    may have, a value) and subcommands (`resume ID`). If one of them is given, `args` and `fresh_args` are left out; a
    restart continues the conversation that the program reported, without the person's choice."""

    def chosen_by(self, args: Sequence[str]) -> bool:
        """Returns whether the person's own `args` choose the conversation."""
        return len(self.without_choice(args)) != len(args)

    def without_choice(self, args: Sequence[str]) -> list[str]:
        """Returns `args` without those that choose the conversation."""
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
            if name not in takes_value and not arg.startswith("--") and takes_value.get(arg[:2]):
                name, with_value = arg[:2], arg[2:]  # as in -rID
            if name in takes_value and (name.startswith("-") or number == 0):
                value_follows = takes_value[name] and not with_value
            else:
                kept.append(arg)
        return kept


class Skill(_Section):
    """A skill of the program, for the card that authenticated clients get (A2A's AgentSkill)."""

    id: str = Field(pattern=r"^[A-Za-z0-9._-]{1,64}$")
    name: str = Field(min_length=1)
    description: str = Field(min_length=1)
    tags: list[str] = Field(min_length=1)
    examples: list[str] = []


class SlashCommand(_Section):
    """A command of the program that works by its text alone: an editor offers it. `hint` describes the text that may
    follow it. With `files` (a path, in which `{cwd}` is the agent's folder and one `*` is any name) it stands for each
    command that a person has written into such a file: `*` in `name` is the part of the path that `*` matches."""

    name: str = Field(pattern=r"^[A-Za-z*][\w*:.-]{0,99}$")
    description: str = Field(min_length=1, max_length=300)
    hint: str = Field(default="", max_length=300)
    files: str = Field(default="", pattern=r"^$|^(/|~/|\{cwd\}/)[^*\x00]*\*[^*\x00]*$")

    @model_validator(mode="after")
    def _named_by_its_files(self) -> "SlashCommand":
        if ("*" in self.name) is not bool(self.files) or self.name.count("*") > 1:
            raise ValueError(
                "name: must have one * if there are 'files', and none otherwise; it stands for what * is in their paths"
            )
        return self


class AcpSpec(_Section):
    """A program that speaks the Agent Client Protocol on pipes (`transport = "pipes"`)."""

    modes: list[str] = ["default", "ask"]
    """Modes in which the program asks before it acts: the first of them that it offers is set in each session."""


class Instructions(_Section):
    """Says how the program gets synapsed's instructions for its model: through its own system prompt, by `args`, `env`
    and `files`, in which `{instructions}` is the text, `{instructions_json}` the same escaped for a JSON or TOML string
    and `{file:instructions.md}` a file with it; or, `typed`, as the first message. A program on pipes may get it
    `before_message`: in front of the first message of a conversation, as a block of its own."""

    args: list[str] = []
    env: dict[str, str] = {}
    files: dict[str, dict[str, Any]] = {}
    resumed_files: dict[str, dict[str, Any]] = {}
    """Files for a launch that continues a conversation, besides `files`, where those count only in a new one."""
    typed: bool = False
    before_message: bool = False

    @property
    def used(self) -> bool:
        return self.typed or self.before_message or bool(self.args or self.env or self.files)


class McpInjection(_Section):
    """Says how a launch adds `synapsectl mcp` to the program. In all values `{python}` is the interpreter; `{mcp}` in a
    list is the words, and `{mcp_json}` the JSON array, that make the interpreter that server; `{packages}` is the
    folder of its packages, and `{control_socket}` the daemon's socket; the placeholders of `Channel` count, too. A file
    that a channel also writes gets both contents."""

    args: list[str] = []
    env: dict[str, str] = {}
    files: dict[str, dict[str, Any]] = {}

    @property
    def used(self) -> bool:
        return bool(self.args or self.env or self.files)


class Profile(_Section):  # noqa: PLW1641 - it has lists: it cannot be hashed
    """Everything that is known about one program. `source` is the file that it was read from."""

    name: str
    extends: str | None = None
    """The profile that this one overrides key by key; its ports and its description are not taken over."""
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
    """The program's version that this profile was tested on."""
    unverified: str = ""
    """A sentence about what was observed of a program whose profile was not tested on it, shown at each start."""
    install: str = ""
    """A command that installs the program, for a person who does not have it."""
    version: VersionCheck | None = None
    versions: list[Variant] = []
    """Variants in the order in which they count: the last one wins."""
    status_records: Annotated[bool | str, AfterValidator(_speaker)] = True
    """Programs whose OSC 7501 records are believed: the `app` named here, every program (true), or none (false)."""
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
    """A model reads the typed text. For any other program, such as a shell, each line is an order: messages from other
    agents are not typed there unless a person has allowed it for that agent (`accept_agents`)."""
    rights: list[Right] = []
    """Rights of its agents over others beyond the usual ones; they never apply to the agents themselves."""
    skills: list[Skill] = []
    commands: list[SlashCommand] = []
    source: str = ""
    _at: tuple[tuple[tuple[int, ...], "Profile"], ...] = PrivateAttr(default=())
    """The profiles that count from a version on."""

    def with_variants(self, variants: Mapping[str, "Profile"]) -> "Profile":
        """Returns this profile with its `variants`: each counts from its version on, until the next one's."""
        profile = self.model_copy()
        known = {at: variant for version, variant in variants.items() if (at := key(version)) is not None}
        profile._at = tuple(sorted(known.items(), key=lambda pair: pair[0]))  # noqa: SLF001 - a copy of itself
        return profile

    def at(self, version: str | None) -> "Profile":
        """Returns the profile that counts for that version of the program; itself if the version is not known."""
        number = key(version) if version is not None else None
        if number is None:
            return self
        return next((variant for first, variant in reversed(self._at) if first <= number), self)

    @property
    def variants(self) -> list["Profile"]:
        """Returns the profiles for versions of the program; none if it is the profile for a version itself."""
        return [variant for _, variant in self._at]

    @property
    def newest(self) -> "Profile":
        """Returns the profile that counts for the newest versions of the program."""
        return self._at[-1][1] if self._at else self

    def drift(self, version: str | None) -> str | None:
        """Returns a note for the person about a program of that version; None if there is nothing to say."""
        if self.unverified:
            return f"its profile is not verified: {self.unverified}"
        told = drift(version, verified=self.verified, since=self.version.since if self.version else None)
        notes = [each.note for each in self.versions if each.note and within(version or "", each.since, each.below)]
        return "; ".join([told, *notes]) if told is not None else None

    def __eq__(self, other: object) -> bool:
        """Compares the contents; the profiles for other versions follow from `versions`."""
        return isinstance(other, Profile) and self.__dict__ == other.__dict__

    @property
    def resumes(self) -> bool:
        """Returns whether a program can be started in the conversation of its last run: by arguments, or on pipes by
        the protocol, if the program supports it."""
        return bool(self.resume.args) or self.transport == "pipes"

    @property
    def status_app(self) -> str | None:
        """Returns the `app` of the program's own status records; None if they may have any."""
        return self.status_records if isinstance(self.status_records, str) else None

    def argv(self, python: str) -> list[str]:
        """Returns `command` and `args` with `python` for `{python}`, and the examples' directory for `{examples}`."""
        known = {"{python}": python, "{examples}": str(EXAMPLES if EXAMPLES.is_dir() else _CHECKOUT / "examples")}
        return [_replaced(part, known) for part in (self.command, *self.args)]


def _replaced(text: str, known: Mapping[str, str]) -> str:
    for name, value in known.items():
        text = text.replace(name, value)
    return text
