"""`/web/…`: how a device comes in and goes. `/control/web/…`, `/control/devices`, `/control/tokens`: a person's."""

import re
from collections.abc import Iterable

from aiohttp import hdrs, web

from synapsed.access.codes import CODE_S
from synapsed.access.grants import DESK, RIGHTS, Grant, Right
from synapsed.access.records import NAME_MAX
from synapsed.api.context import CONTEXT, ApiContext, rights_of, to_the_end
from synapsed.api.describe import Response
from synapsed.api.device_login import Visitors, cookie_header, cookie_name
from synapsed.api.devices import (
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
from synapsed.api.operation import WithHeaders, operation, person
from synapsed.api.pagefiles import pages
from synapsed.api.security import on_unix, public
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

_SYSTEMS = ("iPhone", "iPad", "Android", "Windows", "Macintosh", "CrOS", "Linux")
_BROWSERS = (("Edg/", "Edge"), ("Firefox/", "Firefox"), ("FxiOS/", "Firefox"), ("Chrome/", "Chrome"))


def routes() -> list[web.RouteDef]:
    return [
        web.post("/web/session", enter),
        web.delete("/web/session", leave),
        web.get("/web/me", me),
        web.get("/web/authority.crt", authority),
        web.post("/control/web/code", invite),
        web.post("/control/web/serve", serve),
        web.get("/control/devices", list_devices),
        web.delete("/control/devices/{device}", remove_device),
        web.get("/control/tokens", list_tokens),
        web.post("/control/tokens", make_token),
        web.delete("/control/tokens/{token}", revoke_token),
    ]


@public
@operation(
    "Pair a device, with a code that was made for it",
    "who it is from now on; the session is a cookie",
    errors=(Unauthorized, Forbidden, LockedOut, QueueFull, StoreError),
)
async def enter(request: web.Request, body: SessionBody, context: ApiContext) -> WithHeaders[MeAnswer]:
    security, visitors = context.security, _visitors(context)
    if (agent := rights_of(request).agent_id) is not None:
        raise Forbidden(f"this is a process of {agent}, and a device is a person's", agent=agent)
    if not security.may_have_session(request):
        raise Forbidden(
            "without TLS a device is let in on this machine only: 'tls_listen' under [api], 'synapsectl web "
            "--tailscale', or a proxy with TLS"
        )
    security.check_page(request)
    invitation = visitors.take_code(body.code, security.source(request), here=security.is_here(request))
    name = body.name or invitation.name or device_name(request.headers.get(hdrs.USER_AGENT, ""))
    device, session = await to_the_end(visitors.book.pair(name, invitation.rights))
    answer = MeAnswer(
        device=PageDevice(id=device.id, name=device.name, push=False),
        rights=device.rights,
        push_key=context.push_key,
        version=context.version,
        page=(await pages()).version,
    )
    return _with_cookie(request, answer, session)


@operation("Forget this device", "it is forgotten, and so is its cookie", errors=(UnknownDevice, StoreError))
async def leave(request: web.Request, context: ApiContext) -> WithHeaders[DeviceAnswer]:
    device = _own_device(request)
    _visitors(context).excuse(device)
    removed = await to_the_end(_visitors(context).book.remove_device(device.id))
    return _with_cookie(request, DeviceAnswer.of(removed), "")


@operation("Who opens the page", "the device, and what it may")
async def me(request: web.Request, context: ApiContext) -> WithHeaders[MeAnswer]:
    """For a paired device, whose session slides by this, and for a person with the control token."""
    rights, security = rights_of(request), context.security

    page = (await pages()).version

    def told(rights: Iterable[Right], device: PageDevice | None) -> MeAnswer:
        key, version = context.push_key, context.version
        return MeAnswer(device=device, rights=sorted(rights), push_key=key, version=version, page=page)

    if rights.grant is None:
        if not rights.person or not (on_unix(request) or security.has_control_token(request)):
            raise Unauthorized("this browser is not paired: 'synapsectl web' opens the page so that it is")
        return WithHeaders(told(DESK, None))
    own: list[Right] = [right for right in RIGHTS if right in rights.grant.rights]
    if rights.grant.kind == "token":
        return WithHeaders(told(own, None))
    await to_the_end(_visitors(context).book.seen(rights.grant.id))
    kept = _visitors(context).book.device(rights.grant.id)
    push = kept is not None and kept.push is not None
    answer = told(own, PageDevice(id=rights.grant.id, name=rights.grant.name, push=push))
    session = request.cookies.get(cookie_name(security.scheme(request), security.host(request)), "")
    return _with_cookie(request, answer, session)


@operation("A code that pairs one device", "the code, and where it goes", allowed=person("pair devices"))
async def invite(request: web.Request, body: CodeBody, context: ApiContext) -> CodeAnswer:
    """Good once, and for two minutes."""
    visitors = _visitors(context)
    now = context.clock.boot()
    code = visitors.codes.make(frozenset(body.rights), body.name, now=now, here=body.here)
    return CodeAnswer(
        code=code,
        rights=body.rights,
        expires_in=CODE_S,
        addresses=context.addresses(),
        certificate=OwnCertificate.of(context.pair, context.secure),
    )


@public
@operation(
    "The authority that has signed the daemon's own certificate",
    Response("its certificate, in PEM", str, media=("application/x-x509-ca-cert",)),
)
async def authority(request: web.Request, context: ApiContext) -> web.Response:
    """For devices that are to trust it. It is no secret: whoever connects with TLS is shown it. NOT_FOUND where the
    certificate is somebody else's."""
    if context.pair is None or context.pair.authority is None:
        raise web.HTTPNotFound
    return web.Response(
        body=context.pair.authority.encode("ascii"),
        headers={hdrs.CONTENT_TYPE: "application/x-x509-ca-cert", hdrs.CACHE_CONTROL: "no-cache"},
    )


@operation(
    "Let a proxy of this machine bring requests for a name",
    "the names",
    allowed=person("say under which names the page is served"),
    errors=(QueueFull, StoreError),
)
async def serve(request: web.Request, body: ServeBody, context: ApiContext) -> ServedAnswer:
    book = _visitors(context).book
    await to_the_end(book.serve(body.name, on=body.on))
    return ServedAnswer(served=book.served)


@operation("Paired devices", "devices", allowed=person("see which devices are paired"))
async def list_devices(request: web.Request, context: ApiContext) -> list[DeviceAnswer]:
    return [DeviceAnswer.of(one) for one in _visitors(context).book.devices]


@operation("Remove a device", "what it was", allowed=person("remove devices"), errors=(UnknownDevice, StoreError))
async def remove_device(request: web.Request, context: ApiContext) -> DeviceAnswer:
    """By its id, or by a name that one device has. What it has open ends at once."""
    book = _visitors(context).book
    return DeviceAnswer.of(await to_the_end(book.remove_device(request.match_info["device"])))


@operation("Tokens for scripts", "tokens", allowed=person("see which tokens there are"))
async def list_tokens(request: web.Request, context: ApiContext) -> list[TokenAnswer]:
    return [TokenAnswer.of(one) for one in _visitors(context).book.tokens]


@operation(
    "Make a token for a script",
    "the token, which is told this once",
    allowed=person("make tokens"),
    errors=(UnknownAgent, AmbiguousAddress, QueueFull, StoreError),
)
async def make_token(request: web.Request, body: TokenBody, context: ApiContext) -> TokenAnswer:
    directory = context.control.directory
    agents = None
    if body.agents is not None:
        agents = sorted({directory.view(directory.resolve(address)).name for address in body.agents})
    making = _visitors(context).book.make_token(body.name, frozenset(body.rights), agents=agents, days=body.days)
    return TokenAnswer.of(*await to_the_end(making))


@operation("Revoke a token", "what it was", allowed=person("revoke tokens"), errors=(UnknownToken, StoreError))
async def revoke_token(request: web.Request, context: ApiContext) -> TokenAnswer:
    """By its id, or by a name that one token has. What it has open ends at once."""
    book = _visitors(context).book
    return TokenAnswer.of(await to_the_end(book.revoke(request.match_info["token"])))


def _visitors(context: ApiContext) -> Visitors:
    visitors = context.security.visitors
    if visitors is None:
        raise web.HTTPNotFound
    return visitors


def _own_device(request: web.Request) -> Grant:
    """Raises Forbidden unless a device asks."""
    grant = rights_of(request).grant
    if grant is None or grant.kind != "device":
        raise Forbidden("only a paired device has this")
    return grant


def _with_cookie[T](request: web.Request, answer: T, session: str) -> WithHeaders[T]:
    security = request.app[CONTEXT].security
    cookie = cookie_header(security.scheme(request), security.host(request), session)
    return WithHeaders(answer, {hdrs.SET_COOKIE: cookie, hdrs.CACHE_CONTROL: "no-store"})


def device_name(user_agent: str) -> str:
    """What a browser calls itself, for people: `iPhone, Safari`."""
    system = next((one for one in _SYSTEMS if one in user_agent), "")
    browser = next(
        (name for mark, name in _BROWSERS if mark in user_agent), "Safari" if "Safari/" in user_agent else ""
    )
    words = ", ".join(word for word in (system.replace("Macintosh", "Mac"), browser) if word)
    return re.sub(r"[^ -~]", "", words)[:NAME_MAX] or "a browser"
