"""What a link tells of its keeper that a person should know, in its words."""

from synapsed.keepers.events import OutputGap
from synapsed.keepers.heartbeat import SILENT
from synapsed.model.link import LinkAlert


def gap_alert(gap: OutputGap) -> LinkAlert:
    message = f"{gap.end - gap.start} bytes of output were overwritten before they were read"
    return LinkAlert("OUTPUT_GAP", message, "happened", {"from": gap.start, "to": gap.end})


def disk_alert(message: str, *, full: bool) -> LinkAlert:
    """Of the keeper's alerts there is one kind."""
    text = f"{message}: the program stands still until there is space" if full else "its output is stored again"
    return LinkAlert("DISK_FULL", text, "begins" if full else "over")


def silence_alert(*, silent: bool) -> LinkAlert:
    if not silent:
        return LinkAlert("KEEPER_SILENT", "its keeper answers again", "over")
    message = (
        f"{SILENT}: messages wait until it goes on (kill -CONT, where it was stopped); stop, restart and kill end it"
    )
    return LinkAlert("KEEPER_SILENT", message, "begins")
