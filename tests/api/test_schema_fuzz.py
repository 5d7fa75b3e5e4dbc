"""A running daemon held against its own OpenAPI document by schemathesis: whatever is sent, the answer is one that the
document promises. The gate draws the same examples each time; with `SYNAPSED_FUZZ` they are drawn at random, and
`--hypothesis-seed=N` draws those of a run again."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings, strategies
from schemathesis import Case, GenerationMode, Response
from schemathesis.core.parameters import ParameterLocation
from schemathesis.specs.openapi.checks import (
    allow_header_conformance,
    ignored_auth,
    missing_required_header,
    negative_data_rejection,
    positive_data_acceptance,
)

from synapsed.api.app import build_main_app
from synapsed.api.context import ApiContext
from synapsed.api.security import Security
from synapsed.clock import SystemClock
from synapsed.config.paths import Paths
from synapsed.parts.loading import faces
from synapsed.parts.openapi.document import document
from tests.fakes.control import FakeControl
from tests.support.daemon import ANY_PORTS, PATIENCE_S, Daemon
from tests.support.kernels import no_parts

EXAMPLES = 12
"""For each route; `SYNAPSED_FUZZ` says how many it takes."""
FUZZ = os.environ.get("SYNAPSED_FUZZ")

STREAMS = frozenset(
    {"GET /events", "GET /agents/{agent}/events", "GET /agents/{agent}/terminal", "GET /agents/{agent}/screen/live"}
)
"""They never end; tests/api/test_streams.py has them."""
LEFT_OUT = STREAMS | {
    "POST /agents/{agent}/tasks/sendSubscribe",
    "POST /control/shutdown",
    "POST /external/discover",
    "POST /hosts",
}
"""The first ends when the agent has nothing else to do, the next ends the daemon, two ask hosts that there may be."""
LIFE = ("/stop", "/kill", "/restart")
"""Of an agent: these are sent to none that there is, since the other routes want it alive."""
LANGUAGES = frozenset({"at", "zone", "env"})
"""Fields in languages of their own: of a schedule, and JSON within a text."""
PARTS = ("message.parts", "agent.", "event", "data")
"""Beginnings of fields that have other rules for each kind of what they are of."""
ORDERED = "attributes.limits."
"""The beginning of fields with two numbers, of which the first must not be above the second."""
SITUATIONS = frozenset({"NOT_WAITING", "INVALID_CHOICE", "PROGRAM_NOT_FOUND", "CONFIG_ERROR"})
UNFIT = [
    allow_header_conformance,  # `tasks/send` is a `{task}` too: GET is allowed there, and there is no such task
    ignored_auth,  # knows no refusal but 401: `_check_wrong_token` has more to say
    missing_required_header,  # wants 401 of `/control/…` without a token; it is FORBIDDEN by way of TCP
]


def _document() -> dict:
    home = {"SYNAPSED_HOME": tempfile.gettempdir(), "HOME": tempfile.gettempdir()}
    control = FakeControl()
    context = ApiContext(
        control=control,
        faces=faces(),
        parts=no_parts(),
        security=Security(directory=control.directory, token="x"),
        clock=SystemClock(),
        paths=Paths.from_environ(home),
        version="1",
    )
    return document(build_main_app(context), version="1", server="http://localhost")


schema = schemathesis.openapi.from_dict(_document()).include(
    func=lambda context: context.operation.label not in LEFT_OUT
)
OPERATIONS = [operation.ok() for operation in schema.get_all_operations()]


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    with tempfile.TemporaryDirectory() as home:
        running = Daemon(Path(home), config=ANY_PORTS).start()
        try:
            running.start_agent()
            yield running
        finally:
            running.end()
            assert "Traceback" not in running.log(), running.log()


@pytest.fixture(scope="module")
def task(daemon: Daemon) -> str:
    """One that is there, and over."""
    task_id = daemon.send("hello")
    daemon.ended(task_id)
    return task_id


@pytest.fixture(scope="module")
def where(daemon: Daemon) -> tuple[str, dict[str, str]]:
    token = (daemon.home / "state" / "token").read_text().strip()
    return f"http://127.0.0.1:{daemon.port}", {"Authorization": f"Bearer {token}"}


@pytest.mark.night  # 80 s of CPU; and importing schemathesis takes a second
@pytest.mark.parametrize("operation", OPERATIONS, ids=[one.label for one in OPERATIONS])
def test_answers_are_as_promised(operation, daemon: Daemon, task: str, where):
    """A case of each operation by pytest's own means: schemathesis' plugin gives all of them one name, by which
    pytest-xdist runs one of them alone."""
    base, headers = where

    @given(case=strategies.one_of(operation.as_strategy(generation_mode=mode) for mode in GenerationMode))
    @settings(
        max_examples=int(FUZZ or EXAMPLES),
        derandomize=not FUZZ,
        database=None,
        deadline=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def promised(case: Case) -> None:
        _aim(case, {"agent": "dummy", "task": task})
        response = case.call(base_url=base, headers=headers, timeout=PATIENCE_S)
        unfit = [*UNFIT, positive_data_acceptance] if _has_no_use_for_it(response) else list(UNFIT)
        if any(value in ([], {}, None) for value in (case.query or {}).values()):
            unfit.append(negative_data_rejection)  # what is wrong with the query may be what is not sent
        case.validate_response(response, headers=headers, excluded_checks=unfit)
        if response.status_code < 300:
            _check_wrong_token(case, base)

    promised()


def _check_wrong_token(case: Case, base: str) -> None:
    """What was done with the token is refused with a wrong one: as that, or because so many of them have come."""
    refused = case.call(base_url=base, headers={"Authorization": "Bearer nobody-has-this"}, timeout=PATIENCE_S)
    locked_out = refused.status_code == 429 and refused.headers["retry-after"] and "LOCKED_OUT" in refused.text
    assert refused.status_code == 401 or locked_out, (refused.status_code, refused.text)


def _aim(case: Case, at: dict[str, str]) -> None:
    """Names in the path that would do, but name nothing, are made to name what there is; nothing is waited for."""
    place = case.meta.components.get(ParameterLocation.PATH)
    if place is not None and place.mode is GenerationMode.POSITIVE and not case.path.endswith(LIFE):
        case.path_parameters = {name: at.get(name, value) for name, value in case.path_parameters.items()}
    if isinstance(case.query.get("wait"), int) and 0 <= case.query["wait"] <= 30:
        case.query["wait"] = 0


def _has_no_use_for_it(response: Response) -> bool:
    """Whether a request of the right form was refused for what it asks now: no schema can tell that."""
    if response.status_code != 400:
        return False
    error = response.json()["error"]
    field = error["details"].get("field", "")
    if "last_id" in error["details"]:
        return True  # a cursor that is still to come
    return error["code"] in SITUATIONS or field in LANGUAGES or field.startswith((*PARTS, ORDERED))
