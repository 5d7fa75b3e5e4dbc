"""What is at the place of a host's record is no certificate, unless it is one."""

from typing import Any, cast

import pytest

from synapsed_fleet.peer_certificates import NotMet, Peers
from synapsed_fleet.ports import Stored
from synapsed_fleet.trust import NotTrusted
from tests.fakes.clock import FakeClock


class Records:
    """A broker that has one record of every host."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    async def last(self, stream: str, subject: str) -> Stored:
        return Stored(subject, {}, self._body, 1)


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 16_000,
        b'{"jwt":' * 16_000,
        b'{"jwt": ' + b"9" * 5000 + b"}",
        b'{"jwt": 7}',
        b"[]",
        b"no",
        b"\xff",
    ],
    ids=["deep list", "deep object", "digits", "a number", "a list", "no json", "no text"],
)
async def test_a_host_with_such_a_record_is_not_met(body: bytes) -> None:
    unused = cast("Any", None)
    with pytest.raises(NotMet):
        await Peers(unused, unused, unused).check(unused, "laptop", cast("Any", Records(body)))


class Refusing:
    """Trusts nobody, and reads each token as text that can be encoded."""

    def host(self, jwt: str, *, now: float) -> None:
        jwt.encode()
        raise NotTrusted("it is no token")


async def test_half_a_character_in_a_record_is_no_certificate() -> None:
    unused, trust = cast("Any", None), cast("Any", Refusing())
    with pytest.raises(NotMet):
        await Peers(unused, trust, FakeClock()).check(unused, "laptop", cast("Any", Records(b'{"jwt": "\\ud800"}')))
