"""Logging: JSON, secrets masked, a private file."""

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from synapsed.process import logging as log


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


def test_secrets_in_arguments_and_tracebacks_are_masked_too(file: Path) -> None:
    secret = "ghp_" + "a1B2c3D4" * 5
    logger = structlog.stdlib.get_logger("x")
    logger.info(f"said {secret}")
    logging.getLogger("lib").warning("said %s", secret)
    try:
        {}[secret]
    except KeyError:
        logger.exception("oh", stack_info=True)
        logging.getLogger("lib").exception("oh")
    told = lines(file)
    assert secret not in file.read_text()
    assert [line["event"] for line in told] == ["said ***", "said ***", "oh", "oh"]
    assert all("KeyError: '***'" in line["exception"] for line in told[2:])


def test_what_concerns_an_agent_is_in_its_directory_too(file: Path, tmp_path: Path) -> None:
    agents = tmp_path / "agents"
    (agents / "synapse-a-1").mkdir(parents=True)
    log.configure("info", file=file, agents=agents)
    logger = structlog.stdlib.get_logger("x")
    for agent_id in ("synapse-a-1", "synapse-b-2", "../synapse-a-1", None):
        logger.info("process", agent_id=agent_id, token="t")
    logger.debug("not this", agent_id="synapse-a-1")
    path = agents / "synapse-a-1" / log.AGENT_LOG
    (line,) = lines(path)
    assert (line["event"], line["token"]) == ("process", "***")
    assert path.stat().st_mode & 0o777 == 0o600
    assert [entry.name for entry in agents.iterdir()] == ["synapse-a-1"]
    assert len(lines(file)) == 4


def test_files_of_many_agents_are_not_all_open(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "AGENT_FILES_MAX", 2)
    log.configure("info", file=file, agents=tmp_path)
    for number in [*range(5), *range(5)]:
        (tmp_path / f"synapse-a-{number}").mkdir(exist_ok=True)
        structlog.stdlib.get_logger("x").info("process", agent_id=f"synapse-a-{number}")
    assert [len(lines(tmp_path / f"synapse-a-{number}" / log.AGENT_LOG)) for number in range(5)] == [2] * 5
    (handler,) = [one for one in logging.getLogger().handlers if isinstance(one, log._PerAgent)]
    assert len(handler._open) == 2


def test_what_comes_in_a_loop_is_told_once_a_second() -> None:
    repeats = log.Repeats()

    def told(at: float, message: object, level: int = logging.WARNING) -> str | None:
        record = logging.makeLogRecord({"name": "x", "levelno": level, "msg": message, "created": at})
        return str(record.msg) if repeats.filter(record) else None

    full = "socket.accept() out of system resource"
    assert [told(10.0 + n / 1000, full) for n in range(900)] == [full, *[None] * 899]
    assert told(10.5, {"event": "it fails", "port": 1, "timestamp": "a"}) is not None
    assert told(10.6, {"event": "it fails", "port": 1, "timestamp": "b"}) is None
    assert told(10.6, {"event": "it fails", "port": 2, "timestamp": "b"}) is not None, "another one"
    assert told(10.6, "it goes on", logging.INFO) == told(10.6, "it goes on", logging.INFO) == "it goes on"
    assert told(11.1, full) == f"{full} (899 more like it)"
    assert "'left_out': 1" in str(told(11.6, {"event": "it fails", "port": 1, "timestamp": "c"}))
