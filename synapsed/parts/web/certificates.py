"""Certificates that this daemon makes itself, so that other machines reach the page over TLS without outside help.

There are two: an authority, which a device has to trust once, and a server's certificate below it, which is made again
before it ends and whenever this machine has other names or addresses. A browser that only goes on in spite of its
warning keeps no service worker, and an iPhone opens no WebSocket then.

The authority's key could vouch for any server on earth. So the authority limits itself to some names: this machine's,
those that do not exist on the Internet, and private addresses. Pure.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Final, NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID

from synapsed.outgoing.certificates import Pem, builder, common_name, general_name, key_pem_of, key_usage, pem_of

AUTHORITY_DAYS: Final = 10 * 365
SERVER_DAYS: Final = 397
"""Days of a server's certificate. Apple's systems refuse more than 825 days, whoever has signed it."""
RENEW_DAYS: Final = 60
"""Remaining days below which a certificate is made again."""
BACKDATED: Final = timedelta(days=2)
"""Time before its making from which it is valid: the clock of a phone may be behind."""
AUTHORITY_BACKDATED: Final = timedelta(days=365)
"""The same for the authority, which is not made again as easily: the clock may have been ahead when it was made."""

NOBODYS: Final = ("local", "lan", "home.arpa", "internal", "localhost")
"""Domains without names on the Internet."""
PRIVATE: Final[tuple[IPv4Network | IPv6Network, ...]] = tuple(
    ip_network(one)
    for one in (
        *("127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "169.254.0.0/16"),
        *("::1/128", "fc00::/7", "fe80::/10"),
    )
)
"""Networks of private addresses; 100.64.0.0/10 has the addresses of a tailnet."""


def make_authority(host: str, names: Iterable[str], *, now: datetime) -> Pem:
    """Returns an authority for `names` and their subdomains, for `NOBODYS` and for `PRIVATE`, and for nothing else (RFC
    5280, 4.2.1.10). `host`: its name for people."""
    names, key = list(names), ec.generate_private_key(ec.SECP256R1())
    subject = common_name(f"synapsed on {host}")
    allowed: list[x509.GeneralName] = [x509.DNSName(name) for name in dict.fromkeys((*NOBODYS, *_dns(names)))]
    allowed += [x509.IPAddress(network) for network in dict.fromkeys((*PRIVATE, *_hosts(names)))]
    certificate = (
        builder(
            subject,
            subject,
            key.public_key(),
            begins=now - AUTHORITY_BACKDATED,
            ends=now + timedelta(days=AUTHORITY_DAYS),
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(key_usage(signs=True), critical=True)
        .add_extension(x509.NameConstraints(permitted_subtrees=allowed, excluded_subtrees=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return Pem(pem_of(certificate), key_pem_of(key))


def make_server(authority: Pem, names: Iterable[str], *, now: datetime) -> Pem:
    """Returns a server's certificate for `names`: host names and addresses, at least one. Raises ValueError if
    `authority` is no authority."""
    issuer = x509.load_pem_x509_certificate(authority.certificate.encode())
    signer = serialization.load_pem_private_key(authority.key.encode(), password=None)
    if not isinstance(signer, ec.EllipticCurvePrivateKey):
        raise ValueError("the authority's key is not on an elliptic curve")  # noqa: TRY004 - what a file holds is wrong
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = (
        builder(
            common_name("synapsed"),
            issuer.subject,
            key.public_key(),
            begins=now - BACKDATED,
            ends=now + timedelta(days=SERVER_DAYS),
        )
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(key_usage(signs=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(
            x509.SubjectAlternativeName([general_name(name) for name in dict.fromkeys(names)]), critical=False
        )
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()),
            critical=False,
        )
        .sign(signer, hashes.SHA256())
    )
    return Pem(pem_of(certificate) + authority.certificate, key_pem_of(key))


def vouches_for(authority: str, names: Iterable[str]) -> bool:
    """Returns True if an authority (PEM) may sign for all of `names`. Raises ValueError if it is no certificate."""
    certificate = x509.load_pem_x509_certificate(authority.encode())
    try:
        found = certificate.extensions.get_extension_for_class(x509.NameConstraints).value.permitted_subtrees or []
    except x509.ExtensionNotFound:
        return False
    domains = [one.value for one in found if isinstance(one, x509.DNSName)]
    networks = [one.value for one in found if isinstance(one, x509.IPAddress)]
    return all(
        any(_below(name, domain) for domain in domains) or any(_within(name, network) for network in networks)
        for name in names
    )


def is_private(name: str) -> bool:
    """Returns True if it is an address of `PRIVATE`."""
    return any(_within(name, network) for network in PRIVATE)


class ServerFacts(NamedTuple):
    """Facts of a server's certificate. `names`: host names, in lower case, perhaps with `*` in front, and addresses."""

    names: tuple[str, ...]
    begins: datetime
    ends: datetime
    fingerprint: str

    def days_left(self, now: datetime) -> float:
        """Returns the remaining days; negative: it has ended."""
        return (self.ends - now) / timedelta(days=1)


def read(certificate: str) -> ServerFacts:
    """Returns the facts of the first certificate of a PEM. Raises ValueError if it is no certificate."""
    found = x509.load_pem_x509_certificate(certificate.encode())
    try:
        named = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        names: tuple[str, ...] = ()  # browsers look nowhere else
    else:
        names = tuple(str(one.value).lower() for one in named if isinstance(one, x509.DNSName | x509.IPAddress))
    digest = found.fingerprint(hashes.SHA256())
    return ServerFacts(names, found.not_valid_before_utc, found.not_valid_after_utc, digest.hex(":").upper())


def _dns(names: Iterable[str]) -> list[str]:
    return [name for name in names if isinstance(general_name(name), x509.DNSName)]


def _hosts(names: Iterable[str]) -> list[IPv4Network | IPv6Network]:
    """Returns a network for each address that is not in `PRIVATE` already."""
    found = [one.value for name in names if isinstance(one := general_name(name), x509.IPAddress)]
    return [ip_network(str(address)) for address in found if not is_private(str(address))]


def _within(name: str, network: object) -> bool:
    try:
        return isinstance(network, IPv4Network | IPv6Network) and ip_address(name) in network
    except ValueError:
        return False


def _below(name: str, domain: str) -> bool:
    return isinstance(general_name(name), x509.DNSName) and (name == domain or name.endswith(f".{domain}"))
