"""The adapter of session servers, by its name in profiles."""

from synapsed.channels import Adapter
from synapsed.parts.session_server.channel import SessionServerChannel
from synapsed.parts.session_server.delivery import SessionDelivery

ADAPTERS = {
    "session-server": Adapter(SessionServerChannel, SessionDelivery, is_there=lambda context: context.port is not None)
}
