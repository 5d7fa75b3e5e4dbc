"""Logging: JSON, secrets masked, a private file."""

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from synapsed import log


@pytest.fixture
def file(tmp_path: Path) -> Iterator[Path]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    root.handlers = []
    path = tmp_path / "logs" / "x.log"
    log.configure("debug", file=path)
    yield path
    for handler in root.handlers:
        handler.close()
    root.handlers = handlers
    root.setLevel(level)
    structlog.reset_defaults()


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_json_with_secrets_masked(file: Path) -> None:
    structlog.stdlib.get_logger("x").info(
        "said",
        api_key="k",
        nested={"Password": "p", "list": [{"token": "t"}]},
        env={"A": "1"},
        port=1,
        text="x" * 20_000,
    )
    (line,) = lines(file)
    assert line["event"] == "said"
    assert line["api_key"] == line["env"] == "***"
    assert line["nested"] == {"Password": "***", "list": [{"token": "***"}]}
    assert (line["port"], line["level"], line["logger"]) == (1, "info", "x")
    assert len(line["text"]) < 11_000
    assert file.stat().st_mode & 0o777 == 0o600


def test_libraries_and_exceptions_come_out_alike(file: Path) -> None:
    logging.getLogger("lib").warning("hello %s", "there")
    try:
        int("why")
    except ValueError:
        structlog.get_logger("y").exception("oh")
    first, second = lines(file)
    assert first["event"] == "hello there"
    assert "ValueError: invalid literal" in second["exception"]
