"""The fleet's own certificates: one authority, pinned by its hash in every invitation, that signs brokers only.

Every certificate of a broker has the name `synapsed-broker`, which members expect (`server_hostname`): a server with a
certificate of this authority is a broker of this fleet, whatever its address.
"""

import datetime
import hashlib
import ssl
from collections.abc import Iterable
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID

from synapsed.outgoing.certificates import Pem, builder, common_name, general_name, key_pem_of, key_usage, pem_of

__all__ = [
    "AUTHORITY_DAYS",
    "BROKER_DAYS",
    "BROKER_NAME",
    "RENEW_DAYS",
    "Pem",
    "days_left",
    "fingerprint",
    "is_pair",
    "make_authority",
    "make_broker",
    "make_key",
    "names_in",
    "sign_broker",
]

BROKER_NAME: Final = "synapsed-broker"

AUTHORITY_DAYS: Final = 30 * 365
BROKER_DAYS: Final = 5 * 365
RENEW_DAYS: Final = BROKER_DAYS // 2
"""Days that are left when a broker's certificate is made again."""
BACKDATED_DAYS: Final = 30
"""Days by which a certificate is backdated, so that a host whose clock is behind can join."""


def make_authority(fleet: str, *, now: datetime.datetime) -> Pem:
    key = ec.generate_private_key(ec.SECP256R1())
    name = common_name(f"synapsed fleet {fleet[:12]}")
    certificate = (
        _builder(name, name, key.public_key(), now, AUTHORITY_DAYS)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(key_usage(signs=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return Pem(pem_of(certificate), key_pem_of(key))


def make_broker(authority: Pem, names: Iterable[str], *, now: datetime.datetime) -> Pem:
    """Makes a broker's key and certificate, for `names` besides `BROKER_NAME`: host names and addresses."""
    key = ec.generate_private_key(ec.SECP256R1())
    return Pem(_broker_certificate(authority, key.public_key(), names, now=now), key_pem_of(key))


def make_key() -> tuple[str, str]:
    """Makes a broker's key, which stays on its host, and the public key, which its admin signs (both PEM)."""
    key = ec.generate_private_key(ec.SECP256R1())
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    return key_pem_of(key), key.public_key().public_bytes(serialization.Encoding.PEM, form).decode("ascii")


def sign_broker(authority: Pem, public: str, names: Iterable[str], *, now: datetime.datetime) -> str:
    """Returns the certificate of a broker whose key is `public` (PEM). Raises ValueError, TypeError if it is another
    kind of key, or no key."""
    key = serialization.load_pem_public_key(public.encode("ascii"))
    if not isinstance(key, ec.EllipticCurvePublicKey):
        raise TypeError("the key is not one of an elliptic curve")
    return _broker_certificate(authority, key, names, now=now)


def _broker_certificate(
    authority: Pem, key: ec.EllipticCurvePublicKey, names: Iterable[str], *, now: datetime.datetime
) -> str:
    issuer = x509.load_pem_x509_certificate(authority.certificate.encode())
    signer = serialization.load_pem_private_key(authority.key.encode(), password=None)
    assert isinstance(signer, ec.EllipticCurvePrivateKey)
    subject = common_name(BROKER_NAME)
    alternatives = [general_name(name) for name in dict.fromkeys([BROKER_NAME, *names])]
    certificate = (
        _builder(subject, issuer.subject, key, now, BROKER_DAYS)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(key_usage(signs=False), critical=True)
        .add_extension(
            x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False
        )
        .add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer.public_key()),  # type: ignore[arg-type]  # it is an EC key
            critical=False,
        )
        .sign(signer, hashes.SHA256())
    )
    # The authority is in the chain: a host that joins has only its hash.
    return pem_of(certificate) + authority.certificate


def fingerprint(certificate: str) -> str:
    """Returns the SHA-256 of an authority's certificate (PEM), in hexadecimal."""
    return hashlib.sha256(ssl.PEM_cert_to_DER_cert(certificate)).hexdigest()


def is_pair(made: Pem) -> bool:
    """Returns True if the key belongs to the certificate: two files hold them, and are written one after the other."""
    key = serialization.load_pem_private_key(made.key.encode(), password=None)
    return key.public_key() == x509.load_pem_x509_certificate(made.certificate.encode()).public_key()


def days_left(certificate: str, *, now: datetime.datetime) -> float:
    """Returns the days for which the first certificate of a PEM is still valid; negative if it has expired."""
    until = x509.load_pem_x509_certificate(certificate.encode()).not_valid_after_utc
    return (until - now) / datetime.timedelta(days=1)


def names_in(certificate: str) -> set[str]:
    """Returns the host names and addresses of the first certificate of a PEM."""
    found = x509.load_pem_x509_certificate(certificate.encode()).extensions.get_extension_for_class(
        x509.SubjectAlternativeName
    )
    return {str(name.value) for name in found.value}


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: datetime.datetime, days: int
) -> x509.CertificateBuilder:
    begins = now - datetime.timedelta(days=BACKDATED_DAYS)
    return builder(subject, issuer, key, begins=begins, ends=now + datetime.timedelta(days=days))
