"""One home in two places: on two hosts, or on a host and in a container."""

import os
import shutil
import sys
from collections.abc import Iterator

import pytest

from tests.ground.installed import Installed
from tests.ground.person import Person, is_alive, living_somewhere

pytestmark = [
    pytest.mark.night,
    pytest.mark.skipif(
        sys.platform != "linux" or os.getuid() != 0 or shutil.which("unshare") is None, reason="makes PID namespaces"
    ),
]

BOX = ("unshare", "--pid", "--fork", "--mount-proc", "--uts", "sh", "-c", 'hostname box && exec "$@"', "sh")


@pytest.fixture
def person(installed: Installed) -> Iterator[Person]:
    with living_somewhere(installed) as person:
        yield person


def test_the_other_place_does_not_take_what_lives_here(person: Person) -> None:
    assert person.ctl("start", "dummy", "--name", "d").code == 0
    program = int(str(person.ready("d")["pid"]))
    task = person.ctl("send", "d", "sleep 20").out.strip()
    person.kill()
    for verb in (("start", "dummy"), ("send", "d", "hello"), ("up",)):
        there = person.ctl(*verb, around=BOX)
        assert there.code == 3, there
        assert "(another PID namespace of this machine)" in there.err
        assert "--take-over" in there.err
    assert is_alive(program)
    back = person.ctl("up")
    assert (back.code, back.out.partition("\t")[0]) == (0, "d"), back
    waited = person.ctl("task", task, "--json")
    assert waited.json["task"]["status"] in ("working", "completed"), "its turn goes on"
    assert person.ctl("shutdown").code == 0


def test_it_is_free_once_nothing_lives(person: Person) -> None:
    assert person.ctl("start", "dummy", "--name", "d").code == 0
    assert person.ctl("shutdown").code == 0
    there = person.ctl("up", around=BOX)
    assert there.code == 0, there
