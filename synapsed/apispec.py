"""`[api]` of the configuration: where the daemon listens, and whom it believes (docs/configuration.md)."""

from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, model_validator


def _address_and_port(value: str) -> str:
    host, colon, port = value.rpartition(":")
    if not colon or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise ValueError("must be an address and a port, like 127.0.0.1:8090 or [::1]:8090")
    host = host.removeprefix("[").removesuffix("]")
    if host != "localhost":
        try:
            ip_address(host)
        except ValueError:
            raise ValueError(f"{host!r} is no IP address") from None
    return value


def _listen_address(value: str) -> str:
    host = _address_and_port(value).rpartition(":")[0].removeprefix("[").removesuffix("]")
    if host != "localhost" and not ip_address(host).is_loopback:
        raise ValueError(
            "only loopback addresses are served without TLS: whoever reaches this port can type into agents; "
            "'tls_listen' is for others"
        )
    return value


def _own_path(value: str) -> str:
    path = Path(value).expanduser()
    if not path.is_absolute():
        raise ValueError(
            "must be a whole path, as /etc/letsencrypt/live/box.lan/fullchain.pem, or one that begins with ~/"
        )
    return str(path)


def _network(text: str) -> str:
    try:
        ip_network(text)
    except ValueError as error:
        raise ValueError(f"must be an address or a network, as 10.0.0.0/8: {error}") from error
    return text


class ApiConfig(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    listen: Annotated[str, AfterValidator(_listen_address)] = "127.0.0.1:8090"
    """Address and port of the main listener; port 0 takes a free one."""
    agent_ports: bool = True
    """Serve each agent's routes at the root of its own port."""
    allowed_hosts: list[str] = []
    """Names accepted in `Host` besides localhost and the loopback addresses."""
    trusted_proxies: list[Annotated[str, AfterValidator(_network)]] = []
    """Addresses and networks of reverse proxies whose `X-Forwarded-*` is believed."""
    tls_listen: Annotated[str, AfterValidator(_address_and_port)] | None = None
    """Address and port of a listener with TLS, which other machines may reach; none if it is not given."""
    tls_cert: Annotated[str, AfterValidator(_own_path)] | None = None
    """A certificate in PEM, with those above it; without one the daemon makes its own."""
    tls_key: Annotated[str, AfterValidator(_own_path)] | None = None
    """Its key."""

    @model_validator(mode="after")
    def _fits(self) -> "ApiConfig":
        if (self.tls_cert is None) != (self.tls_key is None):
            raise ValueError("must have both of tls_cert and tls_key, or neither")
        if self.tls_listen is None and self.tls_cert is not None:
            raise ValueError('must have tls_listen, as "0.0.0.0:8443", with tls_cert')
        if self.tls_listen is not None and self.port and self.tls_address[1] == self.port:
            raise ValueError("must have another port in tls_listen than in listen")
        return self

    @property
    def tls_address(self) -> tuple[str, int]:
        """Numeric address and port of `tls_listen`, which is there."""
        assert self.tls_listen is not None
        host, _, port = self.tls_listen.rpartition(":")
        return host.removeprefix("[").removesuffix("]").replace("localhost", "127.0.0.1"), int(port)

    @property
    def host(self) -> str:
        return self.listen.rpartition(":")[0].removeprefix("[").removesuffix("]")

    @property
    def address(self) -> str:
        """The numeric address of `host`."""
        return "127.0.0.1" if self.host == "localhost" else self.host

    @property
    def port(self) -> int:
        return int(self.listen.rpartition(":")[2])
