"""Clients and checkers from PyPI against the port of a scripted agent: they know the specification, not us."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.programs import PYPI_CACHE
from tests.fakes.control import FakeControl
from tests.fakes.served import scripted, served
from tests.support.gated import first_of

PATIENCE_S = 120
MISSING = PYPI_CACHE.missing()

pytestmark = pytest.mark.skipif(MISSING is not None, reason=f"*** CLIENTS FROM PYPI NOT TRIED: {MISSING} ***")


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    control = FakeControl(scripted)
    control.add("dummy")
    with served(tmp_path_factory.mktemp("pypi"), control=control) as daemon:
        assert daemon.api is not None
        yield f"http://localhost:{daemon.api.agent_port}"


def run(home: Path, program: str, *arguments: str) -> str:
    """What it wrote; it must end well."""
    done = subprocess.run(
        [PYPI_CACHE.program(program), *arguments],
        env={"PATH": os.defpath, "HOME": str(home), "NO_COLOR": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.mark.parametrize("verb", first_of(["stream", "send"]))
def test_handler_speaks_to_it(endpoint: str, tmp_path: Path, verb: str) -> None:
    task = json.loads(run(tmp_path, "handler", "--output", "json", "message", verb, "--url", endpoint, "--text", "hi"))
    assert task["status"]["state"] == "TASK_STATE_COMPLETED"
    assert task["artifacts"][-1]["parts"][0]["text"] == "You said: hi"


@pytest.mark.night
def test_handler_finds_the_card_valid(endpoint: str, tmp_path: Path) -> None:
    run(tmp_path, "handler", "--output", "json", "card", "validate", "--url", endpoint)


@pytest.mark.parametrize("binding", first_of(["JSONRPC", "HTTP+JSON"]))
def test_proof_passes(endpoint: str, tmp_path: Path, binding: str) -> None:
    contract = str(tmp_path / "contract.yaml")
    run(tmp_path, "a2a-proof", "init", endpoint, "-o", contract)
    assert "1 scenario passed" in run(tmp_path, "a2a-proof", "run", contract, "--transport", binding)


def test_aops_finds_no_fault_with_the_card(endpoint: str, tmp_path: Path) -> None:
    assert "ERROR" not in run(tmp_path, "a2aops", "card", "check", endpoint)
