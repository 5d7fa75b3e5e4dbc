"""`/web/…`: login and logout of devices. `/control/web/…`, `/control/devices`, `/control/tokens`: for a person."""

import re
from collections.abc import Iterable

from aiohttp import hdrs, web

from synapsed.api import ApiContext, rights_of, to_the_end
from synapsed.api.operation import Response, WithHeaders, operation, person
from synapsed.errors import (
    AmbiguousAddress,
    Forbidden,
    LockedOut,
    QueueFull,
    StoreError,
    Unauthorized,
    UnknownAgent,
    UnknownDevice,
    UnknownToken,
)
from synapsed.interfaces import RIGHTS, Control, Grant, Right
from synapsed.parts.web.codes import CODE_S
from synapsed.parts.web.devices import (
    CodeAnswer,
    CodeBody,
    DeviceAnswer,
    MeAnswer,
    OwnCertificate,
    PageDevice,
    ServeBody,
    ServedAnswer,
    SessionBody,
    TokenAnswer,
    TokenBody,
)
from synapsed.parts.web.page_files import pages
from synapsed.parts.web.records import DESK, NAME_MAX
from synapsed.parts.web.service import Web
from synapsed.parts.web.visitors import check_page, cookie_header, may_have_session

_SYSTEMS = ("iPhone", "iPad", "Android", "Windows", "Macintosh", "CrOS", "Linux")
_BROWSERS = (("Edg/", "Edge"), ("Firefox/", "Firefox"), ("FxiOS/", "Firefox"), ("Chrome/", "Chrome"))


@operation(
    "Pair a device, with a code that was made for it",
    "the device; its session is a cookie",
    errors=(Unauthorized, Forbidden, LockedOut, QueueFull, StoreError),
)
async def enter(request: web.Request, body: SessionBody, context: ApiContext, own: Web) -> WithHeaders[MeAnswer]:
    if (agent := rights_of(request).agent_id) is not None:
        raise Forbidden(f"this is a process of {agent}, and a device is a person's", agent=agent)
    if not may_have_session(request):
        raise Forbidden(
            "without TLS a device is let in on this machine only: 'tls_listen' under [api], 'synapsectl web "
            "--tailscale', or a proxy with TLS"
        )
    check_page(request)
    invitation = own.visitors.take_code(body.code, request)
    name = body.name or invitation.name or device_name(request.headers.get(hdrs.USER_AGENT, ""))
    device, session = await to_the_end(own.book.pair(name, invitation.rights))
    answer = await _me(context, own, device.rights, PageDevice(id=device.id, name=device.name, push=False))
    return _with_cookie(request, answer, session)


@operation(
    "Forget this device", "the removed device; the browser forgets its cookie", errors=(UnknownDevice, StoreError)
)
async def leave(request: web.Request, own: Web) -> WithHeaders[DeviceAnswer]:
    device = _own_device(request)
    own.visitors.excuse(device)
    removed = await to_the_end(own.book.remove_device(device.id))
    return _with_cookie(request, DeviceAnswer.of(removed), "")


@operation("Who opens the page", "the device, and its rights")
async def me(request: web.Request, context: ApiContext, own: Web) -> WithHeaders[MeAnswer]:
    """Returns the visitor, for a paired device, whose session it extends, and for a person with the control token."""
    rights = rights_of(request)
    if rights.grant is None:
        if not rights.person or not context.security.has_control(request):
            raise Unauthorized("this browser is not paired: 'synapsectl web' opens the page so that it is")
        return WithHeaders(await _me(context, own, [*DESK, "manage"], None))
    known: list[Right] = [right for right in RIGHTS if right in rights.grant.rights]
    if rights.grant.kind == "token":
        return WithHeaders(await _me(context, own, known, None))
    await to_the_end(own.book.seen(rights.grant.id))
    kept = own.book.device(rights.grant.id)
    push = kept is not None and kept.push is not None
    answer = await _me(context, own, known, PageDevice(id=rights.grant.id, name=rights.grant.name, push=push))
    return _with_cookie(request, answer, own.visitors.session_of(request) or "")


async def _me(context: ApiContext, own: Web, rights: Iterable[Right], device: PageDevice | None) -> MeAnswer:
    page, push_key = (await pages()).version, await own.book.key()
    return MeAnswer(device=device, rights=sorted(rights), push_key=push_key, version=context.version, page=page)


@operation("A code that pairs one device", "the code, and the addresses of the page", allowed=person("pair devices"))
async def invite(request: web.Request, body: CodeBody, context: ApiContext, own: Web) -> CodeAnswer:
    """Makes a code, valid once, and for two minutes."""
    now = context.clock.boot()
    code = own.visitors.codes.make(frozenset(body.rights), body.name, now=now, here=body.here)
    return CodeAnswer(
        code=code,
        rights=body.rights,
        expires_in=CODE_S,
        addresses=own.all_addresses(context.place),
        certificate=OwnCertificate.of(own.pair, own.addresses),
    )


@operation(
    "The authority that has signed the daemon's own certificate",
    Response("its certificate, in PEM", str, media=("application/x-x509-ca-cert",)),
)
async def authority(request: web.Request, own: Web) -> web.Response:
    """Returns the authority for devices that are to trust it. It is no secret: every client with TLS gets it. NOT_FOUND
    if the certificate was not made here."""
    if own.pair is None or own.pair.authority is None:
        raise web.HTTPNotFound
    return web.Response(
        body=own.pair.authority.encode("ascii"),
        headers={hdrs.CONTENT_TYPE: "application/x-x509-ca-cert", hdrs.CACHE_CONTROL: "no-cache"},
    )


@operation(
    "Let a proxy of this machine bring requests for a name",
    "the names",
    allowed=person("say under which names the page is served"),
    errors=(QueueFull, StoreError),
)
async def serve(request: web.Request, body: ServeBody, own: Web) -> ServedAnswer:
    await to_the_end(own.book.serve(body.name, on=body.on))
    return ServedAnswer(served=own.book.served)


@operation("Paired devices", "devices", allowed=person("see which devices are paired"))
async def list_devices(request: web.Request, own: Web) -> list[DeviceAnswer]:
    return [DeviceAnswer.of(one) for one in own.book.devices]


@operation(
    "Remove a device", "the removed device", allowed=person("remove devices"), errors=(UnknownDevice, StoreError)
)
async def remove_device(request: web.Request, own: Web) -> DeviceAnswer:
    """Removes a device by its id, or by a name that one device has. Its open requests end at once."""
    return DeviceAnswer.of(await to_the_end(own.book.remove_device(request.match_info["device"])))


@operation("Tokens for scripts", "tokens", allowed=person("see which tokens there are"))
async def list_tokens(request: web.Request, own: Web) -> list[TokenAnswer]:
    return [TokenAnswer.of(one) for one in own.book.tokens]


@operation(
    "Make a token for a script",
    "the token, whose text is shown only now",
    allowed=person("make tokens"),
    errors=(UnknownAgent, AmbiguousAddress, QueueFull, StoreError),
)
async def make_token(request: web.Request, body: TokenBody, control: Control, own: Web) -> TokenAnswer:
    directory = control.directory
    agents = None
    if body.agents is not None:
        agents = sorted({directory.view(directory.resolve(address)).name for address in body.agents})
    making = own.book.make_token(body.name, frozenset(body.rights), agents=agents, days=body.days)
    return TokenAnswer.of(*await to_the_end(making))


@operation("Revoke a token", "the revoked token", allowed=person("revoke tokens"), errors=(UnknownToken, StoreError))
async def revoke_token(request: web.Request, own: Web) -> TokenAnswer:
    """Revokes a token by its id, or by a name that one token has. Its open requests end at once."""
    return TokenAnswer.of(await to_the_end(own.book.revoke(request.match_info["token"])))


def _own_device(request: web.Request) -> Grant:
    """Returns the device's grant. Raises Forbidden unless a device asks."""
    grant = rights_of(request).grant
    if grant is None or grant.kind != "device":
        raise Forbidden("only a paired device has this")
    return grant


def _with_cookie[T](request: web.Request, answer: T, session: str) -> WithHeaders[T]:
    return WithHeaders(answer, {hdrs.SET_COOKIE: cookie_header(request, session), hdrs.CACHE_CONTROL: "no-store"})


def device_name(user_agent: str) -> str:
    """Returns a browser's name, for people: `iPhone, Safari`."""
    system = next((one for one in _SYSTEMS if one in user_agent), "")
    browser = next(
        (name for mark, name in _BROWSERS if mark in user_agent), "Safari" if "Safari/" in user_agent else ""
    )
    words = ", ".join(word for word in (system.replace("Macintosh", "Mac"), browser) if word)
    return re.sub(r"[^ -~]", "", words)[:NAME_MAX] or "a browser"
