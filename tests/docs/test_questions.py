"""Questions of a newcomer: each answer is at most two clicks away from the README."""

import re
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.docs.reading import DOCS, PAGES, README, ROOT, anchor, headings, links, section

CLICKS_MAX = 2
LONG_BYTES = 30_000
"""Pages that are longer begin with a list of their headings; the map of modules is a list itself."""


class Question(NamedTuple):
    """`path`: the links that are clicked, from the README on; `answer`: words below the heading that is reached."""

    asks: str
    path: tuple[str, ...]
    answer: str


QUESTIONS = (
    Question("How do I install it, and start the first agent?", ("README.md#five-minutes",), "synapsectl start claude"),
    Question(
        "Can I try it without an account?",
        ("docs/first-hour.md",),
        "synapsectl start dummy",
    ),
    Question(
        "It says 'waiting' at once: what does claude want?",
        ("docs/moving.md#the-first-question-the-folder",),
        "synapsectl approve claude",
    ),
    Question("Which programs does it know by name?", ("docs/programs.md",), "| `claude` |"),
    Question(
        "How do I use a program that it does not know?",
        ("docs/i-want.md", "docs/profiles.md#the-smallest-one"),
        "profiles check",
    ),
    Question(
        "I have tmux scripts: what is send-keys here?",
        ("docs/moving.md", "docs/moving.md#from-tmux-scripts"),
        "tmux send-keys",
    ),
    Question("How do I leave an attached terminal?", ("README.md#five-minutes",), "ctrl-] leaves it running"),
    Question("What is wrong, and what mends it?", ("docs/trouble.md",), "synapsectl doctor"),
    Question(
        "What do the words and colours in the list mean?",
        ("docs/first-hour.md", "docs/states.md"),
        "| `waiting` |",
    ),
    Question(
        "How am I told when I am away from the machine?",
        ("docs/configuration.md#notify",),
        "ntfy",
    ),
    Question(
        "How do I answer from my phone?",
        ("docs/web.md", "docs/web.md#letting-a-browser-in"),
        "synapsectl web --phone",
    ),
    Question(
        "How do two agents work in one repository without disturbing each other?",
        ("docs/synapsectl.md#worktree-list--diff--merge--remove-diff-agent",),
        "branch",
    ),
    Question(
        "How does one agent ask another?",
        ("docs/first-hour.md#agents-that-talk-to-each-other",),
        "send_message",
    ),
    Question("How do I send from my own program?", ("docs/first-hour.md#from-a-program",), "/tasks/send"),
    Question(
        "What does exit code 7 mean in my script?",
        ("docs/i-want.md", "docs/synapsectl.md#exit-codes"),
        "| 7 | it waits for a person",
    ),
    Question(
        "Do agents survive a reboot?",
        ("docs/service.md", "docs/service.md#systemd"),
        "enable-linger",
    ),
    Question("How do I get a newer version, and go back?", ("docs/upgrading.md",), "back to the version before"),
    Question("How do I get rid of it, and what stays?", ("docs/removing.md",), "~/.local/state/synapsed"),
    Question(
        "Who on this machine may do what?",
        ("docs/i-want.md", "docs/security.md#whose-rights"),
        "person",
    ),
    Question(
        "What happens when the daemon is killed?",
        ("docs/i-want.md", "docs/in-depth.md#when-something-is-killed"),
        "The next daemon restores tasks and turns",
    ),
    Question("It says 'busy', and it rests: what do I do?", ("docs/trouble.md",), "| `busy`, although it rests |"),
    Question("What is the A2A URL of an agent?", ("docs/a2a.md#address-and-token",), "/agents/claude/a2a"),
    Question(
        "How does an A2A client on another machine prove who it is?",
        ("docs/a2a.md#address-and-token",),
        "synapsectl token create",
    ),
    Question("Where are the logs?", ("docs/configuration.md#where-the-files-are",), "logs/daemon.log"),
    Question("Where is the database?", ("docs/configuration.md#where-the-files-are",), "synapsed.db"),
    Question(
        "Can I leave an attached terminal by another key?",
        ("docs/i-want.md", "docs/synapsectl.md#attach-agent---read-only---detach-keys-keys"),
        "--detach-keys",
    ),
    Question(
        "Do the approval rules count for the agent that I have started?",
        ("docs/i-want.md", "docs/configuration.md#for-which-agent-it-counts"),
        "synapsectl restart claude",
    ),
    Question("How do I let my phone in, and what do I restart?", ("docs/web.md",), "systemctl --user restart synapsed"),
)


def test_each_is_asked_once() -> None:
    assert len({question.asks for question in QUESTIONS}) == len(QUESTIONS)


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.asks)
def test_an_answer_is_two_clicks_away(question: Question) -> None:
    assert len(question.path) <= CLICKS_MAX
    page, name = README, ""
    for click in question.path:
        path, _, name = click.partition("#")
        target = ROOT / path
        below_a_heading = target == page and name in headings(page)
        assert below_a_heading or (target, name) in set(links(page)), f"{page.name} has no link to {click}"
        page = target
    assert question.answer in section(page, name)


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if page.stat().st_size > LONG_BYTES and page.stem != "modules"],
    ids=lambda page: page.stem,
)
def test_a_long_page_begins_with_its_contents(page: Path) -> None:
    begin, _, rest = page.read_text().partition("\n## ")
    titles = re.findall(
        r"^## (.*)$", re.sub(r"^```.*?^```$", "", f"## {rest}", flags=re.DOTALL | re.MULTILINE), re.MULTILINE
    )
    contents = begin.partition("On this page:")[2]
    assert [name for name in re.findall(r"\(#([^)]+)\)", contents) if name in map(anchor, titles)] == list(
        map(anchor, titles)
    )


def groups() -> dict[str, list[Path]]:
    """The pages by the four groups of the index."""
    index = DOCS / "README.md"
    found: dict[str, list[Path]] = {}
    for name in ("start-here", "using-it", "reference", "inside"):
        rows = [line for line in section(index, name).splitlines() if line.startswith("| [")]
        listed = [line.partition("](")[2].partition(")")[0] for line in rows]
        found[name] = [(DOCS / path).resolve() for path in listed]
    return found


def test_each_page_is_in_one_group() -> None:
    listed = [page for pages in groups().values() for page in pages]
    assert len(listed) == len(set(listed))
    index = {DOCS / "README.md", DOCS / "i-want.md", README}
    assert {page for page in listed if page.parent == DOCS and page.suffix == ".md"} == set(PAGES) - index


def test_the_architecture_leads_inside() -> None:
    assert groups()["inside"][0].name == "architecture.md"


def test_each_page_is_two_clicks_from_the_readme() -> None:
    first = {target for target, _ in links(README)}
    second = {target for page in first if page.suffix == ".md" and page.exists() for target, _ in links(page)}
    assert set(PAGES) - first - second - {README} == set()


def test_how_it_works_is_one_page_with_a_dozen_links() -> None:
    page = DOCS / "how-it-works.md"
    assert len(page.read_text().split()) < 700
    assert 12 <= len(list(links(page))) <= 16
