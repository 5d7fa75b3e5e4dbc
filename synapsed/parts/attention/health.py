"""What keeps sinks from their work, as `synapsectl doctor` tells it."""

from synapsed.config.schema import Config
from synapsed.kernel import Automated
from synapsed.parts.attention.notifier import Notifier
from synapsed.parts.attention.notify import WebSink


class Health:
    """`config` is what counts now."""

    def __init__(self, notifier: Notifier | None = None, *, config: Config | None = None) -> None:
        self._notifier = notifier
        self.config = config or Config()

    def look(self) -> list[Automated]:
        """Each of them."""
        problems = {} if self._notifier is None else self._notifier.states()
        of_browsers = {name for name, sink in self.config.notify.sinks.items() if isinstance(sink, WebSink)}
        return [
            Automated(kind="sink", name=name, state="wrong" if problem else "ok", problem=problem)
            for name, problem in {**dict.fromkeys(self.config.notify.sinks, ""), **problems}.items()
            if name not in of_browsers
        ]
