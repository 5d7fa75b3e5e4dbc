"""The turn that a program has open by what its side channels tell, until they tell of its end; and whether it was asked
to stop. Pure: what the screen says against it is `verdict`'s."""

from synapsed.model.facts import ChannelFact, PromptAccepted, TurnAnswered, TurnEnded, TurnFailed, TurnInterrupted

REPORTED_LATE_S = 5.0
"""A prompt that is reported as accepted so soon after its turn was asked to stop may be of that turn: a hook takes its
time to start on a busy machine."""


class OpenTurn:
    """The open turn of one launch of a program."""

    def __init__(self) -> None:
        self.channel: str | None = None
        """The one that told that a turn began; None while none is open."""
        self.lost_ns: int | None = None
        """When the end of the open turn was found to be lost (CLOCK_MONOTONIC); None while its channel is believed."""
        self.stop_asked_at: float | None = None
        """When the turn was asked to stop."""

    def told(self, fact: ChannelFact) -> None:
        """A side channel reported."""
        if isinstance(fact, PromptAccepted):
            self.opened(fact.channel, fact.at_ns)
        elif isinstance(fact, TurnAnswered | TurnEnded | TurnFailed | TurnInterrupted):
            self.closed()

    def opened(self, channel: str, at_ns: int) -> None:
        """`channel` reported at `at_ns` that the program had taken a prompt."""
        if self.lost_ns is not None and at_ns < self.lost_ns:
            return  # told late: of the turn that is over
        self.channel = channel
        self.lost_ns = None
        if self.stop_asked_at is not None and at_ns > (self.stop_asked_at + REPORTED_LATE_S) * 1e9:
            self.stop_over()

    def closed(self) -> None:
        """A channel reported that the program's turn is over."""
        self.channel = None

    def asked_to_stop(self, now: float) -> None:
        """What stops the running turn was typed."""
        self.stop_asked_at = now

    def stop_over(self) -> None:
        """The turn that was asked to stop has ended, or goes on."""
        self.stop_asked_at = None
