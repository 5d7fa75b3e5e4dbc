"""What a profile says of its program's side channels, and of the tool calls on its screen; `profiles` has the rest."""

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic_core import PydanticKnownError

type ErrorCode = Literal["MODEL_ERROR", "RATE_LIMITED", "AUTH_REQUIRED", "CONTEXT_FULL", "TIMEOUT"]
"""What a failed turn's error is called (docs/http-api.md)."""


def _compiled(flags: re.RegexFlag) -> BeforeValidator:
    def read(pattern: object) -> re.Pattern[str]:
        if isinstance(pattern, re.Pattern):
            return pattern
        if not isinstance(pattern, str):
            raise PydanticKnownError("string_type")
        try:
            return re.compile(pattern, flags)
        except re.error as error:
            raise ValueError(f"not a regular expression: {error}") from None

    return BeforeValidator(read)


def _hashes_nothing(text: str) -> str:
    if "{sha256:" in text:
        raise ValueError("a text to be hashed cannot have the hash of another")
    return text


def _is_there(adapter: object) -> object:
    if adapter == "event-files":
        raise ValueError(
            "'event-files' is no longer supported: remove this channel, and its messages are typed; 'hooks' and "
            "'transcript' tell what happens, 'session-server' also takes messages"
        )
    return adapter


Pattern = Annotated[re.Pattern[str], _compiled(re.MULTILINE)]
"""`^` and `$` are the ends of a line."""
TextPattern = Annotated[re.Pattern[str], _compiled(re.NOFLAG)]
"""`^` and `$` are the ends of the whole text that it is searched in, which mostly is one line."""


def has(*groups: str) -> AfterValidator:
    def check(pattern: re.Pattern[str]) -> re.Pattern[str]:
        if missing := [name for name in groups if name not in pattern.groupindex]:
            raise ValueError(f"the pattern needs a group {' and '.join(f'(?P<{name}>…)' for name in missing)}")
        return pattern

    return AfterValidator(check)


class _Section(BaseModel):
    # Each would build a validator of its own when it is imported, and again as a part of `Profile`'s.
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class ChannelFields(_Section):
    """Where a hook's payload has what is wanted: dotted paths."""

    session: str = "session_id"
    transcript: str = "transcript_path"
    prompt: str = "prompt"
    turn: str | None = None
    answer: str | None = None
    """The turn's last assistant message, only where it is exact; else the transcript is read."""
    message_id: str | None = None
    piece: str | None = None
    """The next text of the message that is being said (`saying`)."""
    number: str | None = None
    """Which piece of its message that is, from 0."""
    error: list[str] = ["error"]
    """All that have something are searched for the code; the last of them is the message."""
    background: str | None = None
    """A list of all that runs in the program's background."""
    background_name: str = "name"
    """What one of those is called, in that."""
    tool: str = "tool_name"
    tool_input: str = "tool_input"


FactKind = Literal[
    "session",
    "accepted",
    "said",
    "saying",
    "answered",
    "ended",
    "failed",
    "interrupted",
    "permission",
]


class Line(_Section):
    """Which records of a transcript are of one kind, and where each has what is wanted: dotted paths, in which a
    number is a place in a list."""

    when: dict[str, list[str | bool]]
    """All must hold: a path, and the values that may stand there; `*` stands for any but null and empty ones."""
    text: str | None = None
    """A string, or a list of content blocks, of which the texts of those with a type in `blocks`, or without any type,
    count."""
    match: TextPattern | None = None
    """Found in that text, or the record does not count; its group `text`, if it has one, is the text then."""
    id: str | None = None
    """A later record with the same id is a newer version of the same message (or another piece, see `pieces`)."""
    turn: str | None = None


class UsageLine(_Section):
    """Which records tell what a request to the model has used; paths, of which those of one list are added up."""

    when: dict[str, list[str | bool]] = {}
    """As in `Line`."""
    id: str
    """A later record with the same id tells of the same request."""
    model: str | None = None
    input: str
    output: list[str]
    cache_read: str | None = None
    cache_write: str | None = None
    cost: str | None = None
    """In US dollars."""
    cached_apart: bool = True
    """False: `input` counts what a cache had, too."""


class Listing(_Section):
    """How a person finds a conversation again by its file (`synapsectl adopt`); read from the file's beginning."""

    id: str
    """Where a record has the conversation's id: a dotted path. Where `files` has `{conversation}`, a file that has
    another one in its name is not of a whole conversation."""
    cwd: str | None = None
    """Where a record has the folder that the program ran in."""
    cwd_file: str | None = None
    """A file that has it, relative to the folder of the conversation's file."""
    prompt: list[Line]
    """Prompts of the person's; the first one is shown."""
    ignore: TextPattern | None = None
    """A prompt that matches was not written by a person: what a hook told the model."""
    skip: list[Line] = []
    """A file that begins with such a record is no conversation of a person's."""
    blocks: list[str] = ["text"]


class Transcript(_Section):
    """How the program's own record of a conversation is read: JSON records, one a line, only ever appended to."""

    files: str | None = None
    """Where the file is if no hook named it: a shell pattern under the program's home directory, `{conversation}` in
    it; the newest that matches counts."""
    moved_by: dict[str, str] = {}
    """Variables of the environment, and the beginning of `files` that each stands for where it is set: the program then
    keeps that folder elsewhere."""
    time: str = "timestamp"
    """Where a record has its time (RFC 3339)."""
    user: list[Line] = []
    """What begins a turn: a prompt of the person's. With `text`, records without any do not count."""
    assistant: list[Line] = []
    continues: list[Line] = []
    """Messages of the model's after which the turn surely goes on: they call a tool."""
    ended: list[Line] = []
    """The turn is over; `text`, where there is one, is the answer itself."""
    interrupted: list[Line] = []
    failed: list[Line] = []
    """The program gave up; looked at before `ended`."""
    refused: list[Line] = []
    """A hook of the person's has refused the prompt, which stands nowhere; `text` says why."""
    sent_back: list[Line] = []
    """A hook of the person's has sent the model back to work: the next record of `user` has the hook's words, and
    begins no turn."""
    blocks: list[str] = ["text"]
    pieces: bool = False
    wait_ms: int = Field(default=300, ge=0, le=10_000)
    """How long after a hook has told the turn's end the file may not tell it yet."""
    usage: UsageLine | None = None
    listing: Listing | None = None


class ChoiceSpec(_Section):
    """One way to answer a question of the program's over its channel, as a person is offered it."""

    key: str
    label: str
    reply: dict[str, Any]
    """The answer in the program's own words; a value that is `{=PATH}` alone is replaced by what the question has
    there, and so it is in the label's words."""
    aliases: list[str] = []
    """Other words for it: `yes`, `no`, `allow`, `deny`."""
    needs: str | None = None
    """Offered only where the question has something at this path."""


class DecisionSpec(_Section):
    """How the program asks whether a tool may be used, and how it is answered. `tool`, `command` and `subject` are
    dotted paths into what it tells, `*` in them stands for each item of a list; the first that leads to a text counts.
    In `allow` and `deny` `{reason}` is replaced; one that is empty cannot be answered this way, the program then asks
    its person."""

    tool: str = "tool_name"
    command: list[str] = ["tool_input.command", "tool_input.cmd"]
    """A shell command."""
    subject: list[str | list[str]] = [["tool_input.file_path", "tool_input.path", "tool_input.url"]]
    """What another tool is about: paths, addresses. Those of an inner list count together."""
    edit: list[str] = ["tool_input", "metadata", "request.input", "item"]
    """Where what a call was given may stand, of which an edit is made a diff."""
    shell: list[str] | None = None
    """The tools that are called with a command and nothing else that counts; None: each that has one. A model may give
    any other whatever its rules do not look at."""
    allow: dict[str, Any] = {}
    deny: dict[str, Any] = {}
    rules_only: bool = False
    """The program tells of each call here, asked for or not: only what a deny rule means is decided, all else where it
    asks."""
    dialog: str | None = None
    """Where there is no `allow`: an allowed call's dialog, if it shows that very command or subject, is answered so."""
    called: str | None = None
    """What the tool is called, in rules too, where the question does not say it."""
    question: str = "Allow {tool}?"
    """What a person is asked over a channel that delivers; `{tool}` and `{=PATH}` are replaced. The command, or what
    else the call is about, stands below it."""
    choices: list[ChoiceSpec] = []
    """How a person may answer there."""
    deny_error: TextPattern | None = None
    """What the error of a call has that `deny` refused. A turn that ends over one was not stopped by a person: with
    that call the program refuses whatever else it asks about at that moment, and stops there."""

    def answer(self, verdict: str, reason: str) -> dict[str, Any] | None:
        """Returns "allow" or "deny" in the program's own words; None where it has none for it, or for any other."""
        template = {"allow": self.allow, "deny": self.deny}.get(verdict)
        return {key: _filled(value, reason) for key, value in template.items()} if template else None


def _filled(value: Any, reason: str) -> Any:
    if isinstance(value, str):
        return value.replace("{reason}", reason)
    if isinstance(value, dict):
        return {key: _filled(item, reason) for key, item in value.items()}
    return [_filled(item, reason) for item in value] if isinstance(value, list) else value


ACP_REQUEST = "session/request_permission"
"""By which a program that speaks ACP asks."""

ACP_DECISION = DecisionSpec(  # noqa: S604 - `shell` names tools, and starts nothing
    tool="kind",
    command=["command"],
    subject=["paths.*"],
    shell=["execute"],
    allow={"kind": "allow_once"},
    deny={"kind": "reject_once"},
)
"""The same for each of them; the options are chosen by their kind."""


class ToolLine(_Section):
    """Which report of the program tells of a tool call, and where it has what is wanted (dotted paths). The first that
    fits counts."""

    on: str
    """The event."""
    when: dict[str, list[str | bool]] = {}
    """As in `Line`."""
    status: Literal["started", "completed", "failed"]
    """One that is `completed` and has an `error` has failed."""
    tool: str = "tool_name"
    input: str = "tool_input"
    output: list[str] = ["tool_response"]
    """The first that has something counts."""
    error: list[str] = ["error"]
    call: str | None = "tool_use_id"
    """The program's own id of the call, the same at its start and its end."""
    duration_ms: str | None = None
    """Where it has one. Else the time between the reports counts."""
    at_ms: str | None = None
    """Its time (Unix milliseconds), where that is not the report's own."""
    denied: TextPattern | None = None
    """An error in which this is found says that the call was not allowed."""


class Channel(_Section):
    """One side channel: which adapter speaks it, and how it is injected into a launch.

    In `args`, `env` and `files` these are replaced: `{hook:EVENT}` the shell command that reports EVENT,
    `{hook_json:EVENT}` the same escaped for a JSON or TOML string, `{decide:EVENT}` and `{decide_json:EVENT}` the
    command that also waits for a decision (`decisions`) and prints it, `{file:NAME}` the path of a file of `files`,
    `{sha256:NAME}` the hash of a text of `hashed`, `{port}` a free port, `{server_socket}`, `{agent_dir}`,
    `{conversation}`.
    """

    adapter: Annotated[Literal["hooks", "session-server", "app-server"], BeforeValidator(_is_there)]
    rank: int = 10
    """The lowest is asked first."""
    delivers: bool = False
    """Messages go through it, and not through the terminal, while the program can be reached this way."""
    new_when: Pattern | None = None
    """What the program's screen has while it shows no conversation, as after a person's command for a new one: the
    message that is then given to a session server begins one."""
    args: list[str] = []
    companion: list[str] = []
    """A server that runs beside the program, with this command line, and ends with it; `{program}` is the program
    itself, `{server_socket}` a socket that only this user can reach. Once it listens the program is started with
    `args`; where it does not, without them and with what the channel `replaces`."""
    companion_takes: list[str] = []
    """Options of the program's command line, each with a value, that the companion is given in its stead."""
    companion_drops: list[str] = []
    """Options of the program's command line that it is not given beside a companion."""
    replaces: list[str] = []
    """Channels that are not injected where this one is."""
    env: dict[str, str] = {}
    files: dict[str, dict[str, Any]] = {}
    """Files written as JSON (0600) for each launch, by name."""
    hashed: dict[str, Annotated[str, AfterValidator(_hashes_nothing)]] = {}
    """Texts, by name, of which a launch is given the SHA-256 in hexadecimal digits: programs that run only the hooks
    that somebody has looked at know them by one. The other placeholders are replaced in them first."""
    events: dict[str, FactKind] = {}
    """What each of the program's events means."""
    fields: ChannelFields = ChannelFields()
    decisions: dict[str, DecisionSpec] = {}
    """The events that ask for a decision."""
    tools: list[ToolLine] = []
    """What tells of tool calls."""
    called: dict[str, str] = {}
    """What tool calls are called in events, by the kind of an app server's item; of others that stays their name."""
    usage: UsageLine | None = None
    """Where the messages of a server tell what they used. (Those of hooks: `transcript.usage`.)"""
    error_codes: dict[Pattern, ErrorCode] = {}
    """What is found in an error's text → its code; the first that matches, else MODEL_ERROR."""
    transcript: Transcript | None = None

    def error_code(self, text: str) -> ErrorCode:
        """What an error of this `text` is called."""
        return next((code for pattern, code in self.error_codes.items() if pattern.search(text)), "MODEL_ERROR")


TOLD_BY_SCREEN = frozenset({"tool", "output", "error"})
"""Groups of a pattern of `ShownTools` that are no part of what the tool was given."""

type _Lines = Annotated[list[Pattern], Field(max_length=20)]


class ShownTools(_Section):
    """How the program shows its tool calls on its screen: read where none of its channels tells of them.

    The patterns are searched in the text below the message of the turn that runs, and may span rows. Their groups:
    `tool` is the tool's name, `output` and `error` are what came of the call, and any other is a part of what the tool
    was given, under the group's name.
    """

    tool: str | None = Field(default=None, min_length=1, max_length=100)
    """What the tool is called where a pattern has no group `tool`."""
    started: _Lines = []
    """A call that runs, or that a person is asked about."""
    completed: _Lines = []
    """A call that has ended; without any group of `tool` or its input the nearest one above that runs."""
    failed: _Lines = []
    """The same of one that has failed; what fits this, too, is not `completed`."""
    denied: Pattern | None = None
    """A failed call that shows this was not allowed."""

    @property
    def known(self) -> bool:
        """Whether there is any."""
        return bool(self.started or self.completed or self.failed)

    @model_validator(mode="after")
    def _tells_calls(self) -> "ShownTools":
        if self.started and not self.completed:
            raise ValueError("a call that is seen to start must be seen to end: 'completed' says how that looks")
        for kind in ("started", "completed", "failed"):
            for pattern in getattr(self, kind):
                groups = pattern.groupindex.keys()
                said = f"{pattern.pattern!r} in {kind!r} does not say"
                of_its_own = kind == "started" or groups - {"output", "error"}
                if of_its_own and "tool" not in groups and self.tool is None:
                    raise ValueError(f"{said} which tool: it needs a group (?P<tool>…), or the key 'tool' beside it")
                if not of_its_own and not self.started:
                    raise ValueError(
                        f"{said} of which call: it needs a group for what the tool was given, or 'started' a pattern "
                        "for the line above"
                    )
        return self
