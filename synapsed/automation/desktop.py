"""Tells the person something on the desktop, where there is one: by `notify-send`, or on macOS by `osascript`."""

import asyncio
import shutil
import sys
from asyncio.subprocess import DEVNULL
from collections.abc import Mapping

import structlog

PATIENCE_S = 10.0

log = structlog.stdlib.get_logger("synapsed.rules")


class Desktop:
    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = dict(environ)

    async def __call__(self, text: str) -> None:
        """Nothing happens where there is no such program: the log and the event have the text."""
        command = self._command(text)
        if command is None:
            return
        try:
            process = await asyncio.create_subprocess_exec(
                *command, stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL, env=self._environ
            )
            async with asyncio.timeout(PATIENCE_S):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()
        except OSError as error:
            log.info("the desktop was not told", error=str(error))

    def _command(self, text: str) -> list[str] | None:
        path = self._environ.get("PATH")
        if sys.platform == "darwin" and (program := shutil.which("osascript", path=path)) is not None:
            script = 'on run argv\ndisplay notification (item 1 of argv) with title "synapsed"\nend run'
            return [program, "-e", script, text]
        if (program := shutil.which("notify-send", path=path)) is not None:
            return [program, "--app-name=synapsed", "--", "synapsed", text]
        return None
