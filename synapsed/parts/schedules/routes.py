"""`/schedules`: messages that are sent at their times. A person's, or an agent's whose profile grants it."""

from collections.abc import Callable

from aiohttp import web

from synapsed.api.context import ApiContext, rights_of, to_the_end
from synapsed.api.memory_reservation import with_room
from synapsed.api.operation import operation, person
from synapsed.api.request_models import ScheduleBody
from synapsed.api.response_models import ScheduleRemoved, TaskAnswer
from synapsed.api.sending import SEND_ERRORS, key_of
from synapsed.errors import AmbiguousAddress, Forbidden, NameTaken, QueueFull, UnknownAgent, UnknownSchedule
from synapsed.parts.schedules.schedule import ScheduleView


def routes() -> list[web.RouteDef]:
    schedule = "/schedules/{schedule}"
    return [
        web.get("/schedules", list_schedules),
        web.post("/schedules", add),
        web.delete(schedule, remove),
        web.post(f"{schedule}/run", run),
    ]


def _granted(act: str) -> Callable[[web.Request], None]:
    return lambda request: rights_of(request).require("make_schedules", act, of="")


@operation("The schedules", "by name", allowed=_granted("see what is scheduled"))
async def list_schedules(request: web.Request, context: ApiContext) -> list[ScheduleView]:
    return await context.scheduler.views()


@operation(
    "Schedule a message",
    "the schedule",
    allowed=_granted("make schedules"),
    errors=(NameTaken, QueueFull, UnknownAgent, AmbiguousAddress),
)
async def add(request: web.Request, body: ScheduleBody, context: ApiContext) -> ScheduleView:
    """At every time that `at` means from now on. One that an agent has made is sent in its name."""
    scheduler, by = context.scheduler, rights_of(request).agent_id
    return await to_the_end(scheduler.add(body.schedule(), by=by))


@operation(
    "Forget a schedule",
    "it is forgotten",
    allowed=_granted("remove schedules"),
    errors=(UnknownSchedule, AmbiguousAddress, Forbidden),
)
async def remove(request: web.Request, context: ApiContext) -> ScheduleRemoved:
    """Its tasks stay. One of the configuration is removed there."""
    scheduler, by = context.scheduler, rights_of(request).agent_id
    removed = await to_the_end(scheduler.remove(request.match_info["schedule"], by=by))
    return ScheduleRemoved(status="removed", name=removed.name)


@operation(
    "Send a schedule's message now",
    "the task",
    allowed=person("run schedules"),
    errors=(UnknownSchedule, UnknownAgent, AmbiguousAddress, *SEND_ERRORS),
)
async def run(request: web.Request, context: ApiContext) -> TaskAnswer:
    """Its times are not changed by it."""
    act = to_the_end(context.scheduler.run(request.match_info["schedule"], key=key_of(request)))
    return TaskAnswer.of(await with_room(request, context.control, act))
