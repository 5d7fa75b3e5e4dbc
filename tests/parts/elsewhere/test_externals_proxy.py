"""External agents through the proxy of `[outgoing]`."""

from collections.abc import AsyncGenerator, Iterator
from pathlib import Path

import certifi
import httpx
import pytest

from synapsed.clock import SystemClock
from synapsed.errors import Unreachable
from synapsed.outgoing import OutgoingConfig
from synapsed.parts.elsewhere.addressbook import AddressBook
from synapsed.parts.elsewhere.credentials import NONE
from synapsed.parts.elsewhere.externals import Externals
from synapsed.parts.elsewhere.remote_protocol import http_client
from tests.fakes.store import MemoryStore
from tests.parts.elsewhere.elsewhere import Elsewhere, card_10, elsewhere
from tests.support.proxy import PASSWORD, Proxy


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    with Proxy(locked=True) as proxy:
        yield proxy


@pytest.fixture
async def place() -> AsyncGenerator[Elsewhere]:
    async with elsewhere(b"") as place:
        place.card = card_10(far(place, "/a2a"))
        yield place


def far(place: Elsewhere, path: str = "") -> str:
    return place.url.replace("127.0.0.1", "far.example") + path


def externals(folder: Path, proxy: str) -> Externals:
    return Externals(
        store=MemoryStore(), book=AddressBook(folder), clock=SystemClock(), outgoing=OutgoingConfig(proxy=proxy)
    )


async def test_an_agent_is_found_through_it(place: Elsewhere, proxy: Proxy, tmp_path: Path):
    here = externals(tmp_path, proxy.url_with_password)
    added = await here.discover(far(place), "far", headers=None)
    assert added.endpoint == far(place, "/a2a")
    assert proxy.asked == [f"GET {far(place)}/.well-known/agent-card.json", f"POST {far(place)}/a2a"]
    remote = await here.remote("far")
    assert (await remote.look()).name == "far"
    assert len(proxy.asked) == 3
    await here.close()
    assert not any("proxy-authorization" in map(str.lower, headers) for headers in place.seen)


async def test_one_of_this_machine_is_not(place: Elsewhere, proxy: Proxy, tmp_path: Path, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", proxy.url)
    monkeypatch.setenv("ALL_PROXY", proxy.url)
    place.card = card_10(f"{place.url}/a2a")
    for outgoing in (OutgoingConfig(proxy=proxy.url), OutgoingConfig()):
        async with http_client(NONE, outgoing) as http:
            assert (await http.get(f"{place.url}/.well-known/agent-card.json")).status_code == 200
    assert proxy.asked == []


async def test_a_name_is_compared_as_it_is_looked_up(monkeypatch: pytest.MonkeyPatch):
    """As `direct` has it, where a name of other letters can only stand as `xn--…`."""
    asked: list[str] = []

    def note(_: OutgoingConfig, host: str) -> str:
        asked.append(host)
        return "http://127.0.0.1:1"

    monkeypatch.setattr(OutgoingConfig, "proxy_for", note)
    async with http_client(NONE, OutgoingConfig(proxy="http://127.0.0.1:1")) as http:
        with pytest.raises(httpx.HTTPError):
            await http.get("https://b\u00fccher.example/a2a")
    assert asked == ["xn--bcher-kva.example"]


def test_the_authorities_are_the_system_s(monkeypatch: pytest.MonkeyPatch):
    """As they are for notifications."""
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(certifi, "where", lambda: pytest.fail("certifi's list is used"))
    http_client(NONE, OutgoingConfig())


async def test_what_it_refuses_was_not_sent_and_its_password_is_not_told(
    place: Elsewhere, proxy: Proxy, tmp_path: Path
):
    here = externals(tmp_path, proxy.url_with_password.replace(PASSWORD, "wrong-word"))
    for url, why in ((far(place), "answers 407 its name"), ("https://far.example", "answers 407")):
        with pytest.raises(Unreachable, match=f"cannot be reached: the proxy {why}") as caught:
            await here.discover(url, "far", headers=None)
        assert "wrong-word" not in str(caught.value)
        assert not caught.value.details["sent"]
    await here.close()
