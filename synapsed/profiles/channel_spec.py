"""Models of a profile's tables about side channels and tool calls on the screen; `profile` has the rest."""

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic_core import PydanticKnownError

type ErrorCode = Literal["MODEL_ERROR", "RATE_LIMITED", "AUTH_REQUIRED", "CONTEXT_FULL", "TIMEOUT"]
"""Codes for the error of a failed turn (docs/http-api.md)."""


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


def _check_adapter(adapter: object) -> object:
    if adapter == "event-files":
        raise ValueError(
            "'event-files' is no longer supported: remove this channel, and its messages are typed; 'hooks' and "
            "'transcript' tell what happens, 'session-server' also takes messages"
        )
    return adapter


Pattern = Annotated[re.Pattern[str], _compiled(re.MULTILINE)]
"""A pattern in which `^` and `$` are the ends of a line."""
TextPattern = Annotated[re.Pattern[str], _compiled(re.NOFLAG)]
"""A pattern in which `^` and `$` are the ends of the whole text that is searched, which mostly is one line."""


def has(*groups: str) -> AfterValidator:
    def check(pattern: re.Pattern[str]) -> re.Pattern[str]:
        if missing := [name for name in groups if name not in pattern.groupindex]:
            raise ValueError(f"the pattern needs a group {' and '.join(f'(?P<{name}>…)' for name in missing)}")
        return pattern

    return AfterValidator(check)


class _Section(BaseModel):
    # Without `defer_build` each model would build a validator at import, and again as a part of `Profile`'s.
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class ChannelFields(_Section):
    """Dotted paths of the fields of a hook's payload."""

    session: str = "session_id"
    transcript: str = "transcript_path"
    prompt: str = "prompt"
    turn: str | None = None
    answer: str | None = None
    """The turn's last assistant message, only where it is exact; without it the transcript is read."""
    message_id: str | None = None
    piece: str | None = None
    """The next text of the message that the model is writing (`saying`)."""
    number: str | None = None
    """Index of the piece within its message, from 0."""
    error: list[str] = ["error"]
    """Every field that is not empty is searched for the code; the last of them is the message."""
    background: str | None = None
    """A list of all tasks in the program's background."""
    background_name: str = "name"
    """Name of an entry of that list."""
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
    """Selects the records of one kind in a transcript, and says where each has its fields: dotted paths, in which a
    number is an index of a list."""

    when: dict[str, list[str | bool]]
    """Paths, and the values that may stand there; all must match. `*` stands for any value but null and empty ones."""
    text: str | None = None
    """A string, or a list of content blocks; the texts of blocks with a type in `blocks`, or without a type, count."""
    match: TextPattern | None = None
    """A pattern that must match the text, or the record does not count; its group `text`, if any, is the text."""
    id: str | None = None
    """A later record with the same id is a newer version of the same message (or another piece, see `pieces`)."""
    turn: str | None = None


class UsageLine(_Section):
    """Selects the records that report the usage of a request to the model, and says where they have its numbers: paths;
    the values at the paths of one list are added up."""

    when: dict[str, list[str | bool]] = {}
    """The same as in `Line`."""
    id: str
    """Identifies the request: a later record with the same id replaces the earlier one."""
    model: str | None = None
    input: str
    output: list[str]
    cache_read: str | None = None
    cache_write: str | None = None
    cost: str | None = None
    """US dollars."""
    cached_apart: bool = True
    """False: `input` counts what a cache had, too."""


class Listing(_Section):
    """Says how to find a conversation by its file (`synapsectl adopt`); the beginning of the file is read."""

    id: str
    """Dotted path of the conversation's id in a record. Where `files` has `{conversation}`, a file with another id in
    its name does not hold a whole conversation."""
    cwd: str | None = None
    """Path of the field with the folder that the program ran in."""
    cwd_file: str | None = None
    """A file that has this folder, relative to the folder of the conversation's file."""
    prompt: list[Line]
    """Prompts from the person; the first one is shown."""
    ignore: TextPattern | None = None
    """A prompt that matches was not written by a person: a hook gave it to the model."""
    skip: list[Line] = []
    """A file that begins with such a record is no conversation with a person."""
    blocks: list[str] = ["text"]


class Transcript(_Section):
    """Says how to read the program's own record of a conversation: JSON records, one a line, only ever appended to."""

    files: str | None = None
    """Place of the file if no hook named it: a shell pattern under the program's home directory, with `{conversation}`
    in it; the newest match counts."""
    moved_by: dict[str, str] = {}
    """Environment variables, and the beginning of `files` that each replaces if set: the folder is elsewhere then."""
    time: str = "timestamp"
    """Path of a record's time (RFC 3339)."""
    user: list[Line] = []
    """Records that begin a turn: prompts from the person. With `text`, records without a text do not count."""
    assistant: list[Line] = []
    continues: list[Line] = []
    """Messages from the model after which the turn certainly goes on: they call a tool."""
    ended: list[Line] = []
    """Records that end the turn; `text`, if there is one, is the answer itself."""
    interrupted: list[Line] = []
    failed: list[Line] = []
    """Records of a turn that the program gave up; they are looked at before `ended`."""
    refused: list[Line] = []
    """Records of a prompt that the person's own hook refused: no other record has it; `text` has the reason."""
    sent_back: list[Line] = []
    """Records in which the person's own hook sent the model back to work: the next record of `user` has the hook's
    words, and begins no turn."""
    blocks: list[str] = ["text"]
    pieces: bool = False
    wait_ms: int = Field(default=300, ge=0, le=10_000)
    """Milliseconds that the file may lag behind a hook which reported the end of the turn."""
    usage: UsageLine | None = None
    listing: Listing | None = None


class ChoiceSpec(_Section):
    """A choice that a person is offered as the answer to a question that the program asks over its channel."""

    key: str
    label: str
    reply: dict[str, Any]
    """The answer in the program's own format; a value that is only `{=PATH}` is replaced by the question's value at
    that path, also within the label."""
    aliases: list[str] = []
    """Other words for this choice: `yes`, `no`, `allow`, `deny`."""
    needs: str | None = None
    """The choice is offered only where the question has a value at this path."""


class DecisionSpec(_Section):
    """Says how the program asks for permission to use a tool, and how to answer. `tool`, `command` and `subject` are
    dotted paths into its report, in which `*` stands for each item of a list; the first path that leads to a text
    counts. In `allow` and `deny`, `{reason}` is replaced; if one of them is empty, this answer cannot be given over the
    channel, and the program asks its person."""

    tool: str = "tool_name"
    command: list[str] = ["tool_input.command", "tool_input.cmd"]
    """Paths of a shell command."""
    subject: list[str | list[str]] = [["tool_input.file_path", "tool_input.path", "tool_input.url"]]
    """Paths of the things that another tool uses: file paths, addresses. Those of an inner list count together."""
    edit: list[str] = ["tool_input", "metadata", "request.input", "item"]
    """Paths of a call's input, from which the diff of an edit is made."""
    shell: list[str] | None = None
    """The tools whose input has nothing that matters but a command; None: each tool that has a command. A model may
    give any other tool an input that the rules do not look at."""
    allow: dict[str, Any] = {}
    deny: dict[str, Any] = {}
    rules_only: bool = False
    """The program reports every call over this channel, even one that needs no permission: only the deny rules decide
    here, and the program asks in another place about the other calls."""
    dialog: str | None = None
    """Name of the dialog of an allowed call without `allow`: answered if it shows exactly that command or subject."""
    called: str | None = None
    """Name of the tool, also in rules, where the question does not name it."""
    question: str = "Allow {tool}?"
    """Question to the person on a channel that delivers; `{tool}` and `{=PATH}` are replaced. The command, or the
    subject of the call, stands below it."""
    choices: list[ChoiceSpec] = []
    """Answers that the person can choose there."""
    deny_error: TextPattern | None = None
    """Matches the error of a call that `deny` refused. A turn that ends with such an error was not stopped by a person:
    together with that call the program refuses everything else that it asks at that moment, and stops."""

    def answer(self, verdict: str, reason: str) -> dict[str, Any] | None:
        """Returns the verdict "allow" or "deny" in the program's own format; None if the profile has no answer for it,
        and for any other verdict."""
        template = {"allow": self.allow, "deny": self.deny}.get(verdict)
        return {key: _filled(value, reason) for key, value in template.items()} if template else None


def _filled(value: Any, reason: str) -> Any:
    if isinstance(value, str):
        return value.replace("{reason}", reason)
    if isinstance(value, dict):
        return {key: _filled(item, reason) for key, item in value.items()}
    return [_filled(item, reason) for item in value] if isinstance(value, list) else value


ACP_REQUEST = "session/request_permission"
"""The method with which a program that speaks ACP asks for permission."""

ACP_DECISION = DecisionSpec(  # noqa: S604 - `shell` names tools, and starts nothing
    tool="kind",
    command=["command"],
    subject=["paths.*"],
    shell=["execute"],
    allow={"kind": "allow_once"},
    deny={"kind": "reject_once"},
)
"""The `DecisionSpec` for all programs that speak ACP; the options are chosen by their kind."""


class ToolLine(_Section):
    """Selects a report of a tool call, and the places of its fields (dotted paths). The first line that fits counts."""

    on: str
    """Name of the event."""
    when: dict[str, list[str | bool]] = {}
    """The same as in `Line`."""
    status: Literal["started", "completed", "failed"]
    """Status of the call; one that is `completed` and has an `error` has failed."""
    tool: str = "tool_name"
    input: str = "tool_input"
    output: list[str] = ["tool_response"]
    """Paths of the output; the first that has a value counts."""
    error: list[str] = ["error"]
    call: str | None = "tool_use_id"
    """The program's own id of the call, the same at its start and its end."""
    duration_ms: str | None = None
    """Path of the duration. Without it, the time between the reports counts."""
    at_ms: str | None = None
    """Path of the call's time (Unix milliseconds), where this is not the time of the report."""
    denied: TextPattern | None = None
    """Matches the error of a call that was not allowed."""


class Channel(_Section):
    """A side channel: the adapter that speaks it, and the way it is added to a launch.

    In `args`, `env` and `files` these are replaced: `{hook:EVENT}` the shell command that reports EVENT,
    `{hook_json:EVENT}` the same escaped for a JSON or TOML string, `{decide:EVENT}` and `{decide_json:EVENT}` the
    command that also waits for a decision (`decisions`) and prints it, `{file:NAME}` the path of a file of `files`,
    `{sha256:NAME}` the hash of a text of `hashed`, `{port}` a free port, `{server_socket}`, `{agent_dir}`,
    `{conversation}`.
    """

    adapter: Annotated[Literal["hooks", "session-server", "app-server"], BeforeValidator(_check_adapter)]
    rank: int = 10
    """The channel with the lowest rank is asked first."""
    delivers: bool = False
    """Messages go through this channel, and not through the terminal, while it reaches the program."""
    new_when: Pattern | None = None
    """Matches the screen of a program that shows no conversation, as after a person's command for a new one: the next
    message to a session server then begins a conversation."""
    args: list[str] = []
    companion: list[str] = []
    """Command line of a server that runs beside the program and ends with it; `{program}` is the program itself,
    `{server_socket}` a socket that only this user can reach. When the server listens, the program is started with
    `args`; if it does not come up, the program is started without them and with the channels that this one
    `replaces`."""
    companion_takes: list[str] = []
    """Options of the program's command line, each with a value, that the companion is given instead of the program."""
    companion_drops: list[str] = []
    """Options of the program's command line that are left out when it runs beside a companion."""
    replaces: list[str] = []
    """Channels that are not added to a launch that has this channel."""
    env: dict[str, str] = {}
    files: dict[str, dict[str, Any]] = {}
    """Files written as JSON (0600) for each launch, by name."""
    hashed: dict[str, Annotated[str, AfterValidator(_hashes_nothing)]] = {}
    """Texts, by name, whose SHA-256 in hexadecimal digits a launch is given: some programs run only hooks that a person
    has reviewed, and know them by this hash. The other placeholders are replaced in them first."""
    events: dict[str, FactKind] = {}
    """Maps each of the program's events to its meaning."""
    fields: ChannelFields = ChannelFields()
    decisions: dict[str, DecisionSpec] = {}
    """The events that ask for a decision."""
    tools: list[ToolLine] = []
    """Reports of tool calls."""
    called: dict[str, str] = {}
    """Names of tool calls in events, by the kind of an app server's item; another kind is its own name."""
    usage: UsageLine | None = None
    """Usage in the messages of a server. (For hooks: `transcript.usage`.)"""
    error_codes: dict[Pattern, ErrorCode] = {}
    """Maps a pattern in an error's text to its code; the first match counts, and without one it is MODEL_ERROR."""
    transcript: Transcript | None = None

    def error_code(self, text: str) -> ErrorCode:
        return next((code for pattern, code in self.error_codes.items() if pattern.search(text)), "MODEL_ERROR")


TOLD_BY_SCREEN = frozenset({"tool", "output", "error"})
"""Groups of a pattern of `ShownTools` that are not part of the tool's input."""

type _Lines = Annotated[list[Pattern], Field(max_length=20)]


class ShownTools(_Section):
    """Says how the program shows its tool calls on its screen, which is read where none of its channels reports them.

    The patterns are searched in the text below the message of the running turn, and may span rows. The group `tool` is
    the tool's name, `output` and `error` are the result of the call, and any other group is part of the tool's input,
    under the group's name.
    """

    tool: str | None = Field(default=None, min_length=1, max_length=100)
    """Name of the tool for patterns that have no group `tool`."""
    started: _Lines = []
    """Matches a call that runs, or that waits for a person's permission."""
    completed: _Lines = []
    """Matches a call that has ended; without a group for tool or input, the nearest running call above is meant."""
    failed: _Lines = []
    """Matches a call that has failed; a text that matches here too is not `completed`."""
    denied: Pattern | None = None
    """Matches a failed call that was not allowed."""

    @property
    def known(self) -> bool:
        """Returns whether the profile has any of these patterns."""
        return bool(self.started or self.completed or self.failed)

    @model_validator(mode="after")
    def _tells_calls(self) -> "ShownTools":
        if self.started and not self.completed:
            raise ValueError("'started' needs 'completed' too: a call that is seen to start must be seen to end")
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
