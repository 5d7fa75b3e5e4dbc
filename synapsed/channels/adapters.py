"""A profile's side channels, as adapters."""

from collections.abc import Callable, Mapping, Sequence

from synapsed.channels.app_server import AppServerChannel
from synapsed.channels.hooks import HookChannel
from synapsed.channels.launch_additions import LaunchContext
from synapsed.channels.session_delivery import SessionDelivery
from synapsed.channels.session_server import SessionServerChannel
from synapsed.interfaces import Delivering, SideChannel
from synapsed.profiles.channel_spec import Channel
from synapsed.profiles.profile import Profile

_DELIVERING: Mapping[str, Callable[..., Delivering]] = {
    "app-server": AppServerChannel,
    "session-server": SessionDelivery,
}
"""The adapters of channels that deliver."""

_ADAPTERS: Mapping[str, Callable[..., SideChannel]] = {
    "app-server": AppServerChannel,
    "hooks": HookChannel,
    "session-server": SessionServerChannel,
}


def side_channels(profile: Profile, context: LaunchContext) -> list[SideChannel]:
    """The channels of one launch, unopened, the best first. A server that the launch has not is left out."""

    def rank(item: tuple[str, Channel]) -> tuple[int, str]:
        return item[1].rank, item[0]

    return [
        _adapter(channel)(name=name, channel=channel, context=context)
        for name, channel in sorted(profile.channels.items(), key=rank)
        if _is_there(channel, context)
    ]


def _is_there(channel: Channel, context: LaunchContext) -> bool:
    match channel.adapter:
        case "app-server":
            return context.companion
        case "session-server":
            return context.port is not None
    return True


def delivering(channels: Sequence[SideChannel]) -> Delivering | None:
    """The first of an agent's channels over which messages go, if there is one."""
    return next((each for each in channels if isinstance(each, Delivering)), None)


def _adapter(channel: Channel) -> Callable[..., SideChannel]:
    return (channel.delivers and _DELIVERING.get(channel.adapter)) or _ADAPTERS[channel.adapter]
