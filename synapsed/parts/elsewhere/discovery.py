"""Search for the agent at an address: an A2A agent, as its card says, or one that speaks only as synapse-a2a does.

A card that names an interface, or a version of A2A, is believed. One that names neither (synapse-a2a's, and those of
the first A2A), and no card at all, are no evidence: then the agent is asked. A card without a contradiction is one of
A2A 0.3, whose members are optional in older servers.

An agent is asked if it speaks as synapse-a2a does only if its card names no other way. If a person has given a key,
the card must be signed with it, and nothing else is believed.
"""

import asyncio
import json
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit
from uuid import uuid4

import httpx
from a2a.client.card_resolver import parse_agent_card
from a2a.types import a2a_pb2 as pb
from google.protobuf.json_format import ParseError

from synapsed.a2a_types.snapshots import TEXT_SHOWN
from synapsed.documents.reading import read
from synapsed.errors import CardChanged, CardInvalid, InvalidRequest, RemoteRefused
from synapsed.outgoing import OutgoingConfig
from synapsed.parts.elsewhere.credentials import NONE, Credentials
from synapsed.parts.elsewhere.external_agent import FIRST, SEEDS, ExternalAgent
from synapsed.parts.elsewhere.needs import needs_of
from synapsed.parts.elsewhere.remote_protocol import CARD_S, CONNECT_S, Found, http_client, unreachable
from synapsed.parts.elsewhere.signatures import keys_of, signed
from synapsed.shared.outside_json import NotJson, read_object

CARD_BYTES = 1 << 20

BINDINGS: Final = ("JSONRPC", "HTTP+JSON")
_CARDS: Final = ("/.well-known/agent-card.json", "/.well-known/agent.json")
_WELL_KNOWN: Final = "/.well-known/"
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_A2A: Final = (
    "supportedInterfaces",
    "protocolVersion",
    "preferredTransport",
    "additionalInterfaces",
)
"""Members by which a card says that its agent speaks A2A."""
_NOTHING_HERE: Final = (404, 405, 410, 501)


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms on which a person has agreed to an agent."""

    credentials: Credentials = NONE
    other_host: bool = False
    """True if its card may name an endpoint on another host than its own."""
    in_the_clear: bool = False
    """True if credentials may be sent there by http."""
    key: str = ""
    """Public keys: its card must be signed by one of them."""

    @classmethod
    def of(cls, agent: ExternalAgent, credentials: Credentials) -> "Terms":
        return cls(credentials, agent.other_host, agent.in_the_clear, agent.key)

    @property
    def secret(self) -> bool:
        """True if credentials may go by https only."""
        return bool(self.credentials) and not self.in_the_clear


def checked_key(key: str | None) -> str:
    """Returns the public keys that a person has given, or an empty text. Raises InvalidRequest."""
    if not key:
        return ""
    try:
        keys_of(key)
    except ValueError as error:
        raise InvalidRequest(f"key: {error}", field="key") from None
    return key


async def look_up(url: str, terms: Terms, outgoing: OutgoingConfig, *, version: str = "") -> Found:
    """Looks for an agent at `url`, which is its base or the address of its card.

    A card without a version has `version`; if that is not given, the agent is asked for it. Raises InvalidRequest,
    Unreachable, CardInvalid.
    """
    base = _checked(url, secret=terms.secret)
    with terms.credentials.kept():
        async with http_client(terms.credentials, outgoing) as http:
            return await _look(http, base, terms, version)


async def _look(http: httpx.AsyncClient, base: str, terms: Terms, version: str) -> Found:
    card_url, raw, status = await _find_card(http, base)
    card = await _parsed(raw)
    versioned = any(card.get(member) for member in _A2A)
    if not versioned and not terms.key:
        for place in _places(base, card_url, card, terms):
            if await answers(http, place):
                return _of_seeds(place, card_url, card)
    if raw:
        found = await asyncio.to_thread(_read, card, raw, card_url, terms)
        return found if versioned else replace(found, protocol_version=version or await spoken_version(http, found))
    alone = "" if terms.key else ", and no agent that speaks as synapse-a2a does"
    raise CardInvalid(f"{card_url}: there is no agent card (HTTP {status}){alone}", url=card_url)


async def look_again(agent: ExternalAgent, credentials: Credentials, outgoing: OutgoingConfig) -> Found:
    """Looks again at a known agent, by the card that it had. An agent without a card is only asked if it has one now.
    Raises Unreachable, CardInvalid, CardChanged."""
    terms = Terms.of(agent, credentials)
    try:
        if agent.binding != SEEDS:
            return await look_up(agent.card_url, terms, outgoing, version=agent.protocol_version)
        with credentials.kept():
            async with http_client(credentials, outgoing) as http:
                card_url, raw, _ = await _find_card(http, agent.card_url)
    except InvalidRequest as error:
        raise CardInvalid(error.message, url=agent.card_url) from error
    card = await _parsed(raw)
    if any(card.get(member) for member in _A2A):
        return await asyncio.to_thread(_read, card, raw, card_url, terms)
    return _of_seeds(agent.endpoint, card_url, card)


def changed(agent: ExternalAgent, found: Found) -> CardChanged:
    """Error for an address where another agent (`found`) answers than the one that was added."""
    spoken = f"A2A {found.protocol_version}" if found.protocol_version else "as synapse-a2a speaks"
    return CardChanged(
        f"the card at {agent.card_url} is another now: {found.name!r} at {found.endpoint} ({spoken}); "
        f"if that is right, add it again: synapsectl external add {agent.url} --as {agent.alias}",
        alias=agent.alias,
        endpoint=found.endpoint,
    )


async def _find_card(http: httpx.AsyncClient, base: str) -> tuple[str, bytes, int]:
    """Returns the address of the card (or the last one tried), its bytes (empty if there is no card), and the
    status."""
    for card_url in [base] if base.endswith(".json") else [base + path for path in _CARDS]:
        status, raw = await _fetch(http, card_url)
        if status == 200:
            break
    return card_url, raw, status


async def _fetch(http: httpx.AsyncClient, url: str) -> tuple[int, bytes]:
    """Returns status and bytes of a card; no bytes if there is no card. Raises Unreachable, CardInvalid."""
    try:
        async with http.stream("GET", url, timeout=httpx.Timeout(CARD_S, connect=CONNECT_S)) as response:
            status = response.status_code
            if status == 200:
                raw = bytearray()
                async for piece in response.aiter_bytes():
                    raw += piece
                    if len(raw) > CARD_BYTES:
                        raise CardInvalid(f"{url}: a card has at most {CARD_BYTES} bytes", url=url)
                return status, bytes(raw)
    except httpx.HTTPError as error:
        raise unreachable(url, error, asked=False) from error
    except RemoteRefused as error:
        raise CardInvalid(error.message, url=url) from error
    if response.is_redirect:
        there = response.headers.get("Location", "").partition("?")[0][:200]
        raise CardInvalid(f"{url} redirects to {there!r}: add that address if it is to be trusted", url=url)
    if status not in _NOTHING_HERE:
        hint = ": its credentials are missing or wrong" if status in (401, 403) else ""
        raise CardInvalid(f"{url}: there is no agent card (HTTP {status}){hint}", url=url, status=status)
    return status, b""


async def _parsed(raw: bytes) -> dict[str, Any]:
    """Returns the object of a card, empty for a text that is no object. A large one is read while others use the event
    loop."""
    try:
        value = await read(raw)
    except ValueError:
        value = await asyncio.to_thread(_mended, raw)
    return value if isinstance(value, dict) else {}


def _mended(raw: bytes) -> dict[str, Any]:
    try:
        return read_object(raw)
    except NotJson:
        return {}


# --- agents that speak as synapse-a2a does ---------------------------------------------------------------------------


def _places(base: str, card_url: str, card: dict[str, Any], terms: Terms) -> list[str]:
    """Returns the addresses where an agent that speaks as synapse-a2a does may listen: first where its card is, then
    where its card says, if that is allowed. The cards of synapse-a2a say `localhost` wherever they are read."""
    places = [base if not base.endswith(".json") else base.partition(_WELL_KNOWN)[0]]
    told = card.get("url")
    if isinstance(told, str) and told:
        try:
            told = _checked(told, secret=terms.secret)
            _check_place(card_url, told, terms)
        except (CardInvalid, InvalidRequest):
            return places
        places.append(told)
    return list(dict.fromkeys(places))


def _of_seeds(place: str, card_url: str, card: dict[str, Any]) -> Found:
    capabilities, skills = card.get("capabilities"), card.get("skills")
    streaming = capabilities.get("streaming") if isinstance(capabilities, dict) else None
    return Found(
        name=str(card.get("name") or urlsplit(place).netloc)[:200],
        description=str(card.get("description") or "")[:1000],
        card_url=card_url if card else place,
        endpoint=place,
        binding=SEEDS,
        protocol_version="",
        tenant="",
        streaming=streaming is not False,
        skills=[str(skill.get("name"))[:100] for skill in skills[:50] if isinstance(skill, dict)]
        if isinstance(skills, list)
        else [],
    )


# --- agents that speak A2A -------------------------------------------------------------------------------------------


def _read(card: dict[str, Any], raw: bytes, card_url: str, terms: Terms) -> Found:
    """Returns the facts of a card, whose text is `raw`. The SDK takes most of a second for the largest: runs in a
    thread. Raises CardInvalid, InvalidRequest."""
    try:
        told, signed_by = card or read_object(raw), ""
        if terms.key:
            told, signed_by = _signed(told, card_url, terms.key)
        parsed = parse_agent_card(told)
    except (ValueError, ParseError, RecursionError, AttributeError) as error:
        raise CardInvalid(f"{card_url}: is no agent card: {str(error)[:TEXT_SHOWN]}", url=card_url) from error
    chosen = _choose(parsed, card_url)
    _check_place(card_url, chosen.url, terms)
    return Found(
        name=parsed.name[:200],
        description=parsed.description[:1000],
        card_url=card_url,
        endpoint=chosen.url,
        binding=chosen.protocol_binding,
        protocol_version=chosen.protocol_version,
        tenant=chosen.tenant,
        streaming=parsed.capabilities.streaming,
        skills=skills_of(parsed),
        output_modes=output_modes(parsed),
        needs=needs_of(parsed, terms.credentials, key=terms.key),
        signed_by=signed_by[:200],
        extended=parsed.capabilities.extended_agent_card,
    )


def _signed(card: dict[str, Any], card_url: str, key: str) -> tuple[dict[str, Any], str]:
    try:
        return signed(card, keys_of(key))
    except ValueError as error:
        raise CardInvalid(
            f"{card_url}: the card {error}; if that is right, add it again with the key of its present signer "
            "(--key FILE), or without a signature (--no-key)",
            url=card_url,
        ) from error


async def spoken_version(http: httpx.AsyncClient, found: Found) -> str:
    """Asks an agent whose card says no version for the version that it speaks: that of the first A2A if it knows
    `tasks/send` and no `message/send`. A method that it does not know is recognised by its refusal of a method that no
    agent has; the parameters are empty, so that the agent does nothing."""
    unknown = await _refusal(http, found.endpoint, f"tasks/{uuid4()}")
    if unknown is None or await _refusal(http, found.endpoint, "message/send") != unknown:
        return found.protocol_version
    first = await _refusal(http, found.endpoint, "tasks/send")
    return FIRST if first not in (None, unknown) else found.protocol_version


async def _refusal(http: httpx.AsyncClient, url: str, method: str) -> tuple[int, str] | None:
    """Returns code and text of the refusal of a request with this method, without the method's name; None if the agent
    does not refuse."""
    request = {"jsonrpc": "2.0", "id": "1", "method": method, "params": {}}
    response = await _try(http, "POST", url, json=request)
    told = _json(response)
    if response is None or not isinstance(told, dict) or not isinstance(error := told.get("error"), dict):
        return None
    return response.status_code, json.dumps(error, sort_keys=True).replace(method, "")


def skills_of(card: pb.AgentCard) -> list[str]:
    return [skill.name[:100] for skill in card.skills[:50]]


def output_modes(card: pb.AgentCard) -> list[str]:
    modes = [*card.default_output_modes, *(mode for skill in card.skills for mode in skill.output_modes)]
    return [mode[:100] for mode in dict.fromkeys(modes)][:50]


def _choose(card: pb.AgentCard, card_url: str) -> pb.AgentInterface:
    """Returns the card's first interface of the newest version that this daemon speaks."""
    spoken = [one for one in card.supported_interfaces if one.protocol_binding in BINDINGS and one.url]
    for version in ("1.", "0.3"):
        for one in spoken:
            if one.protocol_version.startswith(version):
                return one
    offered = ", ".join(f"{one.protocol_binding} {one.protocol_version}" for one in card.supported_interfaces) or "none"
    raise CardInvalid(
        f"{card_url}: offers {offered[:200]}; spoken here are JSONRPC and HTTP+JSON of A2A 1.0 and 0.3", url=card_url
    )


# --- addresses -------------------------------------------------------------------------------------------------------


def _check_place(card_url: str, endpoint: str, terms: Terms) -> None:
    """Raises CardInvalid unless the card may name this endpoint."""
    here = urlsplit(card_url)
    try:
        there = _split(endpoint)
    except ValueError:
        raise CardInvalid(f"{card_url}: its endpoint is no address: {endpoint[:200]!r}", url=card_url) from None
    same = here.hostname == there.hostname or {here.hostname, there.hostname} <= _LOOPBACK
    if not (same or terms.other_host):
        raise CardInvalid(
            f"{card_url}: says that its agent listens on another host, {there.hostname}; "
            "add it with --other-host if that is right",
            url=card_url,
            host=there.hostname,
        )
    if here.scheme == "https" and there.scheme == "http":
        raise CardInvalid(f"{card_url}: its endpoint is not encrypted, though its card is", url=card_url)
    _check_secret(there.scheme, there.hostname, secret=terms.secret)


def _checked(url: str, *, secret: bool) -> str:
    try:
        split = _split(url)
    except ValueError as error:
        raise InvalidRequest(f"url: {error}", field="url") from error
    if split.username is not None or split.query or split.fragment:
        raise InvalidRequest(
            "url: may have no user, query or fragment; credentials are given separately (--query-env and others)",
            field="url",
        )
    _check_secret(split.scheme, split.hostname, secret=secret)
    return url.rstrip("/")


def _split(url: str) -> SplitResult:
    """Returns the parts of a URL that can be requested. Raises ValueError for another text."""
    split = urlsplit(url)
    if split.scheme not in ("http", "https") or not split.hostname:
        raise ValueError("must be http://… or https://…")
    try:
        httpx.URL(url)
    except httpx.InvalidURL as error:
        raise ValueError(str(error)) from None
    _ = split.port
    return split


def _check_secret(scheme: str, host: str | None, *, secret: bool) -> None:
    if secret and scheme != "https" and host not in _LOOPBACK:
        raise InvalidRequest(
            f"credentials would go to {host} in the clear; use https, or --in-the-clear on a network that you trust",
            field="url",
        )


MISSING: Final = (404, 405, 501)
"""Statuses of a path or a method that the server does not have."""


async def answers(http: httpx.AsyncClient, base: str) -> bool:
    """Returns True if an agent that speaks as synapse-a2a does listens at `base`. Posts an empty message, which is
    refused, only if there is no other way to find out. Raises CardInvalid if the agent demands credentials."""
    nobody = uuid4()
    task = await _try(http, "GET", f"{base}/tasks/{nobody}")
    if task is not None and task.status_code in (401, 403):
        raise CardInvalid(f"{base}: its credentials are missing or wrong (HTTP {task.status_code})", url=base)
    if task is not None and task.status_code == 404 and _speaks_of_tasks(task, str(nobody)):
        return True
    options = await _try(http, "OPTIONS", f"{base}/tasks/send")
    if options is not None and "POST" in options.headers.get("Allow", "").upper():
        return True
    status = _json(await _try(http, "GET", f"{base}/status"))
    if isinstance(status, dict) and isinstance(status.get("status"), str) and "context" in status:
        return True
    nothing = await _try(http, "POST", f"{base}/{nobody}", json={})
    if nothing is None or nothing.status_code not in MISSING:
        return False  # it has an answer at any path
    refused = await _try(http, "POST", f"{base}/tasks/send", json={})
    return refused is not None and not refused.is_redirect and refused.status_code not in (*MISSING, 401, 403)


def _speaks_of_tasks(response: httpx.Response, echoed: str) -> bool:
    if _json(response) is None:
        return False
    return "task" in response.text.lower().replace(f"/tasks/{echoed}", "")


async def _try(http: httpx.AsyncClient, method: str, url: str, **options: Any) -> httpx.Response | None:
    with suppress(httpx.HTTPError, RemoteRefused):
        return await http.request(method, url, timeout=httpx.Timeout(CARD_S, connect=CONNECT_S), **options)
    return None


def _json(response: httpx.Response | None) -> Any:
    if response is None:
        return None
    try:
        return response.json()
    except (ValueError, RecursionError):
        return None
