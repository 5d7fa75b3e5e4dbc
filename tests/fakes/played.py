"""A link whose program is played: it answers as `examples/dummy_agent.py` does, in this process, without a terminal.

Time passes only where a message says so (`sleep`, `busy`).
"""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

from synapsed.agents.turn_outcome import INTERRUPTED
from synapsed.errors import InvalidChoice, NotWaiting
from synapsed.interfaces import Attachment, Delivery
from synapsed.model.agent import Activity
from synapsed.model.link import (
    LinkEvent,
    LinkExited,
    LinkTurnAccepted,
    LinkTurnEnded,
    LinkTurnFailed,
    LinkTurnInterrupted,
)
from synapsed.model.picture import ScreenForm, Shown
from synapsed.model.records import LaunchRecord
from synapsed.model.task import Prompt, PromptOption
from tests.fakes.control import FakeAttachment
from tests.fakes.link import FakeLink, FakeLinkFactory

__all__ = ["PlayedFactory", "PlayedLink"]

POLL_S = 0.005
"""Between two looks at a file that is waited for."""

QUESTIONS = {"y/n": "Proceed? (y/n)", "1/2/3": "Which one [1/2/3]:", "password": "Password:"}


def asked(what: str) -> Prompt:
    """What `synapsed.terminal.prompts` makes of the question."""
    options = [] if what == "password" else [PromptOption(key=key, label=key) for key in what.split("/")]
    kind: Any = "password" if what == "password" else "confirmation"
    if what == "y/n":
        options = [PromptOption(key="y", label="yes"), PromptOption(key="n", label="no")]
    elif what != "password":
        kind = "selection"
    return Prompt(prompt_id=str(uuid4()), type=kind, prompt=QUESTIONS[what], options=options)


class _Attachment(FakeAttachment):
    """Shows the screen as it was; what is typed into it gets to no program."""

    def __init__(self, screen: str, *, cols: int, rows: int, read_only: bool) -> None:
        super().__init__(cols=cols, rows=rows, read_only=read_only)
        self._screen = screen

    async def redraw(self) -> bytes:
        return b"\x1b[H\x1b[2J" + self._screen.replace("\n", "\r\n").encode()


class PlayedLink(FakeLink):
    """`typed` is all that the program was given, in order. `cwd` is its folder."""

    def __init__(self, launch: LaunchRecord, cwd: Path) -> None:
        super().__init__(launch)
        self._cwd = cwd
        self.screen = "dummy> "
        self.typed: list[str] = []
        self._turn: asyncio.Task[None] | None = None
        self._answered: asyncio.Future[str] | None = None

    async def open(self, emit: Callable[[LinkEvent], None]) -> None:
        await super().open(emit)
        self.ready()

    async def deliver(self, delivery: Delivery) -> None:
        await super().deliver(delivery)
        self.typed.append(delivery.text)
        self.screen += f"{delivery.text}\n"
        self._turn = asyncio.create_task(self._play(delivery))
        self._turn.add_done_callback(lambda turn: turn.cancelled() or turn.result())  # what went wrong is logged

    async def _play(self, delivery: Delivery) -> None:
        self.submit()
        self.emit(LinkTurnAccepted(delivery.task_id, "fake"))
        said: list[str] = []
        plain: list[str] = []
        for line in _without_mark(delivery.text).split("\n"):
            word, _, rest = line.strip().partition(" ")
            known = word in ("echo", "reverse", "lines", "sleep", "busy", "until", "ask", "exit", "fail")
            if known:
                said += await self._directive(word, rest.strip())
            else:
                plain.append(line)
        if any(line.strip() for line in plain):
            said.append("You said: " + "\n".join(plain).strip())
        text = "\n".join(said)
        self.screen += f"{text}\ndummy> "
        failed = next((line for line in said if line.startswith("!! ")), None)
        if failed is not None:
            self.emit(LinkTurnFailed(delivery.task_id, "AGENT_ERROR", failed, "screen"))
        else:
            self.emit(LinkTurnEnded(delivery.task_id, text, False, "fake"))
        self.ready()

    async def _directive(self, word: str, rest: str) -> list[str]:
        match word:
            case "echo":
                return [rest]
            case "reverse":
                return [rest[::-1]]
            case "lines":
                return [f"line {number}" for number in range(1, int(rest) + 1)]
            case "sleep" | "busy":
                await asyncio.sleep(float(rest))
                return [f"{'Slept' if word == 'sleep' else 'Busy for'} {float(rest):g} s."]
            case "until":
                while not (self._cwd / rest).exists():
                    await asyncio.sleep(POLL_S)
                return ["It is there."]
            case "ask":
                return await self._ask(asked(rest))
            case "fail":
                return [f"!! {rest or 'failed'}"]
        self.die(int(rest))
        return await asyncio.get_running_loop().create_future()  # nothing is said any more

    async def _ask(self, prompt: Prompt) -> list[str]:
        self._answered = asyncio.get_running_loop().create_future()
        self.screen += prompt.prompt
        self.observe_as(Activity.WAITING, prompt=prompt)
        try:
            given = await self._answered
        finally:
            self._answered = None
        self.observe_as(Activity.BUSY)
        if prompt.type == "password":
            return [f"A password of {len(given)} characters."]
        return [f"{prompt.prompt} {given}", f"Answered: {given}"]

    async def answer(self, text: str, prompt_id: str | None) -> bool:
        prompt = self.seen.prompt
        if self._answered is None or prompt is None:
            raise NotWaiting("the program asks nothing")
        if prompt.options and text not in {option.key for option in prompt.options}:
            raise InvalidChoice(f"{text!r} is none of the options", prompt_id=prompt.prompt_id)
        await super().answer(text, prompt_id)
        self._answered.set_result(text)
        return prompt.type == "password"

    async def interrupt(self) -> bool:
        self.interrupts += 1
        self._end()
        self.screen += "[interrupted]\ndummy> "
        self.emit(LinkTurnInterrupted(self.deliveries[-1].task_id, INTERRUPTED, "fake"))
        self.ready()
        return True

    async def stop(self, grace: float) -> LinkExited:
        self._end()
        return await super().stop(grace)

    def die(self, code: int | None, reason: str = "the program ended") -> None:
        if asyncio.current_task() is not self._turn:
            self._end()
        super().die(code, reason)

    async def close(self) -> None:
        self._end()
        await super().close()

    def _end(self) -> None:
        if self._turn is not None:
            self._turn.cancel()

    async def attach(self, *, cols: int, rows: int, read_only: bool, keep_size: bool = False) -> Attachment:
        return _Attachment(self.screen, cols=cols, rows=rows, read_only=read_only)

    async def screen_as(self, fmt: ScreenForm) -> Shown:
        lines = self.screen.split("\n")
        return {"cols": 80, "rows": 24, "alternate": False, "lines": lines} if fmt == "json" else self.screen


class PlayedFactory(FakeLinkFactory):
    """See the module. The newest link is the one of what was launched last."""

    def _link(self, launch: LaunchRecord) -> PlayedLink:
        link = PlayedLink(launch, Path(self.launched[-1][0].cwd))
        self.links.append(link)
        return link


def _without_mark(message: str) -> str:
    for mark in ("[A2A:", "[from "):
        if message.startswith(mark) and "]" in message:
            return message.partition("]")[2].lstrip()
    return message
