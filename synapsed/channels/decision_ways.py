"""The ways by which rules decide a program's questions, as its profile has them. Pure."""

from collections.abc import Collection

from synapsed.channels.launch_additions import channels_alone, replaced_channels
from synapsed.model.released_names import RefusingRules
from synapsed.profiles.channel_spec import Channel
from synapsed.profiles.profile import Profile

__all__ = ["decides"]


def decides(profile: Profile, part: RefusingRules, adapters: Collection[str] | None) -> bool:
    """Returns True if in each possible launch, with a companion (a server of the program's own) or without it, a
    channel brings questions to the rules of that `part` and takes their refusal. A screen is no such channel: a row of
    a dialog that looks like a command may be a line of an edit, and a program that shows its calls does not wait for an
    answer."""
    if profile.transport == "pipes":
        return True
    if adapters is not None:
        spoken = {name: each for name, each in profile.channels.items() if each.adapter in adapters}
        profile = profile.model_copy(update={"channels": spoken})
    replaced = replaced_channels(profile)
    beside = [channel for name, channel in profile.channels.items() if name not in replaced]
    return all(any(_refuses(channel, part) for channel in launch) for launch in (channels_alone(profile), beside))


def _refuses(channel: Channel, part: RefusingRules) -> bool:
    told = channel.decisions.values()
    return any(spec.deny and (part == "deny" or not spec.rules_only) for spec in told)
