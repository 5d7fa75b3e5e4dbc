"""Makes a profile's side channels, with the adapters that speak them."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from synapsed.channels.launch_additions import LaunchContext
from synapsed.interfaces import Delivering, SideChannel
from synapsed.profiles.channel_spec import Channel
from synapsed.profiles.profile import Profile


class Adapter(NamedTuple):
    """The classes that speak over channels of one kind; they are made with `name`, `channel` and `context`."""

    reads: Callable[..., SideChannel]
    delivers: Callable[..., Delivering] | None = None
    """Class for channels that take messages; None if no channel of this kind can."""
    is_there: Callable[[LaunchContext], bool] = lambda _: True
    """Returns True if the launch has everything that the channel needs."""


NO_ADAPTERS: Mapping[str, Adapter] = MappingProxyType({})


def known(profile: Profile, adapters: Mapping[str, Adapter]) -> Profile:
    """Returns the profile without channels that no adapter speaks: their messages are typed."""
    channels = {name: each for name, each in profile.channels.items() if each.adapter in adapters}
    return profile if len(channels) == len(profile.channels) else profile.model_copy(update={"channels": channels})


def side_channels(profile: Profile, context: LaunchContext, adapters: Mapping[str, Adapter]) -> list[SideChannel]:
    """Returns the channels of one launch, unopened, the best first. One whose server the launch lacks is left out."""

    def rank(item: tuple[str, Channel]) -> tuple[int, str]:
        return item[1].rank, item[0]

    made = []
    for name, channel in sorted(known(profile, adapters).channels.items(), key=rank):
        adapter = adapters[channel.adapter]
        if adapter.is_there(context):
            make = (channel.delivers and adapter.delivers) or adapter.reads
            made.append(make(name=name, channel=channel, context=context))
    return made


def delivering(channels: Sequence[SideChannel]) -> Delivering | None:
    """Returns the first of an agent's channels that takes messages, if there is one."""
    return next((each for each in channels if isinstance(each, Delivering)), None)
