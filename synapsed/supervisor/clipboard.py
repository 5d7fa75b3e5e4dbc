"""A terminal attached to an agent whose program may not set the clipboard there (`[attach] clipboard`)."""

from collections.abc import AsyncIterator
from typing import Literal

from synapsed.interfaces import Attachment
from synapsed.terminal.clipboard import ClipboardFilter

_TOLD = "[{name} would set the clipboard here: not passed on, see 'clipboard' under [attach] of config.toml]"


class UnclippedAttachment:
    """An attachment (`interfaces.Attachment`) to agent `name` without what sets clipboards; its person is told once."""

    def __init__(self, inner: Attachment, name: str) -> None:
        self._inner = inner
        self._name = name
        self._filter = ClipboardFilter()
        self._told = False
        self.resize = inner.resize
        self.composes = inner.composes
        self.take_line = inner.take_line
        self.notice = inner.notice
        self.write = inner.write
        self.close = inner.close

    async def redraw(self) -> bytes:
        drawn = await self._inner.redraw()
        self._filter = ClipboardFilter()
        return self._filter.feed(drawn)

    async def output(self) -> AsyncIterator[bytes]:
        async for data in self._inner.output():
            yield self._filter.feed(data)
            if self._filter.dropped and not self._told:
                self._told = True
                self._inner.notice(_TOLD.format(name=self._name), stays=False)


def with_clipboard(attachment: Attachment, name: str, setting: Literal["deny", "allow"]) -> Attachment:
    """`attachment` to agent `name` as `[attach] clipboard` wants it."""
    return attachment if setting == "allow" else UnclippedAttachment(attachment, name)
