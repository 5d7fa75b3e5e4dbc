"""`GET /openapi.json`: this API, described for programs."""

from typing import Any

from aiohttp import web

from synapsed.api.caching import document as cached
from synapsed.api.context import ApiContext
from synapsed.api.describe import Response
from synapsed.api.gate import base_url
from synapsed.api.openapi_document import document
from synapsed.api.operation import operation
from synapsed.api.security import public
from synapsed.documents.writing import encode_json


def routes() -> list[web.RouteDef]:
    return [web.get("/openapi.json", openapi)]


@public
@operation("This document", Response("OpenAPI 3.1", dict[str, Any], headers={"ETag": "of the document"}))
async def openapi(request: web.Request, context: ApiContext) -> web.Response:
    told = document(request.app, version=context.version, server=base_url(request))
    return cached(request, context.changes, encode_json(told))
