"""Prints a task's text as it comes: of each artifact, the part that is not printed yet."""

import json

from synapsectl.markdown import MarkdownColours
from synapsectl.output import CommandOutput, harmless
from synapsed.shared.sse_parser import SseEvent

ANSWER = "answer"
BLOCKS = f"{ANSWER}."
"""Ids of the artifacts that are pieces of the answer, which is printed whole."""


class TaskPrinter:
    """Prints one task's events. If earlier text was not quite right (text off a screen), its replacement is printed
    once it is known to be right."""

    def __init__(self, out: CommandOutput) -> None:
        self._out = out
        self._told: dict[str, str] = {}
        """Text of each artifact that has come."""
        self._said: dict[str, str] = {}
        """Text of each artifact that is printed."""
        self._colours = MarkdownColours()
        self._open = False
        """True if the last printed line has not ended."""

    @property
    def open(self) -> bool:
        """Returns True if the last printed line has not ended."""
        return self._open

    @property
    def said(self) -> bool:
        """Returns True if anything is printed."""
        return bool(self._said)

    def event(self, event: SseEvent) -> None:
        if event.event != "artifact":
            return
        data = json.loads(event.data)
        artifact = data["artifact"]
        key = str(artifact.get("artifact_id") or artifact.get("artifactId") or artifact.get("name"))
        text = "".join(part.get("text", "") for part in artifact.get("parts") or [])
        if key.startswith(BLOCKS):
            return
        told, printed = self._told.get(key, ""), self._said.get(key)
        whole = self._told[key] = told + text if data.get("append") else text
        if printed is None and ANSWER in self._said and whole.startswith(self._said[ANSWER]):
            printed = self._said.pop(ANSWER)  # the printed text is this artifact's, not the answer
        if printed is not None and printed.rstrip() == whole.rstrip():
            piece = ""  # blanks at the end of a screen's row do not matter
        elif printed is not None and whole.startswith(printed):
            piece = whole[len(printed) :]
        elif printed is None or data.get("lastChunk", True):
            piece = "\n" + whole if self._open else whole
        else:
            return
        self._said[key] = whole
        if piece:
            self._open = not piece.endswith("\n")
        self._print(piece)

    def _print(self, piece: str) -> None:
        """Prints with colours on a terminal: the text is made harmless before, and no other character changes."""
        if not (self._out.on_terminal and self._out.coloured):
            self._out.piece(piece)
            return
        self._out.control(self._colours.feed(harmless(piece)))
        self._out.stdout.flush()

    def end(self) -> None:
        """Ends the colours and the last line."""
        self._out.control(self._colours.end() if self._out.on_terminal and self._out.coloured else "")
        if self._open:
            self._out.line()
            self._open = False
