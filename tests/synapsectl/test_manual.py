"""The manual page has every verb, option and example, and is roff that groff takes without a word."""

import shutil
import subprocess

import pytest

from synapsectl.manual import EXIT_CODES, page
from synapsectl.parsing import command_line, parsers
from tests.docs.test_reference import DOCS

needs_groff = pytest.mark.skipif(shutil.which("groff") is None, reason="NOT TRIED: groff is not installed")


@pytest.fixture(scope="module")
def shown() -> str:
    """The page as a reader sees it, in a line."""
    command = ["groff", "-man", "-Tutf8", "-P-cbou", "-rHY=0", "-k", "-ww"]
    done = subprocess.run(command, input=page(), capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return " ".join(done.stdout.replace("\u2010", "-").split())


@needs_groff
def test_every_verb_option_and_example(shown: str) -> None:
    for parser in parsers(command_line()):
        actions = [action for action in parser.own_actions if action.dest != "help"]
        assert f" {parser.description} " in shown
        for action in actions:
            assert all(option in shown for option in action.option_strings)
            assert " ".join(((action.help or "") % vars(action)).split()) in shown
        for line, about in parser.verb.examples:
            assert f" {' '.join(line.split())} {about} " in shown


def test_the_exit_codes_are_those_of_the_docs() -> None:
    section = (DOCS / "synapsectl.md").read_text().partition("## Exit codes")[2].partition("\n## ")[0]
    documented = [line.split("|")[1].strip() for line in section.splitlines() if line.startswith("| ")][1:]
    assert documented == [code for code, _ in EXIT_CODES]


def test_nothing_in_a_text_is_a_request_to_roff() -> None:
    lines = page().splitlines()
    requests = {line.split()[0] for line in lines if line.startswith((".", "'"))}
    assert requests == {".TH", ".SH", ".SS", ".PP", ".TP", ".B", ".I", ".nf", ".fi", ".RS", ".RE"}
