"""`GET /openapi.json`: this API, described for programs."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from synapsed.api import ApiContext, base_url
from synapsed.api import document as cached
from synapsed.api.operation import Response, operation
from synapsed.documents.writing import encode_json
from synapsed.kernel import Kernel, Running
from synapsed.parts.openapi.document import document


@operation("This document", Response("OpenAPI 3.1", dict[str, Any], headers={"ETag": "of the document"}))
async def openapi(request: web.Request, context: ApiContext) -> web.Response:
    told = document(request.app, version=context.version, server=base_url(request))
    return cached(request, context.changes, encode_json(told))


@asynccontextmanager
async def opened(_: Kernel) -> AsyncIterator[Running]:
    yield Running()
