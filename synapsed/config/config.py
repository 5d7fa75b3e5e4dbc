"""The user's configuration (docs/configuration.md) as frozen models: the meaning and the allowed values of each key.
`config_files` reads it from its files, and checks rules over several sections."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from synapsed.model.agent import PortChoice
from synapsed.outgoing import OutgoingConfig, PushPolicy


@dataclass(frozen=True, slots=True)
class SectionFile:
    """A file `name` beside config.toml, which a verb of the part writes: a section's keys at the top level. A key in
    config.toml wins; tables are merged key by key. `lacking` returns, from the section and the file's path, an error
    about a required key that is in neither."""

    name: str
    kind: type[BaseModel]
    lacking: Callable[[Any, Path], str | None]


@dataclass(frozen=True, slots=True)
class ConfigKey:
    """A key of the configuration: its type for pydantic, and its default."""

    kind: Any
    default: Any
    restart: bool = False
    """Another value takes effect at the next start of the daemon."""
    changes: Callable[[Any, Any], Sequence[str]] | None = None
    """Returns the changes, in words, from the former value to a new one that takes effect at once; None: the report
    only says that the key changed."""
    file: SectionFile | None = None
    """File that completes the section. The section is None if it is in neither file."""


class Section(BaseModel):
    """Base of the configuration's models: an unknown key is refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def _like(pattern: str, words: str) -> AfterValidator:
    """Returns a check that the whole text matches `pattern`; `words` describe that form."""

    def check(value: str) -> str:
        if re.fullmatch(pattern, value) is None:
            raise ValueError(f"must be {words}")
        return value

    return AfterValidator(check)


type AttachKey = Literal["next", "previous", "inbox", "list", "scrollback", "status", "detach", "help"]


class AttachConfig(Section):
    """`[attach]`: settings of attached terminals."""

    clipboard: Literal["deny", "allow"] = "deny"
    """`allow` lets a program set the clipboard of a terminal that is attached to it (OSC 52 and the like)."""
    status: bool = False
    """Shows the agent's name and the number of agents that need a person in the last row of an attached terminal."""
    title: bool = True
    """Shows in the terminal's title how many agents need a person, while there are any."""
    bell: bool = True
    """Rings the terminal's bell when one more agent needs a person."""
    scrollback: int = Field(default=0, ge=0, le=5000)
    """Lines of earlier output that an attached terminal gets into its own scrollback."""
    wheel: bool = False
    """Makes the wheel scroll back too, while the program does not take the mouse."""
    keys: dict[AttachKey, str] = {}
    """Keys for actions, if they differ from the defaults; each is pressed after the first of the keys that detach."""


class PostingConfig(Section):
    """`[a2a]`, whose name was released: settings for notices to receivers elsewhere, for every sender of them."""

    push: PushPolicy = PushPolicy()


PATTERNS_MAX = 200

_Variable = Annotated[
    str,
    _like(
        r"[A-Za-z0-9_*?!\[\]-]{1,256}",
        "a variable's name, or a shell pattern of names such as 'GIT_*': letters, digits, '_', '*', '?' and '[...]'",
    ),
]


class EnvironmentConfig(Section):
    """`[environment]`: variables of a shell that go to agents, and to a daemon that a verb starts, if that differs from
    the table (`synapsed.process.inherited`)."""

    keep: list[_Variable] = Field(default=[], max_length=PATTERNS_MAX)
    """Variables that are always passed on, in spite of the table and `drop`."""
    drop: list[_Variable] = Field(default=[], max_length=PATTERNS_MAX)
    """Variables that are not passed on."""
    update: list[_Variable] = Field(default=[], max_length=PATTERNS_MAX)
    """Variables of a person's shell that `restart` and `attach` bring besides those of its login."""


class Keep(Section):
    """`keep = {...}`: number and age of finished tasks that are kept; 0 is without limit."""

    tasks: int = Field(default=100_000, ge=0)
    days: float = Field(default=90.0, ge=0, le=36_500)


class StoreConfig(Section):
    """`[store]`."""

    keep: Keep = Keep()
    backup_days: float = Field(default=7.0, ge=0, le=36_500)
    """Days that a copy of the database is kept, which is made once a day; 0: no copies are made."""


class InstructionsConfig(Section):
    """`[instructions]`: instructions for agents about themselves and the others, if their profile can give them."""

    enabled: bool = True
    language: Literal["en", "ja"] = "en"
    text: str | None = Field(default=None, min_length=1, max_length=20_000)
    """Text in place of synapsed's own; `{name}`, `{id}`, `{type}`, `{port}`, `{others}`, `{list}`, `{send}` and
    `{reply}` are filled in."""


class RestartPolicy(Section):
    """`restart = {...}`; times are seconds. `agents/restart_policy.py` explains each key."""

    policy: Literal["never", "on-failure", "always"] = "on-failure"
    fine_codes: list[int] | None = None
    """Exit codes that are not a failure; default: those of the profile."""
    initial: float = Field(default=0.5, gt=0, le=3600)
    factor: float = Field(default=2.0, ge=1, le=10)
    maximum: float = Field(default=60.0, gt=0, le=86_400)
    jitter: float = Field(default=0.1, ge=0, le=0.9)
    stable: float = Field(default=60.0, gt=0, le=86_400)
    limit: int = Field(default=8, ge=1, le=1000)
    window: float = Field(default=120.0, gt=0, le=86_400)
    retry: float = Field(default=300.0, gt=0, le=86_400)

    @model_validator(mode="after")
    def _ordered(self) -> "RestartPolicy":
        if self.maximum < self.initial:
            raise ValueError("maximum must not be below initial")
        return self


def address_and_port(value: str) -> str:
    """Returns `value` if it is an address and a port. Raises ValueError otherwise."""
    host, colon, port = value.rpartition(":")
    if not colon or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise ValueError("must be an address and a port, like 127.0.0.1:8090 or [::1]:8090")
    host = host.removeprefix("[").removesuffix("]")
    if host != "localhost":
        try:
            ip_address(host)
        except ValueError:
            raise ValueError(f"{host!r} is no IP address") from None
    return value


def _listen_address(value: str) -> str:
    host = address_and_port(value).rpartition(":")[0].removeprefix("[").removesuffix("]")
    if host != "localhost" and not ip_address(host).is_loopback:
        raise ValueError(
            "only loopback addresses are served without TLS: whoever reaches this port can type into agents; "
            "'tls_listen' is for others"
        )
    return value


def _network(text: str) -> str:
    try:
        ip_network(text)
    except ValueError as error:
        raise ValueError(f"must be an address or a network, as 10.0.0.0/8: {error}") from error
    return text


class ApiConfig(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    listen: Annotated[str, AfterValidator(_listen_address)] = "127.0.0.1:8090"
    """Address and port of the main listener; port 0 takes a free one."""
    agent_ports: bool = True
    """Serve each agent's routes at the root of its own port."""
    allowed_hosts: list[str] = []
    """Names accepted in `Host` besides localhost and the loopback addresses."""
    trusted_proxies: list[Annotated[str, AfterValidator(_network)]] = []
    """Addresses and networks of reverse proxies whose `X-Forwarded-*` is believed."""

    @property
    def host(self) -> str:
        return self.listen.rpartition(":")[0].removeprefix("[").removesuffix("]")

    @property
    def address(self) -> str:
        """The numeric address of `host`."""
        return "127.0.0.1" if self.host == "localhost" else self.host

    @property
    def port(self) -> int:
        return int(self.listen.rpartition(":")[2])


Size = Annotated[str, _like(r"[1-9][0-9]*[KMGT]?|[1-9][0-9]?%|100%", "a size like '2G', or a share like '25%'")]
"""Bytes (`"2G"`), or a share of the machine's memory (`"25%"`)."""


class Limits(Section):
    """`limits = {...}`: resources for one agent, with all that it starts; for agents that are units of systemd."""

    memory: Size | None = None
    cpu: Annotated[str, _like(r"[1-9][0-9]*%", "a share of one processor, like '150%'")] | None = None
    """Share of one processor: `"150%"` is one and a half."""
    tasks: int | None = Field(default=None, ge=1)
    """Processes and threads."""


class ParkPolicy(Section):
    """`park = {...}`: the time when the program of an idle agent is ended until the next message. `agents/parking.py`
    defines idle; without either key it never happens."""

    idle_timeout: float | None = Field(default=None, ge=1, le=31_536_000)
    """Seconds of idleness."""
    memory_below: Size | None = None
    """Free memory of the machine below which agents are parked (`"2G"`, or `"10%"` of it): the longest idle first."""

    @property
    def on(self) -> bool:
        return self.idle_timeout is not None or self.memory_below is not None


Duration = Annotated[str, _like(r"[1-9][0-9]{0,5}[smhd]", "a time like '90s', '30m', '2h' or '1d'")]
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


def seconds_of(duration: str) -> int:
    return int(duration[:-1]) * _SECONDS[duration[-1]]


class AgentConfig(Section):
    """`[agents.NAME]`."""

    profile: str | None = None
    """Default: the agent's name."""
    command: str | None = None
    """The program, if it is not the profile's."""
    cwd: str | None = None
    """Working directory, `~` allowed; default: the user's home."""
    args: list[str] = []
    env: dict[str, str] = {}
    env_file: str | None = None
    """A file of NAME=value lines, read at each start; `~` allowed; relative to the configuration. `env` wins."""
    depends_on: list[str] = []
    """Agents that are to be ready before this one is started."""
    autostart: bool = False
    port: PortChoice = None
    """False: the agent has no port of its own, and is reached by the main listener alone."""
    restart: RestartPolicy = RestartPolicy()
    limits: Limits = Limits()
    park: ParkPolicy = ParkPolicy()
    question_timeout: Duration | None = None
    """Time for which a question of a task may stay unanswered; then the task fails (TIMEOUT). None: for ever."""
    accept_agents: bool = False
    """Types messages of other agents even if no model reads them (`model` of the profile): each line is a command."""
    without_approval: bool = False
    """Starts the agent even if the program's own settings prevent the deny rules of `approval`."""
    prompt: Annotated[str, Field(max_length=200)] | None = None
    """The prompt of the program, if no profile describes it: at it the first message waits for no other evidence."""
    mcp: bool = True
    """Gives the program the address of `synapsectl mcp`, if the profile has a way to do so."""
    instructions: bool = True
    """Gives the model the text of `[instructions]`."""


class TeamConfig(Section):
    """`[teams.<name>]`: agents that are started and addressed together."""

    members: list[str] = Field(min_length=1, max_length=64)
    """Names of agents, or of profiles, from each of which an agent of that name is started."""


class Config(Section):
    """`config.toml` and `agents.d/`."""

    api: ApiConfig = ApiConfig()
    attach: AttachConfig = AttachConfig()
    instructions: InstructionsConfig = InstructionsConfig()
    environment: EnvironmentConfig = EnvironmentConfig()

    a2a: PostingConfig = PostingConfig()
    outgoing: OutgoingConfig = OutgoingConfig()
    store: StoreConfig = StoreConfig()
    agents: dict[str, AgentConfig] = {}
    teams: dict[str, TeamConfig] = {}

    part_sections: ClassVar[Mapping[str, ConfigKey]] = {}
    part_checks: ClassVar[Sequence[Callable[[Any], str | None]]] = ()
    """The checks of `Face.check`."""


def agent_model(config: type[Config]) -> type[AgentConfig]:
    _, model = get_args(config.model_fields["agents"].annotation)
    found: type[AgentConfig] = model
    return found
