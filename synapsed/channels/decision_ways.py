"""The ways by which rules decide a program's questions, as its profile has them. Pure."""

from collections.abc import Collection

from synapsed.channels.launch_additions import replaced_channels
from synapsed.model.released_names import RefusingRules
from synapsed.profiles.channel_spec import Channel
from synapsed.profiles.profile import Profile

__all__ = ["decides"]


def decides(profile: Profile, part: RefusingRules, adapters: Collection[str] | None) -> bool:
    """Returns True if in each launch that may come about, beside a companion or without it, a channel brings questions
    to the rules of that `part` and takes their refusal. A screen is no such channel: a row of a dialog that looks like
    a command may be a line of an edit, and a program that shows its calls does not wait for an answer."""
    if profile.transport == "pipes":
        return True
    replaced, channels = replaced_channels(profile), profile.channels
    alone = [channel for channel in channels.values() if not channel.companion and channel.adapter != "app-server"]
    beside = [channel for name, channel in channels.items() if name not in replaced]
    return all(
        any(_refuses(channel, part) for channel in launch if adapters is None or channel.adapter in adapters)
        for launch in (alone, beside)
    )


def _refuses(channel: Channel, part: RefusingRules) -> bool:
    told = channel.decisions.values()
    return any(spec.deny and (part == "deny" or not spec.rules_only) for spec in told)
