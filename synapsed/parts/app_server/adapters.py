"""The adapter of app servers, by its name in profiles."""

from synapsed.channels import Adapter
from synapsed.parts.app_server.channel import AppServerChannel

ADAPTERS = {"app-server": Adapter(AppServerChannel, AppServerChannel, is_there=lambda context: context.companion)}
