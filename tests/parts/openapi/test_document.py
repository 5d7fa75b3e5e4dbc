"""The OpenAPI document says of the routes what they are: all of them, and nothing else."""

import json

import pytest

from synapsed.api.app import build_agent_app, build_main_app
from synapsed.parts.openapi.document import operations
from tests.api.serving import Api, serving
from tests.fakes.control import FakeControl

APPS = {"main": build_main_app, "agent": build_agent_app}


async def document(api: Api, which: str = "main"):
    client = api.http if which == "main" else api.agent
    async with client.get("/openapi.json") as response:
        assert response.status == 200, await response.text()
        return await response.json()


@pytest.fixture(params=APPS)
async def app(request, api: Api):
    """The application as it is served, and its document."""
    return APPS[request.param](api.servers.context), await document(api, request.param)


async def test_it_lists_exactly_the_routes_that_are_served(app):
    application, told = app
    served = {
        (route.resource.canonical, route.method.lower())
        for route in application.router.routes()
        if route.method != "HEAD" and "/a2a/" not in f"{route.resource.canonical}/"
    }
    assert {(path, method) for path, methods in told["paths"].items() for method in methods} == served


async def test_every_route_is_described(app):
    application, _ = app
    undescribed = [f"{one.method} {one.path}" for one in operations(application) if one.described is None]
    assert not undescribed, f"@operation(…) is missing at {undescribed}"


async def test_its_references_lead_somewhere(app):
    _, told = app
    names = set(told["components"]["schemas"])
    found = set()

    def look(value):
        if isinstance(value, dict):
            if "$ref" in value:
                found.add(value["$ref"])
            for child in value.values():
                look(child)
        elif isinstance(value, list):
            for child in value:
                look(child)

    look(told)
    assert found
    assert {reference.removeprefix("#/components/schemas/") for reference in found} <= names


async def test_ids_are_unique_and_errors_have_one_shape(app):
    _, told = app
    every = [one for methods in told["paths"].values() for one in methods.values()]
    ids = [one["operationId"] for one in every]
    assert len(set(ids)) == len(ids)
    for one in every:
        assert one["summary"]
        for status, response in one["responses"].items():
            if status == "default" or status >= "400":
                assert response["content"]["application/json"]["schema"] == {"$ref": "#/components/schemas/ErrorAnswer"}


async def test_parameters_bodies_and_answers_are_told(api: Api):
    paths = (await document(api))["paths"]
    send = paths["/agents/{agent}/tasks/send-priority"]["post"]
    assert [(one["name"], one["in"]) for one in send["parameters"]] == [("agent", "path"), ("priority", "query")]
    assert send["requestBody"]["content"]["application/json"]["schema"] == {"$ref": "#/components/schemas/SendBody"}
    assert send["responses"]["200"]["content"]["application/json"]["schema"]["$ref"].endswith("/TaskAnswer")
    assert set(send["responses"]) >= {"400", "401", "403", "404", "409", "413", "415", "429", "default"}
    assert not paths["/control/shutdown"]["post"]["requestBody"]["required"]
    assert paths["/healthz"]["get"]["security"] == []
    assert paths["/control/status"]["get"]["security"] == [{"bearer": []}]
    assert set(paths["/events"]["get"]["responses"]) >= {"101", "200"}


async def test_it_is_cached(api: Api):
    async with api.http.get("/openapi.json") as response:
        etag = response.headers["ETag"]
    async with api.http.get("/openapi.json", headers={"If-None-Match": etag}) as response:
        assert response.status == 304


async def test_a_route_that_nobody_described_is_told_all_the_same(control: FakeControl, tmp_path, monkeypatch):
    from synapsed.api.routes import agents

    monkeypatch.delattr(agents.list_agents, "__synapsed_description__")
    async with serving(control, tmp_path) as api:
        told = await document(api)
    assert set(told["paths"]["/agents"]["get"]["responses"]) == {"401", "403", "default"}
    json.dumps(told)
