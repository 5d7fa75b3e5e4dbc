"""`/web/push`: whether the browser of a device is told of what waits (Web Push)."""

from aiohttp import web

from synapsed.access.grants import Grant
from synapsed.access.records import PushPlace
from synapsed.api.context import ApiContext, rights_of, to_the_end
from synapsed.api.devices import PushAnswer, PushBody
from synapsed.api.operation import operation
from synapsed.errors import Forbidden, InvalidRequest, NotReady, StoreError, UnknownDevice


def routes() -> list[web.RouteDef]:
    return [web.post("/web/push", subscribe), web.delete("/web/push", unsubscribe)]


def _device(request: web.Request) -> Grant:
    """Raises Forbidden unless a device asks."""
    grant = rights_of(request).grant
    if grant is None or grant.kind != "device":
        raise Forbidden("only a paired device is told: open the page with 'synapsectl web'")
    return grant


@operation(
    "Tell this device's browser of what waits",
    "it is told from now on",
    allowed=_device,
    errors=(InvalidRequest, NotReady, UnknownDevice, StoreError),
)
async def subscribe(request: web.Request, body: PushBody, context: ApiContext) -> PushAnswer:
    """With what the browser's `PushSubscription` says. One for each device: a newer one takes its place."""
    device = _device(request)
    browsers = context.notifier.browsers
    if browsers is None or context.security.visitors is None:
        raise NotReady("this daemon tells no browser anything: 'synapsectl status' says why")
    page = context.security.origin(request)
    place = PushPlace(endpoint=body.endpoint, p256dh=body.keys.p256dh, auth=body.keys.auth, page=page[:320])
    await browsers.check(place)
    await to_the_end(context.security.visitors.book.subscribe(device.id, place))
    return PushAnswer(status="subscribed")


@operation("Tell this device's browser no more", "it is not", allowed=_device, errors=(UnknownDevice, StoreError))
async def unsubscribe(request: web.Request, context: ApiContext) -> PushAnswer:
    device = _device(request)
    if context.security.visitors is not None:
        await to_the_end(context.security.visitors.book.subscribe(device.id, None))
    return PushAnswer(status="unsubscribed")
