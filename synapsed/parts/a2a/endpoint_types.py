"""Requests and replies of the endpoints; in a module of their own, so that routes can name these without loading the
SDK."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Any

from synapsed.api import refusal_headers
from synapsed.errors import SynapsedError


@dataclass(frozen=True, slots=True)
class RestRequest:
    """A request over HTTP. `path` is what follows the binding's URL, decoded; `body` is a JSON value, {} for none."""

    verb: str
    path: str
    query: list[tuple[str, str]]
    body: Any


def headers_of(error: Exception) -> dict[str, str]:
    """Returns the headers of a refusal: those that it has on all routes."""
    return refusal_headers(error) if isinstance(error, SynapsedError) else {}


@dataclass(frozen=True, slots=True)
class MessageReply:
    """One response. `status` is HTTP's: over JSON-RPC 200 also for errors of the protocol."""

    body: dict[str, Any]
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StreamReply:
    """Responses one by one, after all possible refusals. A response with `error` is the last."""

    bodies: AsyncGenerator[dict[str, Any]]
