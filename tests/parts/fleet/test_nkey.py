"""Keys in the broker's text form: one key, one text, and nothing of a secret in an error."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synapsed_fleet.nkey import PREFIXES, BadKey, KeyPair, Kind, is_public, public_bytes, verify

KINDS: tuple[Kind, ...] = tuple(PREFIXES)


@pytest.mark.parametrize(("kind", "letter"), [("operator", "O"), ("account", "A"), ("user", "U")])
def test_a_seed_brings_the_pair_back(kind: Kind, letter: str) -> None:
    pair = KeyPair.generate(kind)
    again = KeyPair.from_seed(pair.seed)
    assert (again.public, again.kind, again.seed) == (pair.public, kind, pair.seed)
    assert pair.public.startswith(letter)
    assert pair.seed.startswith(f"S{letter}")
    assert len(pair.public) == 56
    assert pair.seed not in repr(pair)


def test_a_pair_of_the_brokers_own_tools_is_read() -> None:
    """As `nk -gen user -pubout` prints it."""
    pair = KeyPair.from_seed("SUADDWZ6OBVQMXTZD2WVGQXOYJCFNB5WYVLF3PXHJKF7NZ2MYSKSUVAWMA")
    assert pair.public == "UBNB5YGYWXC36KANX6RNJIXVIEXP4YLPQJK6QFRGBSQXZQI45SIZOV5I"


def test_what_is_signed_is_verified_by_its_key_and_no_other() -> None:
    one, other = KeyPair.generate("user"), KeyPair.generate("user")
    signature = one.sign(b"words")
    assert verify(one.public, "user", signature, b"words")
    assert not verify(other.public, "user", signature, b"words")
    assert not verify(one.public, "user", signature, b"word")
    assert not verify(one.public, "user", b"", b"words")
    with pytest.raises(BadKey, match="no public key of an account"):
        verify(one.public, "account", signature, b"words")


@pytest.mark.parametrize("kind", KINDS)
def test_a_key_of_one_kind_is_none_of_another(kind: Kind) -> None:
    public = KeyPair.generate(kind).public
    assert [other for other in KINDS if is_public(public, other)] == [kind]


@given(st.text(max_size=80) | st.binary(max_size=60).map(lambda raw: raw.hex().upper()))
def test_what_is_no_key_is_refused(text: str) -> None:
    with pytest.raises(BadKey) as told:
        KeyPair.from_seed(text)
    assert len(text) < 8 or text not in str(told.value)
    assert not any(is_public(text, kind) for kind in KINDS)


@given(st.integers(0, 55), st.sampled_from("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567a1 ="))
def test_a_changed_letter_makes_it_no_key(at: int, letter: str) -> None:
    public = "UBNB5YGYWXC36KANX6RNJIXVIEXP4YLPQJK6QFRGBSQXZQI45SIZOV5I"
    changed = public[:at] + letter + public[at + 1 :]
    assert is_public(changed, "user") is (changed == public)


def test_a_seed_is_no_public_key() -> None:
    with pytest.raises(BadKey):
        public_bytes(KeyPair.generate("user").seed, "user")
