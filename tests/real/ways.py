"""The ways in which a message goes to a real program, and what each program can do by which of them.

    python -m tests.real.ways [PYTEST ARGUMENT …]    # runs the contract, or a part of it, and writes docs/ways.md

`tests/real/test_ways.py` is the one contract; what a way cannot do is told by it as well, in a word. The page keeps
what was shown before and was not run this time; where there is no page, it has only what was run.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.support.daemon import Daemon

__all__ = ["ACP", "OFF", "PIPES", "STRUCTURED", "TYPED", "WAYS", "Way", "note", "typed", "write"]

SUITES = ("tests/real/test_ways.py",)

RESULTS = "SYNAPSED_WAYS"
"""Names a file to which each outcome is appended, a JSON line."""

DOCUMENT = Path(__file__).parents[2] / "docs" / "ways.md"

OFF = {
    "codex": "[channels.server]\ncompanion = []\n",
    "opencode": "[channels.server]\ndelivers = false\n",
}
"""What a user's profile has who wants messages typed all the same."""


@dataclass(frozen=True, slots=True)
class Way:
    """`kind`: `keys` (typed at its terminal), `structured` (over its own server, beside the terminal), `pipes` (over
    the Agent Client Protocol, without a terminal)."""

    cli: str
    kind: str

    def __str__(self) -> str:
        return f"{self.cli}-{self.kind}"


STRUCTURED = (Way("codex", "structured"), Way("opencode", "structured"))

PIPES = (Way("opencode", "pipes"), Way("gemini", "pipes"))

ACP = {"gemini": ["gemini", "--acp"], "opencode": ["opencode", "acp"]}
"""How each is started in its ACP mode."""

TYPED = (Way("codex", "keys"), Way("opencode", "keys"), Way("claude", "keys"), Way("gemini", "keys"))

WAYS = (*STRUCTURED, *PIPES, *TYPED)


def typed(cli: str, daemon: Daemon) -> None:
    """Have the program's messages typed at its terminal, also where it could take them beside it."""
    if (profile := OFF.get(cli)) is not None:
        folder = daemon.home / "config" / "profiles"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{cli}.toml").write_text(profile)
        assert daemon.ctl("reload").code == 0


def note(way: Way, what: str, outcome: str) -> None:
    """It was shown that this is so."""
    if path := os.environ.get(RESULTS):
        with Path(path).open("a") as file:
            file.write(json.dumps([str(way), what, outcome]) + "\n")


HEAD = """\
# Ways to a program

What was shown of each program, by the way in which its messages go: `keys` are typed at its terminal, `structured` go
over its own server, beside the terminal ([how](in-depth.md#beside-the-terminal)), `pipes` over the Agent
Client Protocol, without a terminal ([how](acp.md#programs-without-a-terminal)). One contract runs over all of them
(`tests/real/test_ways.py`, real programs, a scripted model); `python -m tests.real.ways` runs it and writes this page.
A cell is empty where nothing was shown yet.

"""

FOOT = """\

## Why a typed codex or gemini shows no code before the end

Where an answer is read off a screen, only what has one possible source is published, so that the early text is the
beginning of the last one. Both draw Markdown: a fence is not on the screen, nor are its language, and the marks
of a heading, of a link and of code within a line. So the text ends where the first of them stands, and goes on with the
end. (gemini draws a list with its marks as they were written: lists are read.) claude's screen is no better, but a hook
of claude reports each line once it is whole, and what stands below such lines is then read off the screen. Of gemini
(0.61) nothing gives the lines above:

- its record of the conversation has a message once that is whole, and so has every hook but one;
- that one (`AfterModel`) is run for each piece that its model sends. gemini waits for it each time, gives it the whole
  request each time, and names it in the row above its composer for as long as it answers;
- its own log of what it fetches (`GEMINI_CLI_ACTIVITY_LOG_TARGET`) has the pieces, but with each request whole and
  unmasked in a file, and leaves out models on this machine;
- a block of code that is being written is drawn up to the height of the window only ("... generating more ...").

`gemini --acp` reports everything, as the page says: `synapsectl start acp -- gemini --acp`. codex does where its
messages go over its own server, which they do unless a profile of yours says otherwise.
"""


type Shown = tuple[str, str, str]
"""A way, what was done, and its outcome."""


def shown(page: str) -> list[Shown]:
    """What the page says."""
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in page.splitlines() if line.startswith("| ")]
    if not lines:
        return []
    (_, *ways), *rows = lines
    names = [way.replace(", ", "-") for way in ways]
    return [
        (name, what, outcome) for what, *cells in rows for name, outcome in zip(names, cells, strict=True) if outcome
    ]


def table(told: Sequence[Shown]) -> str:
    """The page, of what was noted; of two outcomes of one thing it has the later one."""
    ways = map(str, WAYS)
    columns = [way for way in ways if any(way == each[0] for each in told)]
    rows = list(dict.fromkeys(what for _, what, _ in told))
    outcomes = {(way, what): outcome for way, what, outcome in told}
    page = [
        HEAD,
        f"| | {' | '.join(column.replace('-', ', ') for column in columns)} |",
        f"|---{'|---' * len(columns)}|",
    ]
    page += [f"| {what} | {' | '.join(outcomes.get((way, what), '') for way in columns)} |" for what in rows]
    return page[0] + "\n".join(page[1:]) + "\n" + FOOT


def write(results: Path, document: Path = DOCUMENT) -> None:
    """Adds what was noted to the page; what was not run this time stays as it was shown before."""
    before = shown(document.read_text()) if document.exists() else []
    told = [(way, what, outcome) for way, what, outcome in map(json.loads, results.read_text().splitlines())]
    document.write_text(table([*before, *told]))


def main(arguments: Sequence[str]) -> int:
    with tempfile.NamedTemporaryFile(suffix=".jsonl") as results:
        command = [sys.executable, "-m", "tests.real.run", "-q", *SUITES, *arguments]
        code = subprocess.run(command, env={**os.environ, RESULTS: results.name}, check=False).returncode
        if code == 0:
            write(Path(results.name))
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
