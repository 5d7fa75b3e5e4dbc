"""Notices to the person: a test of the sinks, and the buttons of those that have them."""

from typing import Annotated, Literal

from aiohttp import web
from pydantic import BaseModel, ConfigDict, Field

from synapsed.api import to_the_end
from synapsed.api.operation import operation, person
from synapsed.errors import InvalidChoice, NotInInbox, NotTaken, NotWaiting, PromptChanged, UnknownSink
from synapsed.parts.attention.notifier import Notifier, SinkTested


class NotifyTestBody(BaseModel):
    """Body of `control/notify/test`; without `sink` all sinks get the test."""

    model_config = ConfigDict(extra="forbid", strict=True)

    sink: Annotated[str, Field(min_length=1, max_length=64)] | None = None


class Answered(BaseModel):
    """Answer of a button; `id` is the answered item of the inbox."""

    model_config = ConfigDict(extra="forbid")

    status: Literal["answered"]
    id: str


@operation(
    "Tell the sinks that this is a test", "what each has said", allowed=person("test the sinks"), errors=(UnknownSink,)
)
async def test(request: web.Request, body: NotifyTestBody, notifier: Notifier) -> list[SinkTested]:
    """Sends a test to all sinks of `[notify]`, or to the named one. Rules do not apply."""
    return await notifier.test(body.sink)


@operation(
    "Answer by a button of a notice",
    "the program has the answer",
    errors=(NotInInbox, NotWaiting, PromptChanged, InvalidChoice, NotTaken),
)
async def answer(request: web.Request, notifier: Notifier) -> Answered:
    """Answers an item by a token, which is valid once, for one answer to one question, and for a short time. No other
    credentials are needed; the body is ignored."""
    token = request.match_info["token"]
    return Answered(status="answered", id=await to_the_end(notifier.answer(token)))
