"""Homes with names as people, and other systems, give them."""

import os
from pathlib import Path

import pytest

from tests.ground.installed import Installed
from tests.ground.person import living_somewhere
from tests.support.daemon import PATIENCE_S

HOMES = {
    "spaces": "a b  c",
    "quotes": 'it\'s "a" $HOME',
    "an emoji": "🏠 äöü",
    "a newline": "one\ntwo",
    "a long path": "/".join(["a long name of a folder"] * 8),
    "a percent sign and a question mark": "100%25?mode=ro#x",
    "a colon": "a:b",
    "a dash in front": "-rf",
}
"""By what is unusual in them."""


@pytest.mark.night
@pytest.mark.timeout(4 * PATIENCE_S)
@pytest.mark.parametrize("unusual", HOMES)
def test_the_home_has_a_name_with(unusual: str, installed: Installed) -> None:
    with living_somewhere(installed, home=HOMES[unusual]) as person:
        for env in (person.login, person.cron):
            started = person.ctl("start", "dummy", env=env)
            assert (started.code, "Traceback" in started.err) == (0, False), started
        pid = person.pid
        person.ready("dummy")
        sent = person.ctl("send", "dummy", "--wait", "--", "echo hello", env=person.cron)
        assert (sent.code, sent.out) == (0, "hello\n"), sent
        for verb in (("list",), ("list", "--json"), ("status", "dummy"), ("status", "--json"), ("history", "hello"),
                     ("logs", "dummy"), ("doctor",), ("version",)):  # fmt: skip
            told = person.ctl(*verb)
            assert "Traceback" not in told.err, told
            assert told.code in ((0, 1) if verb == ("doctor",) else (0,)), (verb, told)
        assert person.pid == pid
        person.kill()
        sent = person.ctl("send", "dummy", "--wait", "--", "echo again")
        assert (sent.code, sent.out) == (0, "again\n"), sent
        ours = Path(person.home.parents[len(Path(HOMES[unusual]).parts) - 1])
        assert sorted(one.name for one in ours.iterdir()) == [Path(HOMES[unusual]).parts[0]]


@pytest.mark.night
def test_the_home_has_a_name_that_is_no_text(installed: Installed) -> None:
    """It could be told by no answer: refused before anything is made, with the way out."""
    with living_somewhere(installed, home=os.fsdecode(b"caf\xe9")) as person:
        for verb in (("start", "dummy"), ("list",), ("up",)):
            told = person.ctl(*verb, env=person.cron, cwd="/")
            assert (told.code, "Traceback" in told.err) == (2, False), told
            assert "is not UTF-8: name others with SYNAPSED_HOME" in told.err
        assert not person.state.exists()
        named = {"SYNAPSED_HOME": f"{person.home.parent}/s", "SYNAPSED_A2A_HOME": f"{person.home.parent}/s/a2a"}
        for verb in (("start", "dummy"), ("status", "--json"), ("shutdown",)):
            told = person.ctl(*verb, env={**person.cron, **named}, cwd="/")
            assert told.code == 0, told
