"""Whether somebody speaks as synapse-a2a does: asked where there is no card that says what else."""

from contextlib import suppress
from typing import Any, Final
from uuid import uuid4

import httpx

from synapsed.a2a.wire import CARD_S, CONNECT_S
from synapsed.errors import CardInvalid, RemoteRefused

MISSING: Final = (404, 405, 501)
"""There is no such path, or no such method."""


async def answers(http: httpx.AsyncClient, base: str) -> bool:
    """Whether such an agent listens at `base`. Only where it cannot be told otherwise an empty message is posted, which
    is refused. Raises CardInvalid where it lets nobody in."""
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
        return False  # it says something to everybody
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
