"""Reading the pages: their blocks of code, the commands in them, headings and links."""

import re
from collections.abc import Iterator
from pathlib import Path

__all__ = [
    "DOCS",
    "PAGES",
    "README",
    "ROOT",
    "anchor",
    "blocks",
    "commands",
    "headings",
    "inline_commands",
    "links",
    "section",
]

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
README = ROOT / "README.md"
PAGES = [README, *sorted(DOCS.glob("*.md"))]
"""The pages that people read; the decisions in `adr` are no part of them."""

_BLOCK = re.compile(r"^```(?P<language>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"`(synapsectl [^`\n]+)`")
_INDENTED = re.compile(r"^ {4}(synapsectl .*)$", re.MULTILINE)
_HEADING = re.compile(r"^(#+) (.*)$", re.MULTILINE)
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\((?P<path>[^)#\s]*)(?:#(?P<anchor>[^)\s]+))?\)")


def blocks(page: Path, language: str) -> list[str]:
    """Returns the texts of the page's blocks in a language."""
    return [match["text"] for match in _BLOCK.finditer(page.read_text()) if match["language"] == language]


def commands(block: str) -> list[str]:
    """Returns what is typed in a console block, without remarks."""
    joined = block.replace("\\\n", " ")
    return [_bare(line[2:]) for line in joined.splitlines() if line.startswith("$ ")]


def inline_commands(page: Path) -> list[str]:
    """Returns the command lines of the tool that stand in the page's sentences and tables, and in indented lines."""
    text = _BLOCK.sub("", page.read_text())
    return [*_INLINE.findall(text), *map(_bare, _INDENTED.findall(text))]


def _bare(line: str) -> str:
    return re.split(r"\s+# ", line)[0].strip()


def anchor(title: str) -> str:
    """Returns what stands behind the # of a link to a heading."""
    return re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")


def headings(page: Path) -> list[str]:
    """Returns the anchors of the page's headings."""
    return [anchor(title) for _, title in _HEADING.findall(_BLOCK.sub("", page.read_text()))]


def section(page: Path, name: str) -> str:
    """Returns the text below a heading, to the next one of its rank; of the whole page without a name."""
    text = page.read_text()
    if not name:
        return text
    bare = _BLOCK.sub(lambda match: "\n" * len(match[0]), text)  # a remark in code is no heading
    found = [match for match in _HEADING.finditer(bare) if anchor(match[2]) == name]
    assert found, f"{page.name} has no heading #{name}"
    begin = found[0].end()
    end = re.compile(rf"^#{{1,{len(found[0][1])}}} ", re.MULTILINE).search(bare, begin)
    return text[begin : end.start() if end else len(text)]


def links(page: Path) -> Iterator[tuple[Path, str]]:
    """Yields the file and the anchor of each link of the page that leads to a file here."""
    for match in _LINK.finditer(page.read_text()):
        if "://" not in match["path"]:
            target = (page.parent / match["path"]).resolve() if match["path"] else page
            yield target / "README.md" if target.is_dir() else target, match["anchor"] or ""
