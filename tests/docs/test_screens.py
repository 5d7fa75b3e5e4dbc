"""The pages of one screen: upgrading, removing, trouble. They stay that short, are found, and say what can be typed."""

import re
import shlex
import textwrap
from pathlib import Path

import pytest

from synapsectl.parsing import parse

ROOT = Path(__file__).parents[2]
PAGES = ("upgrading", "removing", "trouble")
SCREEN_ROWS, SCREEN_COLUMNS = 50, 160
"""A terminal, or an editor, that fills a screen: lines that are longer are folded."""
COMMAND = re.compile(r"(?:^\$ |`)(synapsectl [^`#\n]+)", re.MULTILINE)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_one_screen_and_found_from_the_readme(name: str) -> None:
    lines = (ROOT / f"docs/{name}.md").read_text().splitlines()
    assert sum(max(1, len(textwrap.wrap(line, SCREEN_COLUMNS))) for line in lines) <= SCREEN_ROWS
    assert f"(docs/{name}.md)" in (ROOT / "README.md").read_text()


@pytest.mark.parametrize("name", PAGES)
def test_every_command_on_it_can_be_typed(name: str) -> None:
    commands = COMMAND.findall((ROOT / f"docs/{name}.md").read_text())
    assert commands
    for command in commands:
        assert callable(parse(shlex.split(command)[1:])[1]), command
