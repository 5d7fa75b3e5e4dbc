"""A profile's side channels, as adapters."""

from collections.abc import Callable, Mapping

from synapsed.channels.hooks import HookChannel
from synapsed.channels.injection import LaunchContext
from synapsed.channels.session_server import SessionServerChannel
from synapsed.channelspec import Channel
from synapsed.interfaces import SideChannel
from synapsed.profiles import Profile

_ADAPTERS: Mapping[str, Callable[..., SideChannel]] = {
    "hooks": HookChannel,
    "session-server": SessionServerChannel,
}


def side_channels(profile: Profile, context: LaunchContext) -> list[SideChannel]:
    """The channels of one launch, unopened, the best first. A server without a port is left out."""

    def rank(item: tuple[str, Channel]) -> tuple[int, str]:
        return item[1].rank, item[0]

    return [
        _ADAPTERS[channel.adapter](name=name, channel=channel, context=context)
        for name, channel in sorted(profile.channels.items(), key=rank)
        if channel.adapter != "session-server" or context.port is not None
    ]
