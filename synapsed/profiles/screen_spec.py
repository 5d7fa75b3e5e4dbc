"""Models of a profile's tables about the screen: the signs of each state, `[composer]` and `[delivery]`, dialogs, and
how an answer is read off it. `profile` has the rest.

Every pattern is a Python regular expression; those over the screen are searched line by line (MULTILINE) in the bottom
`rows` lines of what is visible.
"""

import signal
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from synapsed.profiles.channel_spec import ErrorCode, Pattern, TextPattern, has


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


def _names_path(wording: str) -> str:
    if "{path}" not in wording:
        raise ValueError("must have {path} in it")
    return wording


FileWording = Annotated[str, AfterValidator(_names_path)]
"""Words about a file: `{path}` and `{bytes}` are replaced."""


def _signal(name: str) -> str:
    if name not in signal.Signals.__members__:
        raise ValueError("must be the name of a signal, like SIGINT")
    return name


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


class BusySigns(Signs):
    """A program may count what it tries again, and say so anywhere on the screen."""

    retries: list[Pattern] = []
    """Their group `count`, or all of the words, is told beside what shows that it works."""


class Background(_Section):
    """What the program runs beside its turns: shells and subagents that go on while it takes the next prompt. The parts
    of its status records tell that, too, and better."""

    rows: list[Pattern] = []
    """Below the composer, or just above: what matches is one, or as many as the group `count` says, and the group
    `what` its words. A program that tells the parts of its status record needs none."""
    command: str = ""
    """What is typed and submitted to stop it, again until nothing is left. Where that opens a list, `stop` ends the one
    that is marked there, and `close` is pressed then. Empty: it is not known how it is stopped."""
    list: Pattern | None = None
    """What that list shows: `stop` is pressed where it stands, and nowhere else."""
    stop: str = ""
    close: str = "\x1b"


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
    """`line` is what prompts usually look like, of no program in particular: that of the one that runs is learned, then
    recognised (`terminal.line_prompts`)."""
    known: TextPattern | None = None
    """With `usual`: rows that are prompts although they have brackets (`In [1]: `), in which a default is looked for
    otherwise."""
    line_editors: list[str] = []
    """With `usual`: names of programs that edit lines without bracketed paste; a version behind a name does not
    count."""
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
    refused: Annotated[Pattern, has("text")] | None = None
    """What stands where `answer.start` begins an answer if a hook of the person's refused the message; `text` is
    why."""
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


class LimitPattern(_Section):
    """The program's words for a usage limit that is reached: in the text of a turn's failure, or of a dialog. Line
    breaks are taken for blanks. The group `until`, where it says when, may be a time, a date or a duration."""

    pattern: Pattern
    answer: str | None = None
    """The words are a dialog's, which is answered so: the turn then ends."""
    code: ErrorCode | None = None
    """They are about the account instead, which does not work: the turn fails with that."""


class AccountSpec(_Section):
    """The account that a program works with: what is its failure and no message's, and what tells that it works again.

    `$NAME` is a variable of the program's environment; what names one that is not set is passed over.
    """

    apart: list[str] = []
    """Variables by which accounts are told apart: agents of one program for which all are alike share one. Without any
    each agent has its own."""
    files: list[str] = []
    """Its credentials, and settings that say which account it is: once one of them changes it is tried again."""
    failures: list[Pattern] = []
    """A failed turn's words that are about the account (its bill, a model that it has not), besides AUTH_REQUIRED."""
    unreachable: list[Pattern] = []
    """Those of a turn that failed since the service cannot be reached; a group `url` may say which address."""
    endpoints: list[str] = []
    """Addresses of the service, the first of which that is known counts: it is tried again once that is reached."""
    remedy: str = ""
    """What a person does about it: the program's own command."""
