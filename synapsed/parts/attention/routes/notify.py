"""Notices to the person: a test of the sinks, and the buttons of those that have them."""

from typing import Annotated, Literal

from aiohttp import web
from pydantic import BaseModel, ConfigDict, Field

from synapsed.api import to_the_end
from synapsed.api.operation import operation, person
from synapsed.errors import InvalidChoice, NotInInbox, NotTaken, NotWaiting, PromptChanged, UnknownSink
from synapsed.parts.attention.notifier import Notifier, SinkTested


class NotifyTestBody(BaseModel):
    """`control/notify/test`; without `sink` all are told."""

    model_config = ConfigDict(extra="forbid", strict=True)

    sink: Annotated[str, Field(min_length=1, max_length=64)] | None = None


class Answered(BaseModel):
    """`id`: the item of the inbox that is answered."""

    model_config = ConfigDict(extra="forbid")

    status: Literal["answered"]
    id: str


@operation(
    "Tell the sinks that this is a test", "what each has said", allowed=person("test the sinks"), errors=(UnknownSink,)
)
async def test(request: web.Request, body: NotifyTestBody, notifier: Notifier) -> list[SinkTested]:
    """All of `[notify]`, or the one that is named. Rules do not count."""
    return await notifier.test(body.sink)


@operation(
    "Answer by a button of a notice",
    "the program has the answer",
    errors=(NotInInbox, NotWaiting, PromptChanged, InvalidChoice, NotTaken),
)
async def answer(request: web.Request, notifier: Notifier) -> Answered:
    """The token is all that is needed: it is good once, for one answer to one question, and not for long. The body
    does not count."""
    token = request.match_info["token"]
    return Answered(status="answered", id=await to_the_end(notifier.answer(token)))
