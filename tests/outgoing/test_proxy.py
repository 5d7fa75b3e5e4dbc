"""Notifications through the proxy of `[outgoing]`: all but those to this machine, and only to public names."""

from collections.abc import AsyncGenerator, Iterator

import pytest

from synapsed.errors import InvalidRequest
from synapsed.outgoing import OutgoingConfig
from synapsed.outgoing.poster import HttpPoster, Receipt
from synapsed.outgoing.screening import AddressScreen
from tests.outgoing.test_poster import FakeResolver
from tests.parts.a2a.push.receiver import Receiver, receiving
from tests.support.proxy import PASSWORD, Proxy

UNKNOWN = FakeResolver([])
"""Names are the proxy's to look up."""


@pytest.fixture
async def receiver() -> AsyncGenerator[Receiver]:
    async with receiving() as receiver:
        yield receiver


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    with Proxy() as proxy:
        yield proxy


async def posted(url: str, outgoing: OutgoingConfig, *, allow=()) -> Receipt:
    poster = HttpPoster(AddressScreen(allow), timeout=30, resolver=UNKNOWN, outgoing=outgoing)
    try:
        await poster.check(url)
        return await poster.post(url, [b'{"task":{}}'], {"Content-Type": "application/json"})
    finally:
        await poster.close()


def named(receiver: Receiver, host: str = "hooks.example") -> str:
    return receiver.url.replace("127.0.0.1", host)


async def test_it_goes_through_the_proxy_which_looks_the_name_up(receiver: Receiver, proxy: Proxy):
    assert await posted(named(receiver), OutgoingConfig(proxy=proxy.url)) == Receipt(accepted=True, status=200)
    assert receiver.taken == [{"task": {}}]
    assert proxy.asked == [f"POST {named(receiver)}"]


async def test_by_tls_the_proxy_sees_the_name_only(receiver: Receiver, proxy: Proxy):
    url = named(receiver).replace("http:", "https:")
    receipt = await posted(url, OutgoingConfig(proxy=proxy.url))
    assert receipt.problem == "its certificate cannot be verified, or TLS failed", "there is no TLS at this receiver"
    assert proxy.asked == [f"CONNECT {url.split('/')[2]}"]
    assert receiver.bodies == []


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "http_proxy", "ALL_PROXY"])
async def test_the_environment_s_is_not_used(receiver: Receiver, proxy: Proxy, variable: str, monkeypatch):
    monkeypatch.setenv(variable, proxy.url)
    assert (await posted(receiver.url, OutgoingConfig(), allow=["loopback"])).accepted
    assert proxy.asked == []


async def test_to_this_machine_it_goes_directly_and_is_screened(receiver: Receiver, proxy: Proxy):
    outgoing = OutgoingConfig(proxy=proxy.url)
    assert (await posted(receiver.url, outgoing, allow=["loopback"])).accepted
    with pytest.raises(InvalidRequest, match="notifications to its network are not allowed"):
        await posted(receiver.url, outgoing)
    assert proxy.asked == []


@pytest.mark.parametrize(
    "host",
    [
        "10.1.2.3",
        "169.254.169.254",
        "[fd00::1]",
        "2852039166",
        "0xa9fea9fe",
        "metadata",
        "metadata.google.internal",
        "printer.local",
        "router.lan",
        "box.home.arpa",
    ],
)
async def test_the_proxy_is_not_asked_for_what_is_not_public(receiver: Receiver, proxy: Proxy, host: str):
    url, outgoing = named(receiver, host), OutgoingConfig(proxy=proxy.url)
    with pytest.raises(InvalidRequest, match="notifications to its network are not allowed"):
        await posted(url, outgoing)
    poster = HttpPoster(AddressScreen(), timeout=30, resolver=UNKNOWN, outgoing=outgoing)
    receipt = await poster.post(url, [b"{}"], {})  # a config that was made under other rules
    await poster.close()
    assert (receipt.accepted, "not" in receipt.problem) == (False, True)
    assert proxy.asked == []


async def test_a_private_address_that_is_allowed(receiver: Receiver, proxy: Proxy):
    url = named(receiver, "10.1.2.3")
    assert (await posted(url, OutgoingConfig(proxy=proxy.url), allow=["10.0.0.0/8"])).accepted
    assert proxy.asked == [f"POST {url}"]


async def test_a_place_without_the_proxy_is_screened_by_its_address(receiver: Receiver, proxy: Proxy):
    outgoing = OutgoingConfig(proxy=proxy.url, direct=["corp.internal"])
    for allow, accepted in ((["loopback"], True), ([], False)):
        poster = HttpPoster(AddressScreen(allow), timeout=30, resolver=FakeResolver(["127.0.0.1"]), outgoing=outgoing)
        assert (await poster.post(named(receiver, "ci.corp.internal"), [b"{}"], {})).accepted is accepted
        await poster.close()
    assert proxy.asked == []


async def test_its_password_is_sent_and_not_told(receiver: Receiver):
    with Proxy(locked=True) as proxy:
        assert (await posted(named(receiver), OutgoingConfig(proxy=proxy.url_with_password))).accepted
        wrong = OutgoingConfig(proxy=proxy.url_with_password.replace(PASSWORD, "wrong-word"))
        for url in (named(receiver), named(receiver).replace("http:", "https:")):
            receipt = await posted(url, wrong)
            assert not receipt.accepted
            assert "the proxy wants a name and a password" in receipt.problem
            assert "wrong-word" not in receipt.problem
    assert len(receiver.bodies) == 1
    assert not any("Proxy-Authorization" in headers for headers in receiver.headers)


async def test_a_proxy_that_is_away_or_refuses_is_told_as_that(receiver: Receiver):
    with Proxy(refuses=403) as proxy:
        url = named(receiver).replace("http:", "https:")
        assert (await posted(url, OutgoingConfig(proxy=proxy.url))).problem == "the proxy answered 403"
    receipt = await posted(named(receiver), OutgoingConfig(proxy=proxy.url_with_password))
    assert receipt.problem.startswith("the proxy cannot be connected to: ")
    assert PASSWORD not in receipt.problem
