"""Profiles: all that is known of a program, as data. TOML in, one frozen model out; no code asks which agent it is.

Every pattern is a Python regular expression; those over the screen are searched line by line (MULTILINE) in the bottom
`rows` lines of what is visible. Where the files are and how they are read: `library`.
"""

import re
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, PrivateAttr

from synapsed.channelspec import (
    Channel,
    ErrorCode,
    Pattern,
    ShownTools,
    TextPattern,
    has,
)
from synapsed.releases import drift, key, within
from synapsed.variants import Variant, VersionCheck

EXAMPLES = Path(__file__).parent / "_examples"
"""Where a wheel has the examples that a profile runs; a checkout has them beside the package."""
_CHECKOUT = Path(__file__).parent.parent


def _speaker(value: bool | str) -> bool | str:
    if isinstance(value, str) and re.fullmatch(r"[A-Za-z0-9_.+-]{1,32}", value) is None:
        raise ValueError(f"{value[:40]!r} is no name of an app: true, false, or 1 to 32 of A-Z a-z 0-9 _ . + -")
    return value


def _alone(command: object) -> object:
    if isinstance(command, list):
        raise ValueError("must be the program alone: its arguments stand in 'args'")  # noqa: TRY004 - pydantic's
    return command


def _names_path(wording: str) -> str:
    if "{path}" not in wording:
        raise ValueError("must have {path} in it")
    return wording


FileWording = Annotated[str, AfterValidator(_names_path)]
"""Words about a file: `{path}` and `{bytes}` are replaced."""


type Right = Literal["answer_prompts", "read_screens", "stop_agents", "make_schedules"]
"""Answer what other agents ask a person; read others' screens and events; stop, kill, restart and interrupt others; see
what is scheduled, and schedule messages in its own name."""


def _ordered(ports: tuple[int, int]) -> tuple[int, int]:
    if ports[0] > ports[1]:
        raise ValueError("must be the first and the last port of the range")
    return ports


def _signal(name: str) -> str:
    if name not in signal.Signals.__members__:
        raise ValueError("must be the name of a signal, like SIGINT")
    return name


type Port = Annotated[int, Field(ge=1, le=65535)]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Signs(_Section):
    """What shows one state. Any one sign counts, the title's first, then the progress."""

    title: Pattern | None = None
    progress: list[Literal["normal", "error", "indeterminate", "paused"]] = []
    """States of the terminal's progress bar (OSC 9;4). A tool may show one too, and leave it behind."""
    screen: list[Pattern] = []
    rows: int = Field(default=10, ge=1, le=200)
    """How many rows from the bottom of the visible text are looked at."""

    @property
    def known(self) -> bool:
        """Whether there is any."""
        return self.title is not None or bool(self.progress or self.screen)


class Ready(Signs):
    """A program with a composer is ready when that is empty; `title` must then match too."""

    quiet_ms: int = Field(default=250, ge=0, le=60_000)
    """How long the screen must not have changed before a message is typed."""
    first: list[Pattern] = []
    """What must be on the visible screen before it is ready for the first time, if it comes at all."""


class Composer(_Section):
    """Where the program takes a message.

    `line` finds it: its group `text` is what stands in it (for a line-oriented program: what follows the prompt on
    the cursor's row). `placeholder` says which text there is not a draft; where `dim_is_placeholder`, faint cells do
    not count either.
    """

    line: Annotated[TextPattern, has("text")] | None = None
    at_cursor: bool = False
    """The row of the cursor must match (line-oriented programs); else the last matching row counts."""
    usual: bool = False
    """`line` is what prompts usually look like, of no program in particular: while a turn runs, a sign alone (`> `)
    that is not the prompt at which the message was typed is a question of what runs."""
    continuation: TextPattern | None = None
    """What a program with a prompt at its cursor shows before a further line of a message: no part of an answer."""
    around: TextPattern | None = None
    """What else tells the composer's row from one that only looks like it (an earlier message, a menu): searched in the
    rows above it, its own and the three below, joined by line breaks."""
    rows_above: int = Field(default=3, ge=0, le=10)
    """How many of those above it that are."""
    empty: TextPattern | None = None
    """What its own row and the three above and below it look like while nothing is typed: a draft may begin with an
    empty line."""
    needed: bool = True
    """False: where the program's status record says that it rests, a message is typed though no composer is found."""
    shows_cursor: bool = False
    """The program shows its cursor in the composer and nowhere else."""
    placeholder: TextPattern | None = None
    dim_is_placeholder: bool = True
    bracketed_paste: bool = False
    """The program takes input only while it has DECSET 2004 on."""


class Indented(_Section):
    """A prompt that takes blocks by indentation, each ended by an empty line. A message is given these lines, and none
    within a block. All patterns but the first are for lines at the margin."""

    prompt: TextPattern
    """The prompt, at which a message is so typed."""
    opens: TextPattern
    """A line that opens a block."""
    goes_on: TextPattern
    """One that goes on with the statement of the block above it."""
    leads: TextPattern
    """One that the block below it belongs to."""


class DeliverySpec(_Section):
    """How a message is typed."""

    paste: Literal["auto", "bracketed", "plain"] = "auto"
    """auto: bracketed where the program switched it on."""
    submit: str = Field(default="\r", min_length=1)
    settle_ms: int = Field(default=80, ge=0, le=10_000)
    """Quiet time of the screen after the paste, before `submit`."""
    settle_max_ms: int = Field(default=3000, ge=0, le=60_000)
    """`submit` is sent at the latest then, provided that the screen shows the message."""
    accept_ms: int = Field(default=2000, ge=100, le=60_000)
    """No sign of acceptance by then: look at the composer and send `submit` once more, alone."""
    starting: Pattern | None = None
    """What stands below the composer while it holds a message that was submitted, until the program has started."""
    neutralise: TextPattern | None = None
    """A message that matches would be a command; `neutral_prefix` is put before it."""
    neutral_prefix: str = " "
    neutralise_end: TextPattern | None = None
    """A message that matches would not be submitted by `submit`; `neutral_suffix` is put behind it."""
    neutral_suffix: str = " "
    indented: Indented | None = None
    newline: str = "\n"
    """What a line break within a message is typed as."""
    clear: str = "\x15"
    """Keys that empty the composer; used only on text that synapsed itself put there."""
    erase: str = "\x15"
    """Keys that take a row of a person's draft back, in mid-turn too; used on a line that is for another agent."""
    max_bytes: int = Field(default=49 << 10, ge=1)
    """What is longer (48 KiB and the mark of a sender) is written into the agent's inbox, and `long_text` is typed."""
    long_text: FileWording = (
        "My message is in the file {path} ({bytes} bytes). Read the whole file, then do what it says."
    )
    file_text: FileWording = "Attached file: {path}"
    """What is typed for a file part, or for large data. `{path}` is absolute."""
    while_typing: Literal["after_pause", "hold", "deliver"] = "after_pause"
    """What a person's draft in the composer means for a message that goes through a channel, which does not touch it:
    it waits until no key was pressed for a while, as long as the draft stands, or not at all."""
    provenance: bool = False
    """A model reads what is typed: below a message of others a line says who that is, and how well that is known."""
    inbox_args: list[str] = []
    """Arguments by which the program may read its inbox, `{inbox}`, without asking."""


def _types_the_words(keys: list[str]) -> list[str]:
    if not any("{text}" in each or "{line}" in each for each in keys):
        raise ValueError("must have {text} or {line} in one of them")
    return keys


class OwnWords(_Section):
    """How a dialog is answered in words of one's own, beside its options."""

    row: Annotated[Pattern, has("key")]
    """The rows of the dialog that are for words; their keys alone are no answers. Without one it takes none."""
    keys: Annotated[list[str], AfterValidator(_types_the_words)]
    """What is typed, each when it is shown what came of the one before: `{key}` is the first row's, `{text}` the words,
    pasted, `{line}` the same on one line."""


class ListedOption(_Section):
    """An option of a dialog that is not on the screen as such."""

    key: str
    """What a person answers."""
    label: str
    keys: str | Annotated[list[str], Field(min_length=1)] | None = None
    """What is typed; default: its key. Those of a list one after the other, each when it is shown what came of the one
    before."""


class Dialog(_Section):
    """A blocking question of the program's own, drawn on the screen."""

    type: Literal["confirmation", "selection", "text", "password", "permission", "question", "trust", "login"]
    when: list[Pattern]
    """All must be on the visible screen."""
    unless: list[Pattern] = []
    question: Pattern | None = None
    """Its group `text` (or the match) is the prompt's text; default: the first of `when`."""
    begins: Pattern | None = None
    """The first row of what is asked; default: the one below a rule or a box's edge, if one is above the question."""
    ends: Pattern | None = None
    """The row below what is asked; default: the first option."""
    below: bool = False
    """The command that is asked about stands below the question. It may hold the question and what `ends` it too: of
    the one the first counts, of the other the last, and the options are read from there on."""
    ignore: Pattern | None = None
    """Lines of the dialog that are no part of what is asked (tips): they may change while the question stands."""
    option: Annotated[Pattern, has("key", "label")] | None = None
    """Finds the options: groups `key` and `label`."""
    options: list[ListedOption] = []
    """Options that are not on the screen as such, behind those that are."""
    keys: dict[str, str] = {}
    """What is typed for an option's key where that is not the key itself."""
    aliases: dict[str, str] = {}
    """Other words for options: `yes`, `no`, `allow`, `deny` → an option's key."""
    submit: str = ""
    """Typed after the option's key or the text."""
    own_words: OwnWords | None = None
    refusal: list[str] = []
    """Options after which the program stops the turn by itself."""
    from_first: list[str] = []
    """Options whose keys count on the first one being selected, as it is at first: they are not typed once a person has
    been at the dialog, who may have moved the selection."""
    leave: str | None = None
    """What closes it where the keys that stop a turn or clear the composer have opened it: they found nothing to do."""


class Prompts(_Section):
    enabled: bool = True
    dialogs: list[Dialog] = []
    refusal_note: str = (
        "The person refused what you asked for: do not do it. Go on without it, or say what you could not do."
    )
    """Typed in the same turn where the program stops after a refusal and the model would not hear of it; empty: the
    turn ends there."""
    denial_note: str = "Something of that was denied: do not do it. The rest was not done: ask again if you need it."
    """The same where a decision of the approval policy refused one of several calls, and the program the others."""
    limit_note: str = "The usage limit is over: go on with what was asked."
    """Typed in place of the message when a task goes on that met a usage limit."""
    plan: list[Pattern] = []
    """What stands in a permission that is about a plan, so that an inbox calls it one."""
    menus: bool = True
    """Also read what no dialog of the profile knows, where no composer stands: menus of which one row is marked, and
    what asks for Enter or for a letter in parentheses."""
    generic: bool = False
    """Also look for the generic questions of line-oriented programs ((y/n), [1/2/3], password:) at the cursor."""


class PutOff(_Section):
    """A message that the program took and has not begun with: what stops a turn does not stop that."""

    shown: Annotated[Pattern, has("text")]
    """How one such message, and no other beside it, is shown; its group `text` is the message's beginning, with single
    blanks for line breaks and an ellipsis where it is cut."""
    keys: str
    """Give it back into the composer, which must be empty."""


class Interrupt(_Section):
    """How a turn is stopped without ending the program."""

    keys: str | None = Field(default=None, min_length=1)
    signal: Annotated[str, AfterValidator(_signal)] | None = None
    repeat: int = Field(default=1, ge=1, le=5)
    gap_ms: int = Field(default=150, ge=0, le=5000)
    again: Pattern | None = None
    """What the screen says when it has the keys and wants them once more: they are pressed again when that is shown (at
    the latest after a second), and not after `gap_ms`. A busy machine's program may read two that follow each other as
    another key."""
    screen: Pattern | None = None
    """What the screen then says."""
    status: Literal["idle"] | None = None
    """The status record that it then leaves, where a turn that ended leaves another."""
    put_off: PutOff | None = None
    confirm_ms: int = Field(default=3000, ge=100, le=60_000)
    still_ms: int = Field(default=1000, ge=100, le=60_000)
    """A turn that was asked to stop has stopped when the composer stands, nothing says on the screen or in the title
    that the program works, and neither has changed for so long, whatever else says that the turn is open."""


class Exit(_Section):
    """The program's own way out."""

    keys: list[str] = []
    gap_ms: int = Field(default=200, ge=0, le=5000)
    grace_ms: int = Field(default=3000, ge=0, le=60_000)
    """How long the program has after the keys, and again after SIGTERM."""
    codes: list[int] = [0]
    """Exit codes that are fine (restart policy `on-failure` leaves them be)."""


class AnswerSpec(_Section):
    """How an answer is read off the screen where no channel has it."""

    mode: Literal["lines", "blocks"] = "lines"
    """lines: what the program printed between the message and its next prompt. blocks: the blocks that `start` begins,
    after the message's own."""
    start: TextPattern | None = None
    end: TextPattern | None = None
    strip: TextPattern | None = None
    """Removed from the beginning and from the end of each line: an indent, both sides of a frame."""
    rows: Annotated[int, Field(ge=5, le=1000)] | Literal[0] = 200
    """blocks: height of the window of a full-screen program whose answers no channel tells, while no terminal is
    attached; 0: as any program's."""
    channel_wait_ms: int = Field(default=1500, ge=0, le=60_000)
    """How long a channel that should tell the turn's end is waited for after the screen is ready again."""


class StreamSpec(_Section):
    """Text that is told while a turn runs: the beginning of the answer, as far as that is certain."""

    enabled: bool = True
    source: Literal["screen", "channel"] = "screen"
    """Where it is read: off the screen (for programs whose answers are `lines`: from their output), or a channel tells
    it."""
    end: TextPattern | None = None
    """What stands below the text while the program works (besides `answer.end`): its spinner."""
    skip: TextPattern | None = None
    """Blocks that `answer.start` begins as well and that are no text, tool calls: searched in their first two lines."""
    indent: int = Field(default=2, ge=0, le=40)
    """Columns of a row that a block's text has not: what stands before it (and behind it, in a frame)."""
    breaks: bool = True
    """A row that ends early ends a line. Not where paragraphs are drawn without a blank row between them at first."""
    slack: int = Field(default=4, ge=0, le=80)
    """So many columns more may be left free when it wraps: whether a line was wrapped there or ended is not told apart,
    and text is told up to it only."""


class ErrorPattern(_Section):
    """The program's own words for a failed turn, in its own chrome (never in an answer's prose)."""

    pattern: Pattern
    code: ErrorCode = "MODEL_ERROR"


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

    @property
    def any(self) -> bool:
        return self.code or self.data or self.files or self.errors


class LimitPattern(_Section):
    """The program's words for a usage limit that is reached: in the text of a turn's failure, or of a dialog. Line
    breaks are taken for blanks. The group `until`, where it says when, may be a time, a date or a duration."""

    pattern: Pattern
    answer: str | None = None
    """The words are a dialog's, which is answered so: the turn then ends."""


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
    `{packages}` where its packages are, `{control_socket}` the daemon's, besides what `Channel` knows; a file that a
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
    version: VersionCheck | None = None
    versions: list[Variant] = []
    """In the order in which they count: the last one wins."""
    status_records: Annotated[bool | str, AfterValidator(_speaker)] = True
    """Whose OSC 7501 records are believed: those of the `app` that is named here, of any program (true), of no program
    (false)."""
    ready: Ready = Ready()
    busy: Signs = Signs()
    waiting: Signs = Signs()
    error: list[ErrorPattern] = []
    limit: list[LimitPattern] = []
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
    parsers: Parsers = Parsers()
    model: bool = False
    """A model reads what is typed. To another program, a shell or what reads commands, each line is an order: what
    other agents write is not typed there unless a person has allowed it for that agent (`accept_agents`)."""
    rights: list[Right] = []
    """What its agents may do beyond an agent's rights, to others and never to themselves."""
    skills: list[Skill] = []
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
