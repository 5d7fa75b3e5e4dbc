"""Notices to the person: a test of the sinks, and the buttons of those that have them."""

from aiohttp import web

from synapsed.api.context import ApiContext, to_the_end
from synapsed.api.operation import operation, person
from synapsed.api.request_models import NotifyTestBody
from synapsed.api.response_models import Answered
from synapsed.api.security import public
from synapsed.errors import InvalidChoice, NotInInbox, NotTaken, NotWaiting, PromptChanged, UnknownSink
from synapsed.model.attention import SinkTested


def routes() -> list[web.RouteDef]:
    return [web.post("/control/notify/test", test), web.post("/answers/{token}", answer)]


@operation(
    "Tell the sinks that this is a test", "what each has said", allowed=person("test the sinks"), errors=(UnknownSink,)
)
async def test(request: web.Request, body: NotifyTestBody, context: ApiContext) -> list[SinkTested]:
    """All of `[notify]`, or the one that is named. Rules do not count."""
    return await context.notifier.test(body.sink)


@public
@operation(
    "Answer by a button of a notice",
    "the program has the answer",
    errors=(NotInInbox, NotWaiting, PromptChanged, InvalidChoice, NotTaken),
)
async def answer(request: web.Request, context: ApiContext) -> Answered:
    """The token is all that is needed: it is good once, for one answer to one question, and not for long. The body
    does not count."""
    token = request.match_info["token"]
    return Answered(status="answered", id=await to_the_end(context.notifier.answer(token)))
