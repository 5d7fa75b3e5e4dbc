"""The protocol of a part that draws screens as documents."""

from typing import Literal, Protocol

from synapsed.model.picture import Picture

type DrawnForm = Literal["html", "svg", "png"]
type Drawn = tuple[str, str | bytes]
"""The media type, and the document."""


class ScreenDrawing(Protocol):
    def draw(self, shown: Picture, form: DrawnForm) -> Drawn:
        """Blocks: call it in a thread. Raises NotReady where a library is missing, TooLarge."""
        ...
