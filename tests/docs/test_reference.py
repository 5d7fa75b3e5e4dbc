"""What the program takes, its pages have: options of verbs, keys of configuration and profiles."""

import re
from pathlib import Path

import pytest
from pydantic import BaseModel

from synapsectl.parsing import command_line, parsers
from synapsed.config.config import agent_model
from synapsed.parts.loading import config_model
from synapsed.profiles.profile import Profile

DOCS = Path(__file__).parents[2] / "docs"
CODE = re.compile(r"```.*?```|`[^`\n]+`", re.DOTALL)
WORD = re.compile(r"-*[A-Za-z]\w*(?:-\w+)*")


def said(page: str) -> set[str]:
    """The words that stand in a page's code."""
    return {word for code in CODE.findall((DOCS / page).read_text()) for word in WORD.findall(code)}


def test_every_option_of_every_verb() -> None:
    known = said("synapsectl.md")
    for parser in parsers(command_line()):
        names = [set(action.option_strings) for action in parser.own_actions if action.dest != "help"]
        assert set(parser.prog.split()) <= known
        assert [options for options in names if options and not options & known] == [], parser.prog


@pytest.mark.parametrize(("page", "model"), [("configuration.md", config_model()), ("profiles.md", Profile)])
def test_every_key(page: str, model: type[BaseModel]) -> None:
    assert keys_of(model) - said(page) == set()


def test_every_key_of_an_agent_stands_in_its_table() -> None:
    section = (DOCS / "configuration.md").read_text().partition("## `[agents.NAME]`\n")[2].partition("\n## ")[0]
    assert set(re.findall(r"^\| \[?`(\w+)`", section, re.MULTILINE)) == set(agent_model(config_model()).model_fields)


def keys_of(model: type[BaseModel]) -> set[str]:
    found = set(model.model_fields)
    for field in model.model_fields.values():
        for nested in models_in(field.annotation):
            found |= keys_of(nested)
    return found


def models_in(annotation: object) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for argument in getattr(annotation, "__args__", ()) for model in models_in(argument)]
