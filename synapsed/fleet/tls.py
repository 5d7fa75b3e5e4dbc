"""The fleet's own certificates: one authority, pinned by its hash in every invitation, that signs brokers only.

Every certificate of a broker has the name `synapsed-broker`, which is what members ask for (`server_hostname`): who has
a certificate of this authority is a broker of this fleet, at whatever address it is today.
"""

import datetime
import hashlib
import ipaddress
import ssl
from collections.abc import Iterable
from typing import Final, NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

BROKER_NAME: Final = "synapsed-broker"

AUTHORITY_DAYS: Final = 30 * 365
BROKER_DAYS: Final = 5 * 365
RENEW_DAYS: Final = BROKER_DAYS // 2
"""A broker's certificate is made again when it counts for less."""
BACKDATED_DAYS: Final = 30
"""A certificate counts from before it was made: a host whose clock is behind joins all the same."""


class Pem(NamedTuple):
    """A certificate and its key, as PEM. The key is a secret."""

    certificate: str
    key: str


def make_authority(fleet: str, *, now: datetime.datetime) -> Pem:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"synapsed fleet {fleet[:12]}")])
    certificate = (
        _builder(name, name, key.public_key(), now, AUTHORITY_DAYS)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return Pem(_pem(certificate), _key_pem(key))


def make_broker(authority: Pem, names: Iterable[str], *, now: datetime.datetime) -> Pem:
    """A broker's certificate, for `names` besides `BROKER_NAME`: host names and addresses."""
    issuer = x509.load_pem_x509_certificate(authority.certificate.encode())
    signer = serialization.load_pem_private_key(authority.key.encode(), password=None)
    assert isinstance(signer, ec.EllipticCurvePrivateKey)
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, BROKER_NAME)])
    alternatives = [_general(name) for name in dict.fromkeys([BROKER_NAME, *names])]
    certificate = (
        _builder(subject, issuer.subject, key.public_key(), now, BROKER_DAYS)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs=False), critical=True)
        .add_extension(
            x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False
        )
        .add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer.public_key()),  # type: ignore[arg-type]  # it is an EC key
            critical=False,
        )
        .sign(signer, hashes.SHA256())
    )
    # The authority stands in the chain: who joins has only its hash.
    return Pem(_pem(certificate) + authority.certificate, _key_pem(key))


def fingerprint(certificate: str) -> str:
    """SHA-256 of an authority's certificate (PEM), in hexadecimal."""
    return hashlib.sha256(ssl.PEM_cert_to_DER_cert(certificate)).hexdigest()


def days_left(certificate: str, *, now: datetime.datetime) -> float:
    """For how long the first certificate of a PEM counts; negative: it counts no more."""
    until = x509.load_pem_x509_certificate(certificate.encode()).not_valid_after_utc
    return (until - now) / datetime.timedelta(days=1)


def names_in(certificate: str) -> set[str]:
    """Host names and addresses of the first certificate of a PEM."""
    found = x509.load_pem_x509_certificate(certificate.encode()).extensions.get_extension_for_class(
        x509.SubjectAlternativeName
    )
    return {str(name.value) for name in found.value}


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: datetime.datetime, days: int
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=BACKDATED_DAYS))
        .not_valid_after(now + datetime.timedelta(days=days))
    )


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs,
        key_cert_sign=signs,
        crl_sign=signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _general(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode("ascii")


def _key_pem(key: ec.EllipticCurvePrivateKey) -> str:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode("ascii")
