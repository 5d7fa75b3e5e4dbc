"""Signed cards: taken in every form in which servers sign them, and nothing is believed that was not signed."""

import base64
import json
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest
import rfc8785
from a2a.client.card_resolver import parse_agent_card
from a2a.utils.signing import create_agent_card_signer
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from google.protobuf.json_format import MessageToDict
from jwt import PyJWS
from jwt.algorithms import ECAlgorithm

from synapsed.errors import CardInvalid, InvalidRequest
from synapsed.parts.elsewhere.signatures import keys_of, signed
from tests.parts.elsewhere.elsewhere import Elsewhere, card_03, card_10, elsewhere
from tests.parts.elsewhere.here import Here

KEY = ec.generate_private_key(ec.SECP256R1())
OTHER = ec.generate_private_key(ec.SECP256R1())
ED25519 = ed25519.Ed25519PrivateKey.generate()
RSA = rsa.generate_private_key(public_exponent=65537, key_size=2048)
PLACE = "http://127.0.0.1:1/a2a"


def pem(private: Any) -> str:
    told: bytes = private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return told.decode()


def jwk(private: Any = KEY, **more: Any) -> dict[str, Any]:
    return {**ECAlgorithm.to_jwk(private.public_key(), as_dict=True), **more}


def sign(
    card: dict[str, Any], payload: bytes, *, private: Any = KEY, alg: str = "ES256", kid: str = "k1"
) -> dict[str, Any]:
    """The card with a signature of these bytes."""
    protected, _, signature = PyJWS().encode(payload, private, algorithm=alg, headers={"kid": kid}).split(".")
    return {**card, "signatures": [*card.get("signatures", []), {"protected": protected, "signature": signature}]}


def as_it_stands(card: dict[str, Any], **options: Any) -> dict[str, Any]:
    return sign(card, rfc8785.dumps({name: value for name, value in card.items() if name != "signatures"}), **options)


def by_the_sdk(card: dict[str, Any]) -> dict[str, Any]:
    signer = create_agent_card_signer(KEY, {"kid": "k1", "alg": "ES256", "jku": None, "typ": "JOSE"})  # type: ignore[arg-type] # takes keys
    told: dict[str, Any] = MessageToDict(signer(parse_agent_card(card)))
    return told


def as_specified(card: dict[str, Any]) -> dict[str, Any]:
    """8.4.1: required members stay though they are empty, others are left out of what is signed."""
    shown = {**card, "description": "", "iconUrl": "", "skills": [{**card["skills"][0], "examples": [], "tags": []}]}
    shown["capabilities"] = {"streaming": False, "extensions": []}
    bare = json.loads(json.dumps(shown))
    del bare["skills"][0]["examples"], bare["capabilities"]["extensions"]
    return sign(shown, rfc8785.dumps(bare))


FORMS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "as it stands": as_it_stands,
    "by the SDK": by_the_sdk,
    "as specified": as_specified,
}


@pytest.mark.parametrize("form", FORMS)
def test_it_holds_in_every_form_of_signers(form: str) -> None:
    card = FORMS[form](card_10(PLACE, name="看て"))
    told, kid = signed(json.loads(json.dumps(card)), keys_of(pem(KEY)))
    assert (kid, parse_agent_card(told).name) == ("k1", "看て")
    card["supportedInterfaces"][0]["url"] = "http://127.0.0.1:2/"
    with pytest.raises(ValueError, match="does not hold what was signed"):
        signed(card, keys_of(pem(KEY)))


def test_a_card_that_the_sdk_of_0_3_signed() -> None:
    card = card_03(PLACE)
    defaults = ("protocolVersion", "preferredTransport")
    bare = {name: value for name, value in card.items() if name not in ("signatures", *defaults)}
    bare |= {"protocolVersion": card["protocolVersion"]} if card["protocolVersion"] != "0.3.0" else {}
    told = sign(card, json.dumps(bare, separators=(",", ":"), sort_keys=True).encode())
    read, _ = signed(told, keys_of(pem(KEY)))
    assert parse_agent_card(read).supported_interfaces[0].url == PLACE
    told["supportedInterfaces"] = card_10("http://127.0.0.1:2/")["supportedInterfaces"]
    read, _ = signed(told, keys_of(pem(KEY)))
    assert parse_agent_card(read).supported_interfaces[0].url == PLACE, "nothing counts that was not signed"


@pytest.mark.parametrize(
    ("private", "alg"),
    [
        (KEY, "ES256"),
        (ec.generate_private_key(ec.SECP384R1()), "ES384"),
        (ED25519, "EdDSA"),
        (RSA, "RS256"),
        (RSA, "PS512"),
    ],
)
def test_algorithms(private: Any, alg: str) -> None:
    card = as_it_stands(card_10(PLACE), private=private, alg=alg)
    assert signed(card, keys_of(pem(private)))[1] == "k1"


def test_the_key_of_that_name_counts_where_there_are_names() -> None:
    card = as_it_stands(card_10(PLACE), kid="new")
    both = {"keys": [jwk(OTHER, kid="old"), jwk(KEY, kid="new"), {"kty": "RSA", "use": "enc"}]}
    assert signed(card, keys_of(json.dumps(both)))[1] == "new"
    assert signed(card, keys_of(json.dumps(jwk())))[1] == "new"
    for wrong in (jwk(kid="old"), jwk(OTHER, kid="new")):
        with pytest.raises(ValueError, match="'new'"):
            signed(card, keys_of(json.dumps(wrong)))


def test_one_good_signature_is_enough() -> None:
    card = as_it_stands(as_it_stands(card_10(PLACE), private=OTHER, kid="old"), kid="new")
    assert signed(card, keys_of(pem(KEY)))[1] == "new"


def test_the_algorithm_is_the_keys_own() -> None:
    """Not the one that the header of a forged signature names."""
    card = card_10(PLACE)
    forged = sign(card, rfc8785.dumps(card), private="x" * 64, alg="HS256")
    unsigned = {"protected": base64.urlsafe_b64encode(b'{"alg":"none"}').decode(), "signature": ""}
    deep = {"protected": base64.urlsafe_b64encode(b"[" * 100_000).decode(), "signature": "x"}
    odd: list[Any] = [[unsigned], [deep], [{}], [1], [{"protected": 1, "signature": None}], "x", [], None]
    for signatures in (forged["signatures"], *odd):
        with pytest.raises(ValueError, match="signed"):
            signed({**card, "signatures": signatures}, keys_of(pem(KEY)))


@pytest.mark.parametrize("value", [2**60, float("inf"), "\ud800"])
def test_what_has_no_canonical_form_is_refused(value: Any) -> None:
    card = {**as_it_stands(card_10(PLACE)), "extra": value}
    with pytest.raises(ValueError, match=r"form|does not hold"):
        signed(card, keys_of(pem(KEY)))


def test_a_deep_card_is_refused() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(ValueError, match="form"):
        signed({**as_it_stands(card_10(PLACE)), "extra": deep}, keys_of(pem(KEY)))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "PEM"),
        ("nonsense", "PEM"),
        ("{", "PEM"),
        ('{"keys": 1}', "PEM"),
        ('{"keys": [1]}', "PEM"),
        ('{"keys": []}', "no key"),
        ('{"kty": "RSA"}', "no key"),
        ('{"kty": "oct", "k": "c2VjcmV0"}', "shared key"),
        (json.dumps(jwk(d="x")), "private"),
        (json.dumps(jwk(alg="RS256")), "no key"),
        (KEY.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode(), "private key"),
        (pem(rsa.generate_private_key(public_exponent=65537, key_size=1024)), "2048"),
        (pem(ec.generate_private_key(ec.SECP256K1())), "P-256"),
    ],
    ids=count(),  # keys are drawn
)
def test_files_that_are_no_keys(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        keys_of(text)


# --- when it is added, and before each send --------------------------------------------------------------------------


async def add(here: Here, place: Elsewhere, **options: Any) -> Any:
    return await here.externals.discover(place.url, "far", headers=None, **options)


async def test_a_card_must_be_signed_from_then_on(here: Here) -> None:
    async with elsewhere(as_it_stands(card_10(PLACE))) as place:
        agent = await add(here, place, key=pem(KEY))
        assert (agent.signed_by, agent.key) == ("k1", pem(KEY))
        assert not any("--key" in need for need in agent.needs)
        good = place.card
        assert isinstance(good, dict)
        cards = {
            "does not hold what was signed": {**good, "description": "another"},
            "is not signed": card_10(PLACE),
            "other keys signed it .by 'k2'.": as_it_stands(card_10(PLACE), private=OTHER, kid="k2"),
            "card is not signed": {"name": "far", "url": PLACE},
        }
        for why, card in cards.items():
            place.card = card
            await here.restarted()
            with pytest.raises(CardInvalid, match=f"{why}.*--key FILE"):
                await here.send("hi")
            for url in (place.url, f"{place.url}/"):
                with pytest.raises(CardInvalid):
                    await here.externals.discover(url, "far", headers=None)
        assert here.externals.view("far") == agent.model_copy(
            update={"last_seen": here.externals.view("far").last_seen}
        )
        assert not here.store._tasks
        place.card = as_it_stands(card_10(PLACE), private=OTHER, kid="k2")
        assert (await add(here, place, key=pem(OTHER))).signed_by == "k2"
        assert (await add(here, place, key="")).key == ""


async def test_a_key_that_is_none(here: Here) -> None:
    async with elsewhere(card_10(PLACE)) as place:
        with pytest.raises(InvalidRequest, match=r"^key: is not a public key"):
            await add(here, place, key="x")
        with pytest.raises(CardInvalid, match=r"the card is not signed; .*--key FILE.*--no-key"):
            await add(here, place, key=pem(KEY))
        place.status = 404
        with pytest.raises(CardInvalid, match="there is no agent card"):
            await add(here, place, key=pem(KEY))
    assert here.externals.agents() == []
