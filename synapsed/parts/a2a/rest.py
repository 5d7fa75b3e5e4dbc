"""A2A 1.0 over HTTP+JSON (specification 11): the operation that a path means, its request, and refusals as
google.rpc.Status.

Paths are matched here, by the same table as JSON-RPC's methods, and not by the web server's router: so an unknown path
is refused in A2A's form, and the table needs the SDK, which is loaded late.
"""

import re
from collections.abc import AsyncGenerator, Iterable
from typing import Any, Final

import structlog

from synapsed.a2a_types.a2a_errors import (
    INTERNAL_ERROR,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    A2aError,
    from_synapsed,
    invalid_params,
    rest_error,
)
from synapsed.a2a_types.extensions import activated
from synapsed.errors import SynapsedError
from synapsed.parts.a2a.endpoint_types import MessageReply, RestRequest, StreamReply, headers_of
from synapsed.parts.a2a.methods import Method
from synapsed.parts.a2a.operations import RequestScope
from synapsed.parts.a2a.params import from_query, parse
from synapsed.parts.a2a.version import V10, require_version
from synapsed.shared.regex import regex

METHOD_NOT_ALLOWED: Final = 405
_VARIABLE: Final = regex(r"\{(\w+)\}")
_TENANT: Final = r"(?:/(?P<tenant>[^/]+))"
_BODIES: Final = frozenset({"POST", "PUT", "PATCH"})
PATH_SHOWN: Final = 100
"""Most characters of an unknown path that are shown."""

log = structlog.get_logger("synapsed.a2a")


class RestBinding:
    """The endpoint of every agent."""

    def __init__(self, methods: Iterable[Method]) -> None:
        rows = list(methods)
        # Paths without a tenant are tried first, so that `tasks` cannot name a tenant.
        self._paths = [(_pattern(row.path, ""), row) for row in rows]
        self._paths += [(_pattern(row.path, _TENANT), row) for row in rows]

    async def handle(
        self, agent_id: str, caller: RequestScope, request: RestRequest, version: str | None
    ) -> MessageReply | StreamReply:
        try:
            found = self._find(request.path, request.verb)
            if isinstance(found, MessageReply):
                return found
            require_version(version, V10)
            activated(caller.extensions)
            method, variables = found
            params = _params(request, method, variables)
            if method.stream is not None:
                return StreamReply(_events(await method.stream(agent_id, caller, params)))
            assert method.call is not None
            return MessageReply(await method.call(agent_id, caller, params))
        except (A2aError, SynapsedError) as error:
            return _refusal(error)
        except Exception:  # noqa: BLE001 - the boundary of a protocol with a shape of its own for what nobody foresaw
            return _internal()

    @staticmethod
    def parse_error(message: str) -> MessageReply:
        """Returns the answer to a body that is no JSON."""
        return _refusal(A2aError(PARSE_ERROR, message))

    def _find(self, path: str, verb: str) -> tuple[Method, dict[str, str]] | MessageReply:
        """Returns the operation and its path's variables, or 405 with the verbs that the path does take. Raises
        A2aError (404)."""
        path = path.removesuffix("/")
        allowed: list[str] = []
        for pattern, method in self._paths:
            if match := pattern.fullmatch(path):
                verbs = _verbs(method)
                if verb in verbs:
                    return method, {name: text for name, text in match.groupdict().items() if text is not None}
                allowed += [each for each in verbs if each not in allowed]
        if not allowed:
            raise A2aError(METHOD_NOT_FOUND, f"A2A has nothing at {path[:PATH_SHOWN]!r}")
        error = A2aError(METHOD_NOT_FOUND, f"this path takes {', '.join(allowed)}, not {verb}")
        return MessageReply(rest_error(error, METHOD_NOT_ALLOWED), METHOD_NOT_ALLOWED, {"Allow": ", ".join(allowed)})


def _verbs(method: Method) -> tuple[str, ...]:
    """Returns the verbs that the method's path takes: HEAD, too, where GET has one result."""
    return (*method.verbs, "HEAD") if "GET" in method.verbs and method.call is not None else method.verbs


def _pattern(path: str, tenant: str) -> re.Pattern[str]:
    """Returns the pattern of a path such as `/tasks/{id}:cancel`. Our ids have no colon, so that a verb is never taken
    for part of one."""
    parts = _VARIABLE.split(path)
    # Only the first variable, a task's id, can have a verb behind it: clients choose the ids of configs.
    values = ["[^/:]+", "[^/]+"]
    texts = [re.escape(part) if at % 2 == 0 else f"(?P<{part}>{values[at // 2]})" for at, part in enumerate(parts)]
    return re.compile(tenant + "".join(texts))


def _params(request: RestRequest, method: Method, variables: dict[str, str]) -> Any:
    if request.verb not in _BODIES:
        return from_query(request.query, variables, method.request)
    if not isinstance(request.body, dict):
        raise invalid_params("body", "must be a JSON object")
    # The path's variables win over fields of the body, under either of a field's two names.
    fields = method.request.DESCRIPTOR.fields_by_name
    said = {key for name in variables for key in (name, fields[name].json_name)}
    return parse({key: value for key, value in request.body.items() if key not in said} | variables, method.request)


async def _events(results: AsyncGenerator[dict[str, Any]]) -> AsyncGenerator[dict[str, Any]]:
    try:
        async for result in results:
            yield result
            del result  # it may be large, and the next one may be long in coming
    except (A2aError, SynapsedError) as error:
        yield _refusal(error).body
    except Exception:  # noqa: BLE001 - the head of the response is out: an error event is the only way left to say it
        yield _internal().body
    finally:
        await results.aclose()


def _refusal(error: A2aError | SynapsedError) -> MessageReply:
    told = error if isinstance(error, A2aError) else from_synapsed(error)
    return MessageReply(rest_error(told), told.http_status, headers_of(error))


def _internal() -> MessageReply:
    log.exception("request failed")
    return _refusal(A2aError(INTERNAL_ERROR, "the daemon failed on this request; its log says why"))
