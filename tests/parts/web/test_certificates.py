"""What the daemon's own authority vouches for, what it does not, and when its certificates are made again."""

import os
import socket
import ssl
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from synapsed.errors import ConfigError
from synapsed.parts.web.certificates import (
    RENEW_DAYS,
    SERVER_DAYS,
    make_authority,
    make_server,
    read,
    vouches_for,
)
from synapsed.parts.web.pairs import NAMES_MAX, Pair, load_given, load_own
from synapsed.parts.web.reach import addresses, names_here
from synapsed.parts.web.visitors import is_for

NOW = datetime.now(UTC)
NAMES = ["box.local", "192.168.1.5", "localhost"]


def shaken(server: ssl.SSLContext, authority: str, name: str) -> ssl.SSLObject:
    """A strict client's end of a connection to `server` under `name`. Raises SSLError."""
    client = ssl.create_default_context(cadata=authority)
    client.verify_flags |= ssl.VERIFY_X509_STRICT
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    one = client.wrap_bio(back, there, server_hostname=name)
    other = server.wrap_bio(there, back, server_side=True)
    for _ in range(4):
        for end in (one, other):
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
    assert one.version() == "TLSv1.3"
    return one


def own(folder: Path, names: list[str] = NAMES, *, given: tuple[str, ...] = (), now: datetime = NOW) -> Pair:
    return load_own(folder, names, given=given, host="box", now=now)


@pytest.mark.parametrize("name", NAMES)
def test_a_strict_client_that_trusts_the_authority_takes_it(tmp_path: Path, name: str) -> None:
    pair = own(tmp_path)
    assert pair.authority is not None
    shaken(pair.context, pair.authority, name)


@pytest.mark.parametrize("name", ["bank.example", "box.local.bank.example", "8.8.8.8", "2001:db8::1"])
def test_the_authority_is_nobody_elsewhere(tmp_path: Path, name: str) -> None:
    """Whoever steals its key cannot read what a phone that trusts it says to others."""
    authority = make_authority("box", NAMES, now=NOW)
    assert not vouches_for(authority.certificate, [name])
    (path := tmp_path / "stolen.pem").write_text("".join(make_server(authority, [name], now=NOW)))
    stolen = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    stolen.load_cert_chain(path)
    with pytest.raises(ssl.SSLCertVerificationError, match="permitted subtree violation"):
        shaken(stolen, authority.certificate, name)


def test_it_is_kept_and_is_the_users_alone(tmp_path: Path) -> None:
    first = own(tmp_path / "tls")
    again = own(tmp_path / "tls", now=NOW + timedelta(days=1))
    assert again.told == first.told
    assert again.authority == first.authority
    for path in (tmp_path / "tls").iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path


@pytest.mark.parametrize("days", [SERVER_DAYS - RENEW_DAYS + 1, SERVER_DAYS + 1, -10])
def test_it_is_made_again_before_it_ends_and_after_a_wrong_clock(tmp_path: Path, days: int) -> None:
    first, now = own(tmp_path), NOW + timedelta(days=days)
    again = own(tmp_path, now=now)
    assert again.told.fingerprint != first.told.fingerprint
    assert again.told.begins <= now
    assert again.told.days_left(now) > RENEW_DAYS
    assert again.authority == first.authority, "no device has to be told anything"


def test_an_authority_that_ends_is_made_again(tmp_path: Path) -> None:
    first = own(tmp_path)
    again = own(tmp_path, now=NOW + timedelta(days=9 * 365))
    assert again.authority != first.authority
    assert again.authority is not None
    assert again.authority in (tmp_path / "server.pem").read_text(), "the server's is below the new one"


def test_a_new_network_is_added_and_takes_no_other_authority(tmp_path: Path) -> None:
    first = own(tmp_path)
    again = own(tmp_path, ["10.1.2.3", "box-2.local", "renamed.example", "203.0.113.9"])
    assert set(again.told.names) == {"10.1.2.3", "box-2.local", *NAMES}, "at home again it is good still"
    assert again.authority == first.authority
    many = own(tmp_path, [f"10.0.0.{number}" for number in range(NAMES_MAX)])
    assert len(many.told.names) == NAMES_MAX


def test_a_name_that_the_user_gives_is_worth_another_authority(tmp_path: Path) -> None:
    first = own(tmp_path)
    again = own(tmp_path, ["agents.example", "203.0.113.9", *NAMES], given=("agents.example", "203.0.113.9"))
    assert again.authority != first.authority
    assert again.authority is not None
    for name in ("agents.example", "203.0.113.9"):
        shaken(again.context, again.authority, name)


@pytest.mark.parametrize("spoilt", [b"", b"rubbish", b"\xff\xfe", b"-----BEGIN PRIVATE KEY-----\nno\n"])
def test_a_spoilt_server_s_file_is_made_again_and_an_authority_s_is_not(tmp_path: Path, spoilt: bytes) -> None:
    first = own(tmp_path)
    (tmp_path / "server.pem").write_bytes(spoilt)
    assert own(tmp_path).authority == first.authority
    (tmp_path / "authority.pem").write_bytes(spoilt)
    with pytest.raises(ConfigError, match=r"authority\.pem: holds no certificate with its key; remove the file"):
        own(tmp_path)


def test_an_authority_with_a_spoilt_key_is_named(tmp_path: Path) -> None:
    """Else the error would end the daemon at its start, which only ConfigError and its kin do not."""
    own(tmp_path)
    text = (path := tmp_path / "authority.pem").read_text()
    path.write_text(text.partition("-----BEGIN PRIVATE KEY-----")[0] + "-----BEGIN PRIVATE KEY-----\nno\n")
    (tmp_path / "server.pem").unlink()
    with pytest.raises(ConfigError, match=r"authority\.pem: holds no certificate with its key; remove the file"):
        own(tmp_path)


def test_own_files_that_others_can_read_are_refused(tmp_path: Path) -> None:
    own(tmp_path)
    (tmp_path / "authority.pem").chmod(0o640)
    with pytest.raises(ConfigError, match="chmod 600"):
        own(tmp_path)


def given(folder: Path, name: str = "cert", names: list[str] = NAMES) -> tuple[Path, Path]:
    made = make_server(make_authority("box", names, now=NOW), names, now=NOW)
    cert, key = folder / f"{name}.pem", folder / f"{name}.key"
    cert.write_text(made.certificate)
    key.write_text(made.key)
    return cert, key


def test_a_given_pair(tmp_path: Path) -> None:
    pair = load_given(*given(tmp_path))
    assert pair.authority is None
    assert list(pair.told.names) == NAMES
    assert pair.context.minimum_version == ssl.TLSVersion.TLSv1_2


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda cert, key: cert.unlink(), r"cert\.pem: cannot be read: No such file"),
        (lambda cert, key: key.unlink(), r"cert\.key: cannot be read: No such file"),
        (lambda cert, key: cert.write_text("rubbish"), r"cert\.pem: holds no certificate in PEM"),
        (lambda cert, key: cert.write_bytes(b"\xff" * 99), r"cert\.pem: holds no certificate in PEM"),
        (lambda cert, key: key.write_text("rubbish"), r"cert\.key: holds no key in PEM"),
        (lambda cert, key: key.write_text(""), r"cert\.key: holds no key in PEM"),
        (lambda cert, key: key.write_bytes(b"x" * 2_000_000), r"cert\.key: has 2000000 bytes, at most"),
        (lambda cert, key: (cert.unlink(), cert.mkdir()), r"cert\.pem: is not a regular file"),
        (lambda cert, key: (key.unlink(), os.mkfifo(key)), r"cert\.key: is not a regular file"),
        (lambda cert, key: key.write_text(given(key.parent, "x")[1].read_text()), r"is not the key of the certificate"),
    ],
)  # fmt: skip
def test_a_pair_that_is_none_says_which_file_and_why(tmp_path: Path, spoil, said: str) -> None:
    cert, key = given(tmp_path)
    spoil(cert, key)
    with pytest.raises(ConfigError, match=said):
        load_given(cert, key)


def test_a_key_with_a_pass_phrase_asks_nobody(tmp_path: Path) -> None:
    from cryptography.hazmat.primitives.serialization import (
        BestAvailableEncryption,
        Encoding,
        PrivateFormat,
        load_pem_private_key,
    )

    cert, key = given(tmp_path)
    plain = load_pem_private_key(key.read_bytes(), None)
    key.write_bytes(plain.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret")))
    with pytest.raises(ConfigError, match=r"cert\.key: holds no key in PEM without a pass phrase"):
        load_given(cert, key)


def test_what_a_certificate_is_for() -> None:
    names = ["box.lan", "*.example.org", "10.0.0.1"]
    assert [name for name in ("box.lan", "BOX.lan.", "a.example.org", "10.0.0.1") if not is_for(names, name)] == []
    assert [
        name for name in ("x.box.lan", "example.org", "a.b.example.org", "10.0.0.2", "", "*") if is_for(names, name)
    ] == []
    assert read(make_server(make_authority("b", ["B.Lan"], now=NOW), ["B.Lan"], now=NOW).certificate).names == (
        "b.lan",
    )


class _Address:
    def __init__(self, address: str) -> None:
        self.family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self.address = address


INTERFACES = {
    "lo": [_Address("127.0.0.1"), _Address("::1")],
    "eth0": [_Address("fe80::1%eth0"), _Address("2001:db8::5"), _Address("fd00::5"), _Address("192.168.1.5")],
    "wwan0": [_Address("198.51.100.7")],
}


def here(host: str = "0.0.0.0", **more) -> list[str]:
    about = {"allowed": [], "hostname": "Box", "interfaces": INTERFACES, "first": "192.168.1.5", "announced": False}
    return names_here(host, **(about | more))


def test_names_of_this_machine() -> None:
    assert here() == ["192.168.1.5", "fd00::5", "box.local", "box", "localhost", "127.0.0.1", "::1"]
    assert here(announced=True)[0] == "box.local", "which stays, whatever the address"
    assert here(allowed=["Agents.Lan", "no name!", "[fd00::9]"])[:3] == ["agents.lan", "fd00::9", "192.168.1.5"]
    assert here(first="203.0.113.1")[0] == "203.0.113.1", "a machine on the Internet"
    assert here("192.168.1.5") == ["192.168.1.5"]
    assert here("127.0.0.1") == ["localhost", "127.0.0.1"]
    assert here(hostname="my_box.example") == ["192.168.1.5", "fd00::5", "localhost", "127.0.0.1", "::1"]
    assert here(hostname="box.example.org")[2:5] == ["box.local", "box", "box.example.org"]


def test_addresses_of_the_page() -> None:
    assert addresses(here(), 8443) == [
        "https://192.168.1.5:8443/", "https://[fd00::5]:8443/", "https://box.local:8443/",
    ]  # fmt: skip
    assert addresses(["*.example.org", "a.example.org"], 443) == ["https://a.example.org/"]
    assert addresses(["localhost", "127.0.0.1"], 8443)[0] == "https://localhost:8443/"
