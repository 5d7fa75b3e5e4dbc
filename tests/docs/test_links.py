"""What the documentation points to is there: files, and in them the headings and symbols."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r"\[(?P<text>[^\]]*)\]\((?P<target>[^)#\s]+)(?:#[^)]*)?\)")
SYMBOL = re.compile(r"`(?:\w+\.)?(?P<name>[A-Za-z_]\w*)`")


def links(page: Path) -> list[tuple[str, Path]]:
    found = [(match["text"], match["target"]) for match in LINK.finditer(page.read_text())]
    return [(text, page.parent / target) for text, target in found if "://" not in target]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    assert [str(target) for _, target in links(page) if not target.exists()] == []


def headings(page: Path) -> set[str]:
    """As what stands behind the # of a link."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_to_headings_lead_to_one(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#\s]*)#([^)]+)\)", page.read_text())
    inside = [(page.parent / path if path else page, title) for path, title in targets if "://" not in path]
    assert [f"{path}#{title}" for path, title in inside if title not in headings(path)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_symbols_are_where_the_link_says(page: Path) -> None:
    missing = []
    for text, target in links(page):
        if target.suffix == ".py" and not text.endswith(".py`") and (symbol := SYMBOL.fullmatch(text)) is not None:
            name = re.escape(symbol["name"])
            if not re.search(
                rf"^\s*(?:async def|def|class|type) {name}\b|^{name}(?::.*)? = ", target.read_text(), re.MULTILINE
            ):
                missing.append(f"{text} in {target.relative_to(page.parent)}")
    assert missing == []


def test_decisions_are_numbered_one_after_the_other() -> None:
    decisions = sorted((ROOT / "docs" / "adr").glob("*.md"))
    assert [path.name[:5] for path in decisions] == [f"{number:04}-" for number in range(1, len(decisions) + 1)]
    for number, path in enumerate(decisions, 1):
        assert path.read_text().startswith(f"# {number}. "), path.name
