"""What the JSON-RPC endpoint gives back; apart from it, so that routes can name these without loading the SDK."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Any

__all__ = ["Reply", "Stream"]


@dataclass(frozen=True, slots=True)
class Reply:
    """One JSON-RPC response. `status` is HTTP's: 200 also for errors of the protocol."""

    body: dict[str, Any]
    status: int = 200


@dataclass(frozen=True, slots=True)
class Stream:
    """JSON-RPC responses, all with the request's id; what could be refused has been by now."""

    bodies: AsyncGenerator[dict[str, Any]]
