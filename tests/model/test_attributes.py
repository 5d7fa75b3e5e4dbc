"""What a program's process has of a shell, and of the daemon where nothing is known of that."""

import pytest
from pydantic import ValidationError

from synapsed.model.attributes import ProcessAttributes, ResourceLimit
from synapsed.model.records import AgentRecord


def limit(soft: int | None, hard: int | None = None) -> ResourceLimit:
    return ResourceLimit(soft=soft, hard=hard)


DAEMON = ProcessAttributes(
    umask=0o022, nice=0, cpus="all", limits={"NOFILE": limit(1024), "CORE": limit(0)}, oom_score_adj=200
)


def test_what_is_not_known_is_as_the_daemon_has_it() -> None:
    asked = ProcessAttributes(umask=0, nice=10, limits={"NOFILE": limit(64), "FSIZE": limit(1)})
    assert asked.over(DAEMON) == ProcessAttributes(
        umask=0,
        nice=10,
        cpus="all",
        limits={"NOFILE": limit(64), "CORE": limit(0), "FSIZE": limit(1)},
        oom_score_adj=200,
    )
    assert ProcessAttributes().over(DAEMON) == DAEMON
    assert asked.over(ProcessAttributes()) == asked


@pytest.mark.parametrize(
    ("attributes", "told"),
    [
        (ProcessAttributes(), None),
        (DAEMON, None),
        (ProcessAttributes(umask=0o002, nice=0, cpus="all"), None),
        (ProcessAttributes(umask=0o077, nice=10), "umask 077, nice 10"),
        (ProcessAttributes(umask=0), "umask 000"),
        (ProcessAttributes(cpus=[0, 1, 2, 5, 7, 8]), "CPUs 0-2,5,7-8"),
        (ProcessAttributes(limits={"NOFILE": limit(512), "CORE": limit(None), "FSIZE": limit(1)}), "limit NOFILE 512"),
        (ProcessAttributes(limits={"NOFILE": limit(1024, 1024)}), None),
    ],
)
def test_a_person_is_told_what_is_unusual(attributes: ProcessAttributes, told: str | None) -> None:
    assert attributes.unusual(DAEMON) == told


def test_cpus_that_the_daemon_has_too_are_not_told() -> None:
    assert ProcessAttributes(cpus=[0]).unusual(ProcessAttributes(cpus=[0])) is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"umask": 0o1000},
        {"nice": 21},
        {"cpus": []},
        {"cpus": "some"},
        {"cpus": [70_000]},
        {"cpus": list(range(4097))},
        {"limits": {"nofile": {"soft": 1, "hard": 1}}},
        {"limits": {"NOFILE": {"soft": 2, "hard": 1}}},
        {"limits": {"NOFILE": {"soft": None, "hard": 1}}},
        {"limits": {"NOFILE": {"soft": -1, "hard": None}}},
        {"limits": {"NOFILE": {"soft": 1}}},
        {"limits": {f"A{chr(65 + n // 26)}{chr(65 + n % 26)}": {"soft": 1, "hard": 1} for n in range(33)}},
        {"oom_score_adj": 1001},
    ],
)
def test_what_cannot_be(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        ProcessAttributes.model_validate(wrong)


def test_a_record_of_an_earlier_version_and_one_of_a_later_are_read() -> None:
    plain = {"id": "i", "name": "n", "profile": "p", "port": None, "cwd": "/", "created_at": 0.0}
    assert AgentRecord.model_validate(plain).attributes is None
    later = AgentRecord.model_validate({**plain, "attributes": {"umask": 63, "colour": "blue"}})
    assert later.attributes == ProcessAttributes(umask=0o077)
