"""Web Push's encryption and signatures: the RFCs' own examples, and a reader that shares no code with the writer."""

import stat
import time
from pathlib import Path

import pytest
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from hypothesis import given
from hypothesis import strategies as st

from synapsed.errors import ConfigError
from synapsed.interfaces import PushPlace
from synapsed.parts.attention.vapid import PushKey, load_or_create
from synapsed.parts.attention.webpush import HEADER, PADDED, PLAIN_MAX, TAG, keys_of, sealed
from tests.support.pushservice import BrowserKeys, checked_vapid, decoded, encoded

# RFC 8291, section 5 and appendix A.
PLAIN = b"When I grow up, I want to be a watermelon"
SENDER = "yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw"
RECEIVER = "q1dXpw3UpT5VOmu_cf_v6ih07Aems3njxI-JWgLcM94"
RECEIVER_POINT = "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"
AUTH = "BTBZMqHH6r4Tts7J_aSIgg"
SALT = "DGv6ra1nlYgDCS1FRnbzlw"
MESSAGE = (
    "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl"
    "7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
)


def private(text: str) -> ec.EllipticCurvePrivateKey:
    return ec.derive_private_key(int.from_bytes(decoded(text)), ec.SECP256R1())


def place(keys: dict[str, str]) -> PushPlace:
    return PushPlace(endpoint="https://push.example.net/a", **keys)


def test_the_example_of_rfc_8291() -> None:
    to = place({"p256dh": RECEIVER_POINT, "auth": AUTH})
    assert encoded(sealed(PLAIN, to, own=private(SENDER), salt=decoded(SALT), pad=False)) == MESSAGE


def test_the_reader_of_these_tests_reads_the_example_too() -> None:
    browser = BrowserKeys(private(RECEIVER), decoded(AUTH))
    assert browser.keys == {"p256dh": RECEIVER_POINT, "auth": AUTH}
    assert browser.read(decoded(MESSAGE)) == PLAIN


@given(st.binary(max_size=PLAIN_MAX - 1).map(lambda raw: raw + b"}"))
def test_what_is_sealed_is_read_by_its_browser_alone(plain: bytes) -> None:
    browser, other = BrowserKeys(), BrowserKeys()
    body = sealed(plain, place(browser.keys))
    assert browser.read(body) == plain
    assert len(body) <= 4096
    with pytest.raises(InvalidTag):
        other.read(body)


def test_its_size_says_little() -> None:
    browser = BrowserKeys()
    sizes = {len(sealed(b"x" * n, place(browser.keys))) for n in (0, 1, 100, PADDED - 1)}
    assert sizes == {HEADER + TAG + PADDED}
    assert len(sealed(b"x" * PLAIN_MAX, place(browser.keys))) == 4096
    with pytest.raises(ValueError, match="3993 bytes, not 3994"):
        sealed(b"x" * (PLAIN_MAX + 1), place(browser.keys))


def test_no_two_messages_have_a_key_in_common() -> None:
    browser = BrowserKeys()
    bodies = {sealed(b"same", place(browser.keys)) for _ in range(20)}
    assert len({body[:16] for body in bodies}) == len({body[21:86] for body in bodies}) == 20


OFF_CURVE = encoded(b"\x04" + b"\x01" * 64)


@pytest.mark.parametrize(
    ("p256dh", "auth", "says"),
    [
        (OFF_CURVE, AUTH, "keys.p256dh"),
        (encoded(b"\x04" * 64), AUTH, "keys.p256dh"),
        (encoded(b"\x00"), AUTH, "keys.p256dh"),
        ("A" * 9, AUTH, "keys.p256dh: must be base64url"),
        ("++//" * 22, AUTH, "keys.p256dh: must be base64url"),
        (RECEIVER_POINT, encoded(b"short"), "keys.auth"),
        (RECEIVER_POINT, "é", "keys.auth: must be base64url"),
    ],
)
def test_keys_that_are_none(p256dh: str, auth: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        keys_of(p256dh, auth)


def test_compressed_points_are_refused() -> None:
    point = decoded(RECEIVER_POINT)
    compressed = bytes([2 + point[-1] % 2]) + point[1:33]
    with pytest.raises(ValueError, match="uncompressed"):
        keys_of(encoded(compressed), AUTH)


def test_padding_of_base64_is_taken() -> None:
    assert keys_of(RECEIVER_POINT + "=", AUTH + "==") == keys_of(RECEIVER_POINT, AUTH)


def test_a_signature_that_a_push_service_takes() -> None:
    key = PushKey.new()
    header = key.authorization("https://push.example.net", now=time.time(), contact="mailto:ann@example.com")
    said, claims = checked_vapid(header, service="https://push.example.net", now=time.time())
    assert said == key.public
    assert len(decoded(key.public)) == 65
    assert claims["sub"] == "mailto:ann@example.com"
    assert PushKey.of_pem(key.pem()).public == key.public


def test_the_key_is_made_once_and_is_the_users_alone(tmp_path: Path) -> None:
    path = tmp_path / "state" / "push-key.pem"
    made = load_or_create(path)
    assert load_or_create(path).public == made.public
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_file_that_others_can_read_or_that_holds_no_key_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "push-key.pem"
    path.write_bytes(PushKey.new().pem())
    path.chmod(0o640)
    with pytest.raises(ConfigError, match="others can read it"):
        load_or_create(path)
    path.chmod(0o600)
    for content in (b"", b"\xff\x00", b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", other_curve()):
        path.write_bytes(content)
        with pytest.raises(ConfigError, match="holds no key for web pushes"):
            load_or_create(path)
        assert path.read_bytes() == content, "nothing is lost"
    path.unlink()
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigError, match="cannot be read"):
        load_or_create(path)


def other_curve() -> bytes:
    key = ec.generate_private_key(ec.SECP384R1())
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
