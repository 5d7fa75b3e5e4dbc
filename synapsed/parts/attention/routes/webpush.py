"""`/web/push`: notifications to the browser of a device (Web Push)."""

from typing import Annotated, Literal

from aiohttp import web
from pydantic import BaseModel, ConfigDict, StringConstraints

from synapsed.api import ApiContext, rights_of, to_the_end
from synapsed.api.operation import operation
from synapsed.errors import Forbidden, InvalidRequest, NotReady, StoreError, UnknownDevice
from synapsed.interfaces import Grant, PushPlace, Subscriptions
from synapsed.parts.attention.notifier import Notifier

_Key = Annotated[str, StringConstraints(min_length=1, max_length=128, pattern=r"^[A-Za-z0-9_-]+={0,2}$")]


class PushKeys(BaseModel):
    """Keys in base64url: the browser's public key, and its secret."""

    model_config = ConfigDict(extra="ignore", strict=True)

    p256dh: _Key
    auth: Annotated[str, StringConstraints(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9_-]+={0,2}$")]


class PushBody(BaseModel):
    """Body of `POST /web/push`: a browser's `PushSubscription` in JSON."""

    model_config = ConfigDict(extra="ignore", strict=True)

    endpoint: Annotated[str, StringConstraints(min_length=1, max_length=2048)]
    keys: PushKeys


class PushAnswer(BaseModel):
    model_config = ConfigDict(extra="forbid")

    status: Literal["subscribed", "unsubscribed"]


def _device(request: web.Request) -> Grant:
    """Returns the device that asks. Raises Forbidden for other callers."""
    grant = rights_of(request).grant
    if grant is None or grant.kind != "device":
        raise Forbidden("only a paired device can be notified: open the page with 'synapsectl web'")
    return grant


@operation(
    "Tell this device's browser of what waits",
    "it is notified from now on",
    allowed=_device,
    errors=(InvalidRequest, NotReady, UnknownDevice, StoreError),
)
async def subscribe(
    request: web.Request, body: PushBody, context: ApiContext, notifier: Notifier, subscriptions: Subscriptions
) -> PushAnswer:
    """Turns notifications on for the browser's `PushSubscription`. Each device has one: a newer one replaces it."""
    device = _device(request)
    browsers = notifier.browsers
    if browsers is None:
        raise NotReady("this daemon sends no notifications to browsers: 'synapsectl status' says why")
    page = context.security.origin(request)
    place = PushPlace(endpoint=body.endpoint, p256dh=body.keys.p256dh, auth=body.keys.auth, page=page[:320])
    await browsers.check(place)
    await to_the_end(subscriptions.subscribe(device.id, place))
    return PushAnswer(status="subscribed")


@operation("Tell this device's browser no more", "it is not", allowed=_device, errors=(UnknownDevice, StoreError))
async def unsubscribe(request: web.Request, subscriptions: Subscriptions) -> PushAnswer:
    device = _device(request)
    await to_the_end(subscriptions.subscribe(device.id, None))
    return PushAnswer(status="unsubscribed")
