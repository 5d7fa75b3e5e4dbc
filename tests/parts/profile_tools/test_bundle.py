"""Signatures and archives: one spelling, bounded sizes, no path that an archive names."""

import io
import tarfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import ValidationError

from synapsed.errors import ConfigError, Forbidden, InvalidRequest, SynapsedError
from synapsed.parts.profile_tools.bundles import archive
from synapsed.parts.profile_tools.bundles.archive import MANIFEST, pack, unpack
from synapsed.parts.profile_tools.bundles.bundle import MAGIC, numbers, open_bundle
from synapsed.parts.profile_tools.bundles.keys import make_key, public_text, read_key, sign
from synapsed.parts.profile_tools.face import ProfilesConfig
from tests.parts.profile_tools.made import PROFILE, Signer

FILES = {"profiles/fake.toml": PROFILE, "recordings/fake-2.0/one.raw": b"\x00\xff"}


@pytest.fixture
def signer(tmp_path: Path) -> Signer:
    return Signer(tmp_path)


def test_what_was_signed_is_what_is_opened(signer: Signer) -> None:
    opened = open_bundle(signer.bundle(FILES), signer.trusted)
    assert opened.files == {name: file.encode() if isinstance(file, str) else file for name, file in FILES.items()}
    assert opened.signer.name == "tests@example"
    assert [profile.name for profile in opened.manifest.profiles] == ["fake"]


def test_the_same_files_make_the_same_bundle(signer: Signer) -> None:
    assert signer.bundle(FILES) == signer.bundle(dict(reversed(FILES.items())))


def test_a_bundle_is_refused_whichever_byte_of_it_is_changed(signer: Signer) -> None:
    bundle = signer.bundle(FILES)
    for place in range(len(bundle)):
        for bit in (0x01, 0x20, 0x80):
            changed = bytearray(bundle)
            changed[place] ^= bit
            with pytest.raises((Forbidden, InvalidRequest)):
                open_bundle(bytes(changed), signer.trusted)


def test_a_bundle_is_refused_with_a_byte_more_or_less(signer: Signer) -> None:
    bundle = signer.bundle(FILES)
    for changed in (bundle[:-1], bundle[1:], bundle + b"\n", b"", bundle.replace(b"\n", b"\r\n", 1)):
        with pytest.raises((Forbidden, InvalidRequest)):
            open_bundle(changed, signer.trusted)


def test_the_signature_has_one_spelling(signer: Signer) -> None:
    """The last letter before `==` has bits that mean nothing."""
    head, _, rest = signer.bundle(FILES).partition(b"\n")
    letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    last = letters.index(head[-3])
    for other in {last ^ 1, last ^ 2, last ^ 15} - {last}:
        spelled = head[:-3] + letters[other : other + 1] + head[-2:]
        with pytest.raises(Forbidden, match="does not fit"):
            open_bundle(spelled + b"\n" + rest, signer.trusted)


def test_only_who_is_trusted_is_believed(signer: Signer, tmp_path: Path) -> None:
    other = Signer(tmp_path, "other")
    with pytest.raises(Forbidden, match=r"\[profiles\] keys"):
        open_bundle(signer.bundle(FILES), [])
    with pytest.raises(Forbidden, match="is not among"):
        open_bundle(signer.bundle(FILES), other.trusted)
    open_bundle(signer.bundle(FILES), other.trusted + signer.trusted)
    head, _, rest = signer.bundle(FILES).partition(b"\n")
    forged = head.replace(signer.text.encode(), other.text.encode()) + b"\n" + rest
    with pytest.raises(Forbidden, match="does not fit"):
        open_bundle(forged, other.trusted)


def test_what_is_signed_is_a_bundle_and_nothing_else(signer: Signer) -> None:
    """A signature of the same key under anything else does not count for a bundle."""
    packed = pack({"profiles/fake.toml": PROFILE.encode(), MANIFEST: b"{}"})
    bundle = f"{MAGIC} {signer.text} {sign(signer.key, packed)}\n".encode() + packed
    with pytest.raises(Forbidden, match="does not fit"):
        open_bundle(bundle, signer.trusted)


@pytest.mark.parametrize(
    "manifest",
    [{"profiles": [{"name": "other"}]}, {"profiles": [{"name": "fake"}, {"name": "more"}]}],
    ids=["another", "one more"],
)
def test_the_manifest_names_what_there_is(manifest: dict[str, object], signer: Signer) -> None:
    with pytest.raises(InvalidRequest, match=r"manifest\.json"):
        open_bundle(signer.bundle(FILES, **manifest), signer.trusted)


# --- archives --------------------------------------------------------------------------------------------------------


def tar(change: Callable[[tarfile.TarInfo], None], content: bytes = b"x", form: int = tarfile.USTAR_FORMAT) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form) as made:
        member = tarfile.TarInfo("profiles/fake.toml")
        member.size = len(content)
        change(member)
        made.addfile(member, io.BytesIO(content) if member.isreg() else None)
    deflate = zlib.compressobj(9, zlib.DEFLATED, 31)
    return deflate.compress(out.getvalue()) + deflate.flush()


NAMES = [
    "../profiles/fake.toml",
    "profiles/../fake.toml",
    "/etc/passwd",
    "profiles/.toml",
    "profiles/a/b.toml",
    "profiles/Fake.toml",
    "profiles\\fake.toml",
    "profiles/fake.toml\n",
    "recordings/fake-2.0/../one.raw",
    "recordings/../1/one.raw",
    "recordings/fake-2.0/one.sh",
    "bundle",
    "about.json",
    "",
]


@pytest.mark.parametrize("name", NAMES)
def test_no_file_has_a_name_of_another_form(name: str) -> None:
    with pytest.raises(InvalidRequest):
        unpack(tar(lambda member: setattr(member, "name", name)))


@pytest.mark.parametrize(
    "kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.CONTTYPE]
)
def test_nothing_is_in_it_but_plain_files(kind: bytes) -> None:
    def change(member: tarfile.TarInfo) -> None:
        member.type, member.linkname, member.size = kind, "/etc/passwd", 0

    with pytest.raises(InvalidRequest):
        unpack(tar(change))


def test_a_name_is_no_longer_than_its_header() -> None:
    def change(member: tarfile.TarInfo) -> None:
        member.pax_headers = {"comment": "x"}

    with pytest.raises(InvalidRequest):
        unpack(tar(change, form=tarfile.PAX_FORMAT))


def test_a_file_is_there_once() -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as made:
        for _ in range(2):
            made.addfile(tarfile.TarInfo("profiles/fake.toml"))
    deflate = zlib.compressobj(9, zlib.DEFLATED, 31)
    with pytest.raises(InvalidRequest, match="twice"):
        unpack(deflate.compress(out.getvalue()) + deflate.flush())


def test_a_bomb_is_not_unpacked() -> None:
    deflate = zlib.compressobj(9, zlib.DEFLATED, 31)
    packed = deflate.compress(bytes(archive.UNPACKED_MAX + 1)) + deflate.flush()
    assert len(packed) < archive.PACKED_MAX // 100
    with pytest.raises(InvalidRequest, match="unpacked"):
        unpack(packed)


def test_sizes_are_bounded_on_both_sides() -> None:
    large = b"#" * ((256 << 10) + 1)
    with pytest.raises(InvalidRequest, match="are allowed"):
        pack({"profiles/fake.toml": large})
    with pytest.raises(InvalidRequest, match="are allowed"):
        unpack(tar(lambda _: None, large))
    with pytest.raises(InvalidRequest, match="MiB"):
        unpack(bytes(archive.PACKED_MAX + 1))


@pytest.mark.parametrize("cut", [0, 1, 10, 60])
def test_what_is_cut_off_is_refused(cut: int) -> None:
    packed = tar(lambda _: None)
    with pytest.raises(InvalidRequest):
        unpack(packed[:cut])
    with pytest.raises(InvalidRequest):
        unpack(packed + b"more")


def test_what_says_that_it_is_larger_than_it_is_is_refused() -> None:
    out = io.BytesIO()
    member = tarfile.TarInfo("profiles/fake.toml")
    member.size = 200_000
    out.write(member.tobuf(tarfile.USTAR_FORMAT) + b"x" * 512)
    deflate = zlib.compressobj(9, zlib.DEFLATED, 31)
    with pytest.raises(InvalidRequest):
        unpack(deflate.compress(out.getvalue()) + deflate.flush())


# --- keys ------------------------------------------------------------------------------------------------------------


def test_a_private_key_is_its_owners_and_over_no_file(tmp_path: Path) -> None:
    text = make_key(tmp_path / "key")
    assert (tmp_path / "key").stat().st_mode & 0o777 == 0o600
    assert public_text(read_key(tmp_path / "key")) == text
    with pytest.raises(ConfigError, match="already"):
        make_key(tmp_path / "key")
    (tmp_path / "key").chmod(0o644)
    with pytest.raises(ConfigError, match="chmod 600"):
        read_key(tmp_path / "key")


def test_a_key_that_is_none_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="profiles key"):
        read_key(tmp_path / "nowhere")
    (tmp_path / "key").write_text("no key")
    (tmp_path / "key").chmod(0o600)
    with pytest.raises(ConfigError, match="PEM"):
        read_key(tmp_path / "key")


@pytest.mark.parametrize(
    "wrong", ["", "ed25519:", "ed25519:AAAA", "rsa:x", "ed25519:" + "é" * 44, "ed25519:" + "A" * 43 + "B"]
)
def test_the_configuration_refuses_what_is_no_key(wrong: str, signer: Signer) -> None:
    with pytest.raises(ValidationError, match="public key"):
        ProfilesConfig(keys=[wrong])
    assert ProfilesConfig(keys=signer.trusted).keys == signer.trusted


def test_releases_are_compared_by_their_numbers() -> None:
    assert numbers("0.10.0") > numbers("0.9.9")
    assert numbers("1.0") < numbers("1.0.1")
    assert numbers("0.2.0-rc1") == (0, 2, 0)


def test_every_refusal_is_an_error_of_ours() -> None:
    for bundle in (b"\xff" * 300, b"\n", MAGIC.encode(), b"synapsed-profiles-1 x y\n"):
        with pytest.raises(SynapsedError):
            open_bundle(bundle, [])
