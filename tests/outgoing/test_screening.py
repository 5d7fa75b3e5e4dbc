"""Which URLs and addresses may be notified."""

from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapsed.errors import InvalidRequest
from synapsed.outgoing.screening import AddressScreen, checked_url, literal_address, origin_of

PUBLIC = ["93.184.215.14", "1.1.1.1", "2606:4700::1111", "::ffff:1.1.1.1", "64:ff9b::101:101"]
NOT_PUBLIC = [
    "127.0.0.1",
    "127.255.255.254",
    "0.0.0.0",
    "10.0.0.1",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.1.1",
    "169.254.169.254",
    "100.64.0.1",
    "192.0.2.1",
    "198.18.0.1",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::7f00:1",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "::ffff:169.254.169.254",
    "64:ff9b::7f00:1",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::1",
    "2002:7f00:1::1",
    "2002:0101:0101::1",
    "2001:0:4136:e378:8000:63bf:3fff:fdd2",
    "fe80::1",
    "fe80::1%2",
    "fec0::1",
    "fc00::1",
    "fd00:ec2::254",
    "ff02::1",
    "2001:db8::1",
]


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_are_notified(address: str):
    assert AddressScreen().permits(ip_address(address))


@pytest.mark.parametrize("address", NOT_PUBLIC)
def test_others_are_not(address: str):
    assert not AddressScreen().permits(ip_address(address))
    assert not AddressScreen(["203.0.113.0/24"]).permits(ip_address(address))


@pytest.mark.parametrize(
    ("allow", "inside", "outside"),
    [
        ("loopback", ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"], ["10.0.0.1", "0.0.0.0", "fe80::1", "::"]),
        ("10.1.0.0/16", ["10.1.2.3", "::ffff:10.1.2.3", "64:ff9b::a01:203"], ["10.2.0.1", "127.0.0.1"]),
        ("192.168.7.9", ["192.168.7.9"], ["192.168.7.8"]),
        ("fd00::/8", ["fd00::1"], ["fc00::1", "::1"]),
        ("fe80::/10", ["fe80::1", "fe80::1%2"], ["fec0::1"]),
    ],
)
def test_what_is_allowed_is_notified_too(allow: str, inside: list[str], outside: list[str]):
    screen = AddressScreen([allow])
    assert all(screen.permits(ip_address(address)) for address in inside)
    assert not any(screen.permits(ip_address(address)) for address in outside)
    assert screen.permits(ip_address("1.1.1.1"))


@given(st.ip_addresses(v=4))
def test_an_ipv4_address_is_judged_the_same_however_it_is_written(address):
    for screen in (AddressScreen(), AddressScreen(["loopback"]), AddressScreen(["10.0.0.0/8"])):
        verdict = screen.permits(address)
        for form in (f"::ffff:{address}", f"64:ff9b::{int(address) >> 16:x}:{int(address) & 0xFFFF:x}"):
            assert screen.permits(ip_address(form)) == verdict, form


@pytest.mark.parametrize(
    "url",
    [
        "https://example.com/hook?x=1",
        "http://example.com",
        "https://example.com:8443/a%20b",
        "http://[2606:4700::1111]:1024/",
        "http://93.184.215.14:80/",
        "https://müller.example/@x?to=a@b",
        "https://example.com?to=a@b",
    ],
)
def test_good_urls(url: str):
    assert checked_url(url).scheme in ("http", "https")


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("", "required"),
        ("example.com/hook", "https://"),
        ("//example.com/hook", "https://"),
        ("ftp://example.com/", "https://"),
        ("file:///etc/passwd", "https://"),
        ("unix:///run/x.sock", "https://"),
        ("gopher://example.com/", "https://"),
        ("https://", "host"),
        ("https:///hook", "host"),
        ("https://user:pass@example.com/", "user"),
        ("https://user@example.com/", "user"),
        ("https://@example.com/", "user"),
        ("http://example.com:25/", "port"),
        ("http://example.com:22/", "port"),
        ("https://example.com:0/", "port"),
        ("https://example.com:65536/", "URL"),
        ("https://example.com:x/", "URL"),
        ("http://xn--/", "URL"),
        ("https://exa mple.com/", "blanks"),
        ("https://example.com/\r\nHost: x", "blanks"),
        ("https://example.com\\@127.0.0.1/", "blanks"),
        ("https://example.com/" + "x" * 2048, "characters"),
    ],
)
def test_bad_urls_are_refused_and_not_repeated(url: str, why: str):
    with pytest.raises(InvalidRequest) as refused:
        checked_url(url)
    assert why in refused.value.message
    assert refused.value.details["field"] == "url"
    assert "pass" not in refused.value.message


@given(st.text(max_size=60))
def test_any_text_is_a_url_or_refused(text: str):
    for candidate in (text, f"http://{text}", f"https://{text}/x"):
        try:
            url = checked_url(candidate)
        except InvalidRequest:
            continue
        assert url.host
        assert url.user is None
        assert "@" not in origin_of(url)
        literal_address(url)


def test_only_the_origin_is_ever_told():
    assert origin_of(checked_url("https://example.com:8443/secret?token=secret#secret")) == "https://example.com:8443"
