"""`[api]` of the configuration: the daemon's address, and the proxies that it trusts (docs/configuration.md)."""

from ipaddress import ip_address, ip_network
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict


def address_and_port(value: str) -> str:
    """Returns it if it is an address and a port. Raises ValueError."""
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
    host = address_and_port(value).rpartition(":")[0].removeprefix("[").removesuffix("]")
    if host != "localhost" and not ip_address(host).is_loopback:
        raise ValueError(
            "only loopback addresses are served without TLS: whoever reaches this port can type into agents; "
            "'tls_listen' is for others"
        )
    return value


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
    """Addresses and networks of reverse proxies whose `X-Forwarded-*` headers are trusted."""

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
