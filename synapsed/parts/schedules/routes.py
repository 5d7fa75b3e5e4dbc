"""`/schedules`: messages that are sent at their times. For a person, or an agent whose profile grants it."""

from collections.abc import Callable
from typing import Annotated, Literal

from aiohttp import web
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, ValidationError

from synapsed.api import SEND_ERRORS, TaskAnswer, answered, key_of, rights_of, to_the_end
from synapsed.api.operation import operation, person
from synapsed.errors import (
    AmbiguousAddress,
    Forbidden,
    InvalidRequest,
    NameTaken,
    QueueFull,
    UnknownAgent,
    UnknownSchedule,
)
from synapsed.interfaces import Control
from synapsed.parts.schedules.schedule import MESSAGE_MAX, NewSchedule, ScheduleView
from synapsed.parts.schedules.scheduler import Scheduler
from synapsed.parts.schedules.spec import AT_MAX


def _as_integer(value: object) -> object:
    """Returns 2.0 as 2: it is an integer in JSON."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


class ScheduleBody(BaseModel):
    """`schedules`: `at` is in cron's notation or systemd's, `zone` the name of a time zone, null for the machine's."""

    model_config = ConfigDict(extra="forbid", strict=True)

    name: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")] | None = None
    at: Annotated[str, StringConstraints(min_length=1, max_length=AT_MAX)]
    zone: Annotated[str, StringConstraints(min_length=1, max_length=64)] | None = None
    agent: Annotated[str, StringConstraints(pattern=r"^[^\x00-\x20\x7f]{1,256}$")]
    message: Annotated[str, StringConstraints(min_length=1, max_length=MESSAGE_MAX)]
    missed: Literal["skip", "once"] = "skip"
    priority: Annotated[int, Field(ge=1, le=5), BeforeValidator(_as_integer)] = 1
    new_conversation: bool = False

    def schedule(self) -> NewSchedule:
        """Returns the schedule. Raises InvalidRequest for a wrong time."""
        try:
            return NewSchedule.model_validate(self.model_dump())
        except ValidationError as error:
            fault = error.errors(include_url=False, include_context=False, include_input=False)[0]
            field = str(fault["loc"][0]) if fault["loc"] else "zone"
            raise InvalidRequest(f"{field}: {fault['msg'].removeprefix('Value error, ')}", field=field) from None


class ScheduleRemoved(BaseModel):
    model_config = ConfigDict(extra="forbid")

    status: Literal["removed"]
    name: str


def _granted(act: str) -> Callable[[web.Request], None]:
    return lambda request: rights_of(request).require("make_schedules", act, of="")


@operation("The schedules", "by name", allowed=_granted("see what is scheduled"))
async def list_schedules(request: web.Request, scheduler: Scheduler) -> list[ScheduleView]:
    return await scheduler.views()


@operation(
    "Schedule a message",
    "the schedule",
    allowed=_granted("make schedules"),
    errors=(NameTaken, QueueFull, UnknownAgent, AmbiguousAddress),
)
async def add(request: web.Request, body: ScheduleBody, scheduler: Scheduler) -> ScheduleView:
    """Sends a message at every time of `at` from now on. The messages of an agent's schedule are sent in that agent's
    name."""
    return await to_the_end(scheduler.add(body.schedule(), by=rights_of(request).agent_id))


@operation(
    "Forget a schedule",
    "it is forgotten",
    allowed=_granted("remove schedules"),
    errors=(UnknownSchedule, AmbiguousAddress, Forbidden),
)
async def remove(request: web.Request, scheduler: Scheduler) -> ScheduleRemoved:
    """Removes a schedule; its tasks stay. A schedule of the configuration must be removed there."""
    removed = await to_the_end(scheduler.remove(request.match_info["schedule"], by=rights_of(request).agent_id))
    return ScheduleRemoved(status="removed", name=removed.name)


@operation(
    "Send a schedule's message now",
    "the task",
    allowed=person("run schedules"),
    errors=(UnknownSchedule, UnknownAgent, AmbiguousAddress, *SEND_ERRORS),
)
async def run(request: web.Request, scheduler: Scheduler, control: Control) -> TaskAnswer:
    """Sends its message now; its times do not change."""
    act = to_the_end(scheduler.run(request.match_info["schedule"], key=key_of(request)))
    return await answered(request, control, act)
