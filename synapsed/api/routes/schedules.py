"""`/schedules`: messages that are sent at their times. A person's, or an agent's whose profile grants it."""

from aiohttp import web
from pydantic import TypeAdapter

from synapsed.api.answers import ScheduleRemoved, TaskAnswer
from synapsed.api.body import json_response, model_response, read_model
from synapsed.api.context import CONTEXT, rights_of, to_the_end
from synapsed.api.describe import Response, describe
from synapsed.api.outgoing import respond_task
from synapsed.api.reserving import with_room
from synapsed.api.schemas import ScheduleBody
from synapsed.api.sending import SEND_ERRORS, key_of
from synapsed.errors import AmbiguousAddress, Forbidden, NameTaken, QueueFull, UnknownAgent, UnknownSchedule
from synapsed.model.schedule import ScheduleView

SCHEDULE = Response("the schedule", ScheduleView)
RIGHT = "make_schedules"
_VIEW = TypeAdapter(ScheduleView)
_VIEWS = TypeAdapter(list[ScheduleView])


def routes() -> list[web.RouteDef]:
    schedule = "/schedules/{schedule}"
    return [
        web.get("/schedules", list_schedules),
        web.post("/schedules", add),
        web.delete(schedule, remove),
        web.post(f"{schedule}/run", run),
    ]


@describe("The schedules", Response("by name", list[ScheduleView]))
async def list_schedules(request: web.Request) -> web.Response:
    _require(request, "see what is scheduled")
    return model_response(_VIEWS, await request.app[CONTEXT].scheduler.views())


@describe(
    "Schedule a message", SCHEDULE, body=ScheduleBody, errors=(NameTaken, QueueFull, UnknownAgent, AmbiguousAddress)
)
async def add(request: web.Request) -> web.Response:
    """At every time that `at` means from now on. One that an agent has made is sent in its name."""
    _require(request, "make schedules")
    body = await read_model(request, ScheduleBody)
    scheduler, by = request.app[CONTEXT].scheduler, rights_of(request).agent_id
    return model_response(_VIEW, await to_the_end(scheduler.add(body.schedule(), by=by)))


@describe(
    "Forget a schedule",
    Response("it is forgotten", ScheduleRemoved),
    errors=(UnknownSchedule, AmbiguousAddress, Forbidden),
)
async def remove(request: web.Request) -> web.Response:
    """Its tasks stay. One of the configuration is removed there."""
    _require(request, "remove schedules")
    scheduler, by = request.app[CONTEXT].scheduler, rights_of(request).agent_id
    removed = await to_the_end(scheduler.remove(request.match_info["schedule"], by=by))
    return json_response({"status": "removed", "name": removed.name})


@describe(
    "Send a schedule's message now",
    Response("the task", TaskAnswer),
    errors=(UnknownSchedule, UnknownAgent, AmbiguousAddress, *SEND_ERRORS),
)
async def run(request: web.Request) -> web.StreamResponse:
    """Its times are not changed by it."""
    rights_of(request).require_person("run schedules")
    scheduler = request.app[CONTEXT].scheduler
    act = to_the_end(scheduler.run(request.match_info["schedule"], key=key_of(request)))
    return await respond_task(request, await with_room(request, request.app[CONTEXT].control, act))


def _require(request: web.Request, act: str) -> None:
    rights_of(request).require(RIGHT, act, of="")
