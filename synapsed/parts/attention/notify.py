"""`[notify]`: the places where a person is notified, and the items for each."""

import re
from datetime import datetime, time
from typing import Annotated, Any, Final, Literal, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator, model_validator

from synapsed.model.event_pattern import PATTERN_MAX, fits
from synapsed.model.events import AttentionKind
from synapsed.shared.regex import regex

KINDS: Final[tuple[AttentionKind, ...]] = get_args(AttentionKind.__value__)

SINKS_MAX = 20

type Content = Literal["kind", "question", "full"]
"""Amount of an item that leaves this machine: agent and kind; also the question; everything."""

_HOURS = regex(r"([01]\d|2[0-3]):([0-5]\d)-([01]\d|2[0-3]):([0-5]\d)")
_NAME = regex(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_VARIABLE = regex(r"[A-Za-z_][A-Za-z0-9_]*")
_TOPIC = regex(r"[-_A-Za-z0-9]{1,64}")


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


def _hours(text: str) -> str:
    if _HOURS.fullmatch(text) is None:
        raise ValueError("must be two times of a day like '22:00-07:00'")
    return text


def _variable(text: str) -> str:
    if _VARIABLE.fullmatch(text) is None:
        raise ValueError("must be the name of a variable")
    return text


def _base(text: str) -> str:
    if not re.fullmatch(r"https?://[^\s/?#@]+(?:/[^\s?#]*)?", text):
        raise ValueError("must be http://… or https://… without a user, a query or a fragment")
    return text.rstrip("/")


def _topic(text: str) -> str:
    if not _TOPIC.fullmatch(text):
        raise ValueError("must be 1 to 64 letters, digits, '-' and '_'")
    return text


def _contact(text: str) -> str:
    if not re.fullmatch(r"(?:mailto:[^\s@<>,;\x00-\x1f]+@|https://)[^\s@<>,;\x00-\x1f]+", text) or len(text) > 254:
        raise ValueError("must be an address like mailto:ann@example.com or https://example.com/me")
    return text


def _address(text: str) -> str:
    if not re.fullmatch(r"[^\s@<>,;\x00-\x1f]+@[^\s@<>,;\x00-\x1f]+", text):
        raise ValueError("must be a mail address like ann@example.com")
    return text


Glob = Annotated[str, Field(min_length=1, max_length=PATTERN_MAX)]
Hours = Annotated[str, AfterValidator(_hours)]
Variable = Annotated[str, AfterValidator(_variable)]
Base = Annotated[str, Field(min_length=1, max_length=2048), AfterValidator(_base)]
MailAddress = Annotated[str, Field(max_length=254), AfterValidator(_address)]


class _When(_Section):
    """Choice of items and times. None means the value of `[notify]`."""

    kinds: Annotated[list[AttentionKind], Field(min_length=1)] | None = None
    """Kinds of items about which notices are sent; None for all."""
    agents: Annotated[list[Glob], Field(min_length=1, max_length=100)] | None = None
    """Globs, of which one has to fit the name or id of an item's agent; None for all agents."""
    quiet: Annotated[list[Hours], Field(max_length=10)] | None = None
    """Hours of the machine's day without notices; notices of items that are open at their end are sent then."""
    idle: float | None = Field(default=None, ge=0, le=86_400)
    """Seconds without an action of the person in synapsed before anything is sent."""
    content: Content | None = None


class _Secret(_When):
    """Base of sinks with a secret, which stands in a file for its owner alone, or in a variable of the daemon's
    environment."""


class DesktopSink(_When):
    """Settings for the desktop of this machine: the notification service of the session bus; on macOS its Notification
    Center."""

    type: Literal["desktop"]


class WebhookSink(_Secret):
    type: Literal["webhook"]
    url: Annotated[str, Field(min_length=1, max_length=2048)]
    secret_file: str | None = None
    """A file with `whsec_…`; `~` allowed, relative to the configuration."""
    secret_env: Variable | None = None

    @model_validator(mode="after")
    def _one_secret(self) -> "WebhookSink":
        if (self.secret_file is None) == (self.secret_env is None):
            raise ValueError("must have one of secret_file and secret_env: what is sent is signed")
        return self


class NtfySink(_Secret):
    type: Literal["ntfy"]
    url: Base = "https://ntfy.sh"
    topic: Annotated[str, AfterValidator(_topic)] | None = None
    topic_file: str | None = None
    """A file with the topic: on a public server only the topic keeps others from reading."""
    token_file: str | None = None
    """A file with an access token of the server."""
    token_env: Variable | None = None
    answers: Base | None = None
    """Address at which the phone reaches this daemon's API; Approve and Deny are buttons then."""
    answer_within: float = Field(default=3600.0, ge=60, le=86_400)
    """Seconds for which these buttons work."""

    @model_validator(mode="after")
    def _complete(self) -> "NtfySink":
        if (self.topic is None) == (self.topic_file is None):
            raise ValueError("must have one of topic and topic_file")
        if self.token_file is not None and self.token_env is not None:
            raise ValueError("must have one of token_file and token_env, not both")
        return self


class MailSink(_Secret):
    type: Literal["mail"]
    host: Annotated[str, Field(min_length=1, max_length=253)]
    port: int | None = Field(default=None, ge=1, le=65_535)
    """Default: 587 for starttls, 465 for tls, 25 for none."""
    security: Literal["starttls", "tls", "none"] = "starttls"
    user: Annotated[str, Field(min_length=1, max_length=254)] | None = None
    password_file: str | None = None
    password_env: Variable | None = None
    sender: MailAddress
    to: list[MailAddress] = Field(min_length=1, max_length=20)

    @model_validator(mode="after")
    def _login(self) -> "MailSink":
        given = [name for name in ("password_file", "password_env") if getattr(self, name) is not None]
        if (self.user is not None) != (len(given) == 1):
            raise ValueError("user needs one of password_file and password_env")
        if self.user is not None and self.security == "none":
            raise ValueError("a password is not sent without encryption: security must be 'starttls' or 'tls'")
        return self


class WebSink(_When):
    """Settings for browsers that have turned on notifications on the page; each browser is a sink of its own."""

    type: Literal["web"]
    devices: Annotated[list[Glob], Field(min_length=1, max_length=100)] = ["*"]
    """Globs, of which one has to fit the name or id of a device; the first sink that fits a device counts for it."""

    def holds_for(self, *names: str) -> bool:
        return any(fits(glob, name) for glob in self.devices for name in names)


EVERY_BROWSER: Final = WebSink(type="web")
"""Settings for a browser that the configuration does not mention."""

Sink = Annotated[DesktopSink | WebhookSink | NtfySink | MailSink | WebSink, Field(discriminator="type")]


class NotifyConfig(_Section):
    """`[notify]`: settings for all sinks that do not say otherwise."""

    kinds: list[AttentionKind] = Field(default=list(KINDS), min_length=1)
    agents: list[Glob] = Field(default=["*"], min_length=1, max_length=100)
    quiet: list[Hours] = Field(default=[], max_length=10)
    idle: float = Field(default=0, ge=0, le=86_400)
    content: Content = "kind"
    contact: Annotated[str, AfterValidator(_contact)] | None = None
    """Contact for push services if their messages cause trouble; None: the address of the page."""
    sinks: dict[str, Sink] = Field(default={}, max_length=SINKS_MAX)
    """`[notify.sinks.NAME]`."""

    @field_validator("sinks")
    @classmethod
    def _named(cls, sinks: dict[str, Any]) -> dict[str, Any]:
        for name in sinks:
            if _NAME.fullmatch(name) is None:
                told = f"{name[:40]!r} cannot name a place to be told (a sink)"
                raise ValueError(f"{told}: use letters, digits, '_', '.' and '-', at most 64")
        return sinks

    @model_validator(mode="after")
    def _buttons(self) -> "NotifyConfig":
        for name, sink in self.sinks.items():
            if isinstance(sink, NtfySink) and sink.answers is not None and self.rule(sink).content == "kind":
                raise ValueError(
                    f"sinks.{name}: answers needs content = 'question' or 'full': nobody can approve what is not shown"
                )
        return self

    def for_browser(self, name: str, device_id: str) -> WebSink:
        """Returns the settings for the browser of that device."""
        of_browsers = (sink for sink in self.sinks.values() if isinstance(sink, WebSink))
        return next((sink for sink in of_browsers if sink.holds_for(name, device_id)), EVERY_BROWSER)

    def rule(self, sink: Sink) -> "SinkRule":
        """Returns the rule of that sink."""
        fields = {name: getattr(sink, name) for name in SinkRule.model_fields}
        return SinkRule(**{name: getattr(self, name) if value is None else value for name, value in fields.items()})


class SinkRule(_Section):
    """Times, items and amount of text of a sink."""

    kinds: list[AttentionKind]
    agents: list[str]
    quiet: list[str]
    idle: float
    content: Content


def is_quiet(hours: list[str], now: datetime) -> bool:
    """Returns True if `now`, in the machine's local time, is in one of `hours`; 22:00-07:00 goes over midnight, and two
    equal times are the whole day."""
    at = now.time()
    for text in hours:
        begin, end = (time.fromisoformat(part) for part in text.split("-"))
        if (begin <= at < end) if begin < end else (at >= begin or at < end):
            return True
    return False
