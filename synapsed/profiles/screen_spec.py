"""Models of a profile's tables about the screen: the signs of each state, `[composer]` and `[delivery]`, dialogs, and
the answer as the screen shows it. `profile` has the rest.

Every pattern is a Python regular expression. A `Pattern` is searched in several rows at once, and its `^` and `$` are
the ends of a row; the signs of a state are searched in the last `rows` rows of the visible text.
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
    """Signs of one state. One is enough; the title is looked at first, then the progress."""

    title: Pattern | None = None
    progress: list[Literal["normal", "error", "indeterminate", "paused"]] = []
    """States of the terminal's progress bar (OSC 9;4). A tool may show one too, and leave it behind."""
    screen: list[Pattern] = []
    rows: int = Field(default=10, ge=1, le=200)
    """Number of rows, from the bottom of the visible text, that are searched."""

    @property
    def known(self) -> bool:
        """Returns whether there are any signs."""
        return self.title is not None or bool(self.progress or self.screen)


class BusySigns(Signs):
    """Signs of a program that works. It may also count its retries anywhere on the screen."""

    retries: list[Pattern] = []
    """Patterns for retries: their group `count`, or the whole match, is reported together with the sign of work."""


_Patterns = list[Pattern]


class Background(_Section):
    """Signs of work beside the turns: shells and subagents that go on while the program takes the next message. The
    parts of its status records report such work, too, and better."""

    rows: _Patterns = []  # Python 3.14 would take the field `list` for the type
    """Rows below the composer, or just above it: each match is one running thing, or as many as the group `count` says,
    described by the group `what`. A program that lists the parts in its status record needs no pattern."""
    command: str = ""
    """Command that is typed and submitted to stop that work, and again until no work is left. If it opens a list,
    `stop` ends the entry that is marked there, and `close` is pressed afterwards. Empty: no way is known."""
    list: Pattern | None = None
    """Recognises that list: `stop` is pressed only while it is shown."""
    stop: str = ""
    close: str = "\x1b"


class Ready(Signs):
    """Signs of a program that is ready. One with a composer is ready when that is empty; `title` must match, too."""

    quiet_ms: int = Field(default=250, ge=0, le=60_000)
    """Milliseconds without a change on the screen before a message is typed."""
    first: list[Pattern] = []
    """Text that must be on the visible screen before the program is ready for the first time, if it ever appears."""


class Composer(_Section):
    """Describes the composer, the place where the program takes a message.

    `line` finds it: its group `text` is the text in the composer (for a line-oriented program: the text after the
    prompt on the cursor's row). `placeholder` matches text that is not a draft; where `dim_is_placeholder`, faint cells
    do not count either.
    """

    line: Annotated[TextPattern, has("text")] | None = None
    at_cursor: bool = False
    """The row of the cursor must match (line-oriented programs); otherwise the last matching row counts."""
    usual: bool = False
    """`line` matches the usual forms of prompts, not those of one program: the prompt of the running program is
    learned, and then recognised (`terminal.line_prompts`)."""
    known: TextPattern | None = None
    """Rows that with `usual` are prompts although they have brackets (`In [1]: `), which would otherwise be taken for a
    default answer."""
    line_editors: list[str] = []
    """Names of programs that with `usual` edit lines without bracketed paste; a version after it does not matter."""
    continuation: TextPattern | None = None
    """The text that a program with a prompt at its cursor shows before a further line of a message: never an answer."""
    around: TextPattern | None = None
    """Distinguishes the composer's row from one that only looks like it (an earlier message, a menu): searched in the
    rows above it, its own and the three below, joined by line breaks."""
    rows_above: int = Field(default=3, ge=0, le=10)
    """Number of rows above the composer's row that are searched for `around`."""
    empty: TextPattern | None = None
    """Matches the composer's row and the three above and below while empty: a draft may begin with an empty line."""
    needed: bool = True
    """False: if the program's status record says that it rests, a message is typed even when no composer is found."""
    shows_cursor: bool = False
    """The program shows its cursor in the composer, and hides it elsewhere."""
    placeholder: TextPattern | None = None
    dim_is_placeholder: bool = True
    bracketed_paste: bool = False
    """The program takes input only while it has DECSET 2004 switched on."""


class Indented(_Section):
    """A prompt that takes blocks by indentation, each ended by an empty line. A message gets these empty lines, and has
    none within a block. All patterns but the first are for lines without indentation."""

    prompt: TextPattern
    """The prompt at which a message is typed like this."""
    opens: TextPattern
    """A line that opens a block."""
    goes_on: TextPattern
    """A line that continues the statement of the block above it."""
    leads: TextPattern
    """A line that belongs to the block below it."""


class DeliverySpec(_Section):
    """Says how a message is typed."""

    paste: Literal["auto", "bracketed", "plain"] = "auto"
    """auto: bracketed if the program switched bracketed paste on."""
    submit: str = Field(default="\r", min_length=1)
    settle_ms: int = Field(default=80, ge=0, le=10_000)
    """Quiet time of the screen after the paste, before `submit`."""
    settle_max_ms: int = Field(default=3000, ge=0, le=60_000)
    """`submit` is sent after this time at the latest, if the screen shows the message."""
    accept_ms: int = Field(default=2000, ge=100, le=60_000)
    """Time without a sign of acceptance after which the composer is checked and `submit` is sent once more, alone."""
    starting: Pattern | None = None
    """Text below the composer while it holds a message that was submitted, until the program has started with it."""
    refused: Annotated[Pattern, has("text")] | None = None
    """Matches the text in the place of an answer (`answer.start`) if the person's own hook refused the message; its
    group `text` is the reason."""
    neutralise: TextPattern | None = None
    """A message that matches would be a command; `neutral_prefix` is put before it."""
    neutral_prefix: str = " "
    neutralise_end: TextPattern | None = None
    """A message that matches would not be submitted by `submit`; `neutral_suffix` is put behind it."""
    neutral_suffix: str = " "
    indented: Indented | None = None
    newline: str = "\n"
    """Keys for a line break within a message."""
    clear: str = "\x15"
    """Keys that empty the composer; used only on text that synapsed itself typed."""
    erase: str = "\x15"
    """Keys that remove a row of a person's draft, also during a turn; used on a line that is for another agent."""
    max_bytes: int = Field(default=49 << 10, ge=1)
    """Limit in bytes (48 KiB and the line about the sender); a longer message is written into the agent's inbox, and
    `long_text` is typed."""
    long_text: FileWording = (
        "My message is in the file {path} ({bytes} bytes). Read the whole file, then do what it says."
    )
    file_text: FileWording = "Attached file: {path}"
    """Words that are typed for a file part, or for large data. `{path}` is absolute."""
    while_typing: Literal["after_pause", "hold", "deliver"] = "after_pause"
    """Effect of a person's draft in the composer on a message that goes through a channel, which does not touch it: the
    message waits until no key was pressed for a while, as long as the draft stands, or not at all."""
    provenance: bool = False
    """A model reads the typed text: below a message from others, a line names the sender, and how well known."""
    inbox_args: list[str] = []
    """Arguments that let the program read its inbox, `{inbox}`, without asking."""


def _types_the_words(keys: list[str]) -> list[str]:
    if not any("{text}" in each or "{line}" in each for each in keys):
        raise ValueError("must have {text} or {line} in one of them")
    return keys


class OwnWords(_Section):
    """Says how a dialog is answered with free text, beside its options."""

    row: Annotated[Pattern, has("key")]
    """The rows of the dialog that take free text; their keys alone are no answers. Without such a row it takes none."""
    keys: Annotated[list[str], AfterValidator(_types_the_words)]
    """Keys to type, each after the screen shows the effect of the one before: `{key}` is the first row's, `{text}` the
    words, pasted, `{line}` the same on one line."""


class ListedOption(_Section):
    """An option of a dialog that is not on the screen itself."""

    key: str
    """The person's answer for this option."""
    label: str
    keys: str | Annotated[list[str], Field(min_length=1)] | None = None
    """Keys to type; default: the option's key. Those of a list are typed one after the other, each after the screen
    shows the effect of the one before."""


class Dialog(_Section):
    """A blocking question by the program itself, drawn on the screen."""

    type: Literal["confirmation", "selection", "text", "password", "permission", "question", "trust", "login"]
    when: list[Pattern]
    """Patterns that must all be on the visible screen."""
    unless: list[Pattern] = []
    question: Pattern | None = None
    """Its group `text` (or the match) is the prompt's text; default: the first of `when`."""
    begins: Pattern | None = None
    """The first row of the question's text; default: the row below a rule or a box's edge, above the question."""
    ends: Pattern | None = None
    """The row below the question's text; default: the first option."""
    below: bool = False
    """The command in question stands below the question. The command may have text that `question` or `ends` matches:
    so the first match of `question` and the last match of `ends` count, and the options are read from the latter on."""
    ignore: Pattern | None = None
    """Lines of the dialog that do not belong to the question (tips): they may change while it stands."""
    option: Annotated[Pattern, has("key", "label")] | None = None
    """Finds the options: groups `key` and `label`."""
    options: list[ListedOption] = []
    """Options that are not on the screen themselves; they come after those on the screen."""
    keys: dict[str, str] = {}
    """Keys to type for an option, where these are not the option's key."""
    aliases: dict[str, str] = {}
    """Other words for options: `yes`, `no`, `allow`, `deny` → an option's key."""
    submit: str = ""
    """Keys that are typed after the option's key or the text."""
    own_words: OwnWords | None = None
    refusal: list[str] = []
    """Options after which the program stops the turn by itself."""
    from_first: list[str] = []
    """Options whose keys assume that the first option is selected, as at the beginning: they are not typed once a
    person has used the dialog, and may have moved the selection."""
    leave: str | None = None
    """Keys that close the dialog, if the keys that stop a turn or clear the composer opened it having nothing to do."""


class Prompts(_Section):
    enabled: bool = True
    dialogs: list[Dialog] = []
    refusal_note: str = (
        "The person refused what you asked for: do not do it. Go on without it, or say what you could not do."
    )
    """Text that is typed in the same turn where the program stops after a refusal and the model would not learn of it;
    empty: the turn ends there."""
    denial_note: str = "Something of that was denied: do not do it. The rest was not done: ask again if you need it."
    """The same where the approval policy refused one of several calls, and the program refused the others."""
    limit_note: str = "The usage limit is over: go on with what was asked."
    """Text that is typed in place of the message when a task goes on after a usage limit."""
    plan: list[Pattern] = []
    """Matches a permission that is about a plan, so that an inbox calls it one."""
    menus: bool = True
    """Reads menus, too, that no dialog of the profile describes, while there is no composer: menus with one marked row,
    and questions for Enter or for a letter in parentheses."""
    generic: bool = False
    """Looks for the generic questions of line-oriented programs ((y/n), [1/2/3], password:) at the cursor, too."""


class PutOff(_Section):
    """A message that the program took and has not begun with: the keys that stop a turn do not stop it."""

    shown: Annotated[Pattern, has("text")]
    """Matches one such message, and no other beside it; its group `text` is the beginning of the message, with single
    blanks for line breaks, and an ellipsis where it is cut."""
    keys: str
    """Keys that bring the message back into the composer, which must be empty."""


class Interrupt(_Section):
    """Says how a turn is stopped without ending the program."""

    keys: str | None = Field(default=None, min_length=1)
    signal: Annotated[str, AfterValidator(_signal)] | None = None
    repeat: int = Field(default=1, ge=1, le=5)
    gap_ms: int = Field(default=150, ge=0, le=5000)
    again: Pattern | None = None
    """Matches the screen of a program that has got the keys and asks for them once more: they are pressed again when
    this text is shown (at the latest after a second), and not after `gap_ms`. On a busy machine the program may read
    two presses in a row as another key."""
    screen: Pattern | None = None
    """Matches the screen after the stop."""
    status: Literal["idle"] | None = None
    """The status record that the program writes after a stop, where it writes another one after a turn that ended."""
    put_off: PutOff | None = None
    confirm_ms: int = Field(default=3000, ge=100, le=60_000)
    still_ms: int = Field(default=1000, ge=100, le=60_000)
    """A turn that was asked to stop has stopped when the composer is shown, neither the screen nor the title says that
    the program works, and neither has changed for this number of milliseconds, even if another source says that the
    turn is open."""


class AnswerSpec(_Section):
    """Says how an answer is read off the screen when no channel has it."""

    mode: Literal["lines", "blocks"] = "lines"
    """lines: the lines that the program printed between the message and its next prompt. blocks: the blocks that
    `start` begins, after the message's own."""
    start: TextPattern | None = None
    end: TextPattern | None = None
    strip: TextPattern | None = None
    """Removed from the beginning and from the end of each line: an indent, both sides of a frame."""
    rows: Annotated[int, Field(ge=5, le=1000)] | Literal[0] = 200
    """blocks: height of the window of a full-screen program whose answers no channel reports, while no terminal is
    attached; 0: the same height as for other programs."""
    channel_wait_ms: int = Field(default=1500, ge=0, le=60_000)
    """Milliseconds to wait for a channel that should report the turn's end, after the screen is ready again."""


class StreamSpec(_Section):
    """Text that is reported while a turn runs: the beginning of the answer, as far as it is certain."""

    enabled: bool = True
    source: Literal["screen", "channel"] = "screen"
    """Source of the text: the screen (for programs whose answers are `lines`: their output), or a channel."""
    end: TextPattern | None = None
    """Matches the row below the text while the program works (besides `answer.end`): its spinner."""
    skip: TextPattern | None = None
    """Blocks that `answer.start` begins as well but that are not text, such as tool calls: looked for in two lines."""
    indent: int = Field(default=2, ge=0, le=40)
    """Columns of a row that do not belong to a block's text: the indent before it (and after it, in a frame)."""
    breaks: bool = True
    """A row that ends early ends a line. False where paragraphs are at first drawn without a blank row between them."""
    flat: bool = False
    """True if code that is only indented is drawn like prose. A paragraph below the first is then reported once it is
    wrapped."""
    listed: int | None = Field(default=None, ge=0, le=8)
    """Columns by which an item of a list is drawn to the right of where it was written; its mark and its indentation
    are drawn as they are. None if lists are drawn differently: text is then reported up to the first list."""
    slack: int = Field(default=4, ge=0, le=80)
    """Number of columns that may stay free at the end of a wrapped row. In this range a wrapped line and an ended one
    look the same, and text is reported up to there only."""


class ErrorPattern(_Section):
    """The program's own words for a failed turn, in its own frame around the answers (never in an answer's prose);
    INTERRUPTED for one that was stopped."""

    pattern: Pattern
    code: ErrorCode | Literal["INTERRUPTED"] = "MODEL_ERROR"
