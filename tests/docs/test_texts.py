"""The texts that people see: which there are, and that none of them takes the glossary."""

import ast

from scripts.texts import _of_module, texts, unexplained
from synapsectl.parsing import command_line, parsers

MODULE = """
raise UsageError(f"no agent {name!r}: see 'synapsectl list'")
out.note("it is " "done")
self._log.warning("a line of the log")
parser.add_argument("--json", help="print a JSON document")
HELP = (("q", "leave it"),)
nothing("of a call that tells nobody")
"""


def test_what_a_module_tells() -> None:
    assert sorted((kind, text) for _, kind, text in _of_module(ast.parse(MODULE))) == [
        ("error", "no agent {}: see 'synapsectl list'"),
        ("help", "print a JSON document"),
        ("remark", "it is done"),
        ("table", "leave it"),
    ]


def test_the_texts_are_found_and_none_takes_the_glossary() -> None:
    found = list(texts())
    assert {told.kind for told in found} == {"error", "help", "remark", "table"}
    assert any(told.text.startswith("no daemon runs, and none can be started") for told in found)
    assert unexplained(found) == []


def test_the_help_of_a_verb_is_an_imperative() -> None:
    firsts = {parser.prog: parser.about.split()[0] for parser in parsers(command_line())}
    assert {name: first for name, first in firsts.items() if first in NO_IMPERATIVES} == {}


NO_IMPERATIVES = {
    "a",
    "all",
    "an",
    "are",
    "how",
    "is",
    "of",
    "one",
    "other",
    "the",
    "this",
    "what",
    "where",
    "which",
    "who",
}
"""Words that no imperative begins with."""
