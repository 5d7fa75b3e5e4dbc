"""The user's configuration (docs/configuration.md) as frozen models: what each key means, and what it may be.

How it is read from its files, and what must fit together over several sections: `configfile`.
"""

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
    """A file `name` beside config.toml, which a verb of the part writes: a section's keys at the top level. A key that
    stands in config.toml wins; tables are taken key by key. `lacking` says, of the section and the file's path, what is
    in neither and has to be there."""

    name: str
    kind: type[BaseModel]
    lacking: Callable[[Any, Path], str | None]


@dataclass(frozen=True, slots=True)
class ConfigKey:
    """A key of the configuration: what it may be, as pydantic understands it, and what it is without one."""

    kind: Any
    default: Any
    restart: bool = False
    """Another value of it counts when the daemon begins again."""
    changes: Callable[[Any, Any], Sequence[str]] | None = None
    """Says, of the value before and another one that counts at once, what has changed; None: just that it has."""
    file: SectionFile | None = None
    """What completes the section, which is None where neither file has it."""


class Section(BaseModel):
    """The base of the configuration's models: a key that is not known is refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def _like(pattern: str, words: str) -> AfterValidator:
    """The whole text is of that form; `words` say which."""

    def check(value: str) -> str:
        if re.fullmatch(pattern, value) is None:
            raise ValueError(f"must be {words}")
        return value

    return AfterValidator(check)


type AttachKey = Literal["next", "previous", "inbox", "list", "scrollback", "status", "detach", "help"]


class AttachConfig(Section):
    """`[attach]`: what holds in attached terminals."""

    clipboard: Literal["deny", "allow"] = "deny"
    """Whether a program may set the clipboard of a terminal that is attached to it (OSC 52 and the like)."""
    status: bool = False
    """Whether the last row of an attached terminal tells which agent it is on, and how many need a person."""
    title: bool = True
    """Whether the terminal's title tells how many need a person, while any does."""
    bell: bool = True
    """Whether the terminal's bell rings when one more needs a person."""
    scrollback: int = Field(default=0, ge=0, le=5000)
    """Lines of what was printed before that an attached terminal gets into its own scrollback."""
    wheel: bool = False
    """Whether the wheel looks back too, while the program does not take the mouse."""
    keys: dict[AttachKey, str] = {}
    """Which key, after the first of those that detach, does what, where it is not the usual one."""


class PostingConfig(Section):
    """`[a2a]`, whose name was released: how receivers elsewhere are told, whoever tells them."""

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
    """`[environment]`: what of a shell's environment goes to agents, and to a daemon that a verb starts, where that is
    to be otherwise than the table says (`synapsed.process.inherited`)."""

    keep: list[_Variable] = Field(default=[], max_length=PATTERNS_MAX)
    """Goes along, whatever the table and `drop` say."""
    drop: list[_Variable] = Field(default=[], max_length=PATTERNS_MAX)
    """Stays behind."""
    update: list[_Variable] = Field(default=[], max_length=PATTERNS_MAX)
    """Variables of a person's shell that `restart` and `attach` bring besides those of its login."""


class Keep(Section):
    """`keep = {...}`: how many finished tasks are kept, and how long; 0 is for ever."""

    tasks: int = Field(default=100_000, ge=0)
    days: float = Field(default=90.0, ge=0, le=36_500)


class StoreConfig(Section):
    """`[store]`."""

    keep: Keep = Keep()
    backup_days: float = Field(default=7.0, ge=0, le=36_500)
    """The database is copied once a day, and a copy kept for so many; 0: no copies are made."""


class InstructionsConfig(Section):
    """`[instructions]`: what agents are told of themselves and the others, where their profile knows how."""

    enabled: bool = True
    language: Literal["en", "ja"] = "en"
    text: str | None = Field(default=None, min_length=1, max_length=20_000)
    """In place of synapsed's own words; `{name}`, `{id}`, `{type}`, `{port}`, `{others}`, `{list}`, `{send}` and
    `{reply}` are filled in."""


class RestartPolicy(Section):
    """`restart = {...}`; times are seconds. What each means is said in `agents/restart_policy.py`."""

    policy: Literal["never", "on-failure", "always"] = "on-failure"
    fine_codes: list[int] | None = None
    """Exit codes that are no failure; default: those of the profile."""
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
    """Returns it if it is an address and a port. Raises ValueError."""
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


class UsageLimitPolicy(Section):
    """`usage_limit = {...}`: what happens when the account's limit is reached. Times are seconds."""

    task: Literal["fail", "continue"] = "fail"
    """The task that met it: fail (RATE_LIMITED), or go on when the limit is over."""
    probe: float = Field(default=60.0, gt=0, le=86_400)
    """Pause before the next message where the program does not say when; it doubles each time."""
    maximum: float = Field(default=3600.0, gt=0, le=604_800)
    attempts: int = Field(default=12, ge=1, le=1000)
    """How often one task may meet it."""


Size = Annotated[str, _like(r"[1-9][0-9]*[KMGT]?|[1-9][0-9]?%|100%", "a size like '2G', or a share like '25%'")]
"""Bytes (`"2G"`), or a share of the machine's memory (`"25%"`)."""


class Limits(Section):
    """`limits = {...}`: what one agent, with all that it starts, may use; where agents are units of systemd."""

    memory: Size | None = None
    cpu: Annotated[str, _like(r"[1-9][0-9]*%", "a share of one processor, like '150%'")] | None = None
    """Share of one processor: `"150%"` is one and a half."""
    tasks: int | None = Field(default=None, ge=1)
    """Processes and threads."""


class ParkPolicy(Section):
    """`park = {...}`: when the program of an idle agent is ended until the next message. What idle means is said in
    `agents/parking.py`; without either key it is never."""

    idle_timeout: float | None = Field(default=None, ge=1, le=31_536_000)
    """Seconds of idleness."""
    memory_below: Size | None = None
    """When so little memory is left on the machine (`"2G"`, or `"10%"` of it): the agent that is idle longest first."""

    @property
    def on(self) -> bool:
        return self.idle_timeout is not None or self.memory_below is not None


Duration = Annotated[str, _like(r"[1-9][0-9]{0,5}[smhd]", "a time like '90s', '30m', '2h' or '1d'")]
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


def seconds_of(duration: str) -> int:
    """A `Duration` in seconds."""
    return int(duration[:-1]) * _SECONDS[duration[-1]]


class AgentConfig(Section):
    """`[agents.NAME]`."""

    profile: str | None = None
    """Default: the agent's name."""
    command: str | None = None
    """The program, where it is not the profile's."""
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
    """False: it has none, and is reached by the main listener alone."""
    restart: RestartPolicy = RestartPolicy()
    usage_limit: UsageLimitPolicy = UsageLimitPolicy()
    limits: Limits = Limits()
    park: ParkPolicy = ParkPolicy()
    question_timeout: Duration | None = None
    """How long a question of a task may stay unanswered; then the task fails (TIMEOUT). None: for ever."""
    accept_agents: bool = False
    """Type what other agents write also where no model reads it (`model` of the profile): each line is run as a
    command."""
    without_approval: bool = False
    """Start it also where the program's own settings keep the deny rules of `approval` from being enforced."""
    prompt: Annotated[str, Field(max_length=200)] | None = None
    """Its program's prompt, where no profile describes that: its first message waits for nothing else."""
    mcp: bool = True
    """Tell its program of `synapsectl mcp`, where the profile knows how."""
    instructions: bool = True
    """Tell its model what `[instructions]` says."""


class TeamConfig(Section):
    """`[teams.<name>]`: agents that are started and addressed together."""

    members: list[str] = Field(min_length=1, max_length=64)
    """Names of agents, or of profiles, of which an agent of that name is started."""


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
    """See `Face.check`."""


def agent_model(config: type[Config]) -> type[AgentConfig]:
    """Returns the model of one agent in it."""
    _, model = get_args(config.model_fields["agents"].annotation)
    found: type[AgentConfig] = model
    return found
