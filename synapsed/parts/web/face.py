"""The page, at the desk and on the phone: its files, paired devices and tokens for scripts, and TLS of our own.

`service` puts it together. `page` sends the page's files (`page_files`, `static`); `pairing` has the requests (bodies
and answers in `devices`), `visitors` recognises visitors (`book`, `records`: their kept data; `codes`, `lockout`);
`tls` keeps a listener up (`tls_connections`) with a certificate (`pairs`, `certificates`) for this machine's names
(`reach`).
"""

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, model_validator

from synapsed.config.config import ApiConfig, address_and_port
from synapsed.interfaces import RIGHTS
from synapsed.kernel import Face, Route


def _own_path(value: str) -> str:
    path = Path(value).expanduser()
    if not path.is_absolute():
        raise ValueError(
            "must be a whole path, as /etc/letsencrypt/live/box.lan/fullchain.pem, or one that begins with ~/"
        )
    return str(path)


class TlsConfig(ApiConfig):
    """`[api]` with the listener with TLS."""

    tls_listen: Annotated[str, AfterValidator(address_and_port)] | None = None
    """Address and port of a listener with TLS, which other machines may reach; by default there is no such listener."""
    tls_cert: Annotated[str, AfterValidator(_own_path)] | None = None
    """A certificate in PEM, with those above it; without one the daemon makes its own."""
    tls_key: Annotated[str, AfterValidator(_own_path)] | None = None
    """The key of the certificate."""

    @model_validator(mode="after")
    def _check_certificate(self) -> "TlsConfig":
        if (self.tls_cert is None) != (self.tls_key is None):
            raise ValueError("must have both of tls_cert and tls_key, or neither")
        if self.tls_listen is None and self.tls_cert is not None:
            raise ValueError('must have tls_listen, as "0.0.0.0:8443", with tls_cert')
        if self.tls_listen is not None and self.port and self.tls_address[1] == self.port:
            raise ValueError("must have another port in tls_listen than in listen")
        return self

    @property
    def tls_address(self) -> tuple[str, int]:
        """Numeric address and port of `tls_listen`, which must be set."""
        assert self.tls_listen is not None
        host, _, port = self.tls_listen.rpartition(":")
        return host.removeprefix("[").removesuffix("]").replace("localhost", "127.0.0.1"), int(port)


_ANY = frozenset(RIGHTS)

FACE = Face(
    name="web",
    opens="synapsed.parts.web.service",
    extends={"api": TlsConfig},
    routes=(
        Route(method="POST", path="/web/session", handler="pairing.enter", public=True),
        Route(method="DELETE", path="/web/session", handler="pairing.leave", needs=_ANY, of_caller=True),
        Route(method="GET", path="/web/me", handler="pairing.me", needs=frozenset({"look"}), of_caller=True),
        Route(method="GET", path="/web/authority.crt", handler="pairing.authority", public=True),
        Route(method="POST", path="/control/web/code", handler="pairing.invite"),
        Route(method="POST", path="/control/web/serve", handler="pairing.serve"),
        Route(method="GET", path="/control/devices", handler="pairing.list_devices"),
        Route(method="DELETE", path="/control/devices/{device}", handler="pairing.remove_device"),
        Route(method="GET", path="/control/tokens", handler="pairing.list_tokens"),
        Route(method="POST", path="/control/tokens", handler="pairing.make_token"),
        Route(method="DELETE", path="/control/tokens/{token}", handler="pairing.revoke_token"),
        Route(method="GET", path="/", handler="page.page", public=True),
        Route(method="GET", path="/web/{file:.+}", handler="page.file", public=True),  # last: it takes all below
    ),
    routes_in="synapsed.parts.web",
    findings_in="synapsed.parts.web.findings",
)
"""Description of this part for the daemon, which reads it without loading the part's code."""
