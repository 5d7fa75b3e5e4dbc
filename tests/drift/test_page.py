"""The page has what differs, and nothing on a screen or in a report becomes a part of it."""

import base64
import re
from html.parser import HTMLParser

from tests.drift.compare import AtMark, Release, Reported
from tests.drift.drawing import Drawn, draw
from tests.drift.page import SHOWN_MAX, page

HOSTILE = "</pre></td></svg><script>alert(1)</script><img src=x onerror=alert(2)>\" ' --> ]]> \u202e \ud800"
ALLOWED = {
    "html", "head", "meta", "title", "style", "body", "h1", "h2", "h3", "p", "table", "tr", "th", "td", "code", "pre",
    "div", "figure", "figcaption", "img", "ul", "li",
}  # fmt: skip


class _Tags(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags = list[tuple[str, dict[str, str | None]]]()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


def test_a_hostile_screen_stays_text() -> None:
    screen = draw((80, 5), HOSTILE.encode("utf-8", "replace"), [len(HOSTILE.encode("utf-8", "replace"))])[0]
    evil = Drawn(screen.lines, HOSTILE, f"{screen.svg}{HOSTILE}".encode("utf-8", "replace").decode())
    mark = AtMark(HOSTILE, HOSTILE, (HOSTILE,), evil, evil)
    release = Release(
        name=HOSTILE, verified=HOSTILE, version=HOSTILE, reason=HOSTILE, cells={HOSTILE: HOSTILE}, faults=[HOSTILE],
        before={HOSTILE: HOSTILE}, told=HOSTILE, failed_at=mark, marks=[mark], recorded=[HOSTILE],
        unmatched=[HOSTILE], proposal=HOSTILE,
    )  # fmt: skip
    report = Reported(
        file=HOSTILE, profile=HOSTILE, version=HOSTILE, says=HOSTILE, told=HOSTILE, reads=HOSTILE, should_be=HOSTILE,
        differences=(HOSTILE,), shown=evil, recorded=(HOSTILE, evil),
    )  # fmt: skip
    tags = _Tags(page([release], [report], [(HOSTILE, HOSTILE)], HOSTILE)).tags
    assert {tag for tag, _ in tags} <= ALLOWED
    assert not [name for _, attributes in tags for name in attributes if name.startswith("on")]
    pictures = [attributes["src"] or "" for tag, attributes in tags if tag == "img"]
    assert len(pictures) == 6
    assert all(re.fullmatch(r"data:image/svg\+xml;base64,[A-Za-z0-9+/=]+", source) for source in pictures)
    assert any("default-src 'none'" in str(tag) for tag in tags)


def test_both_screens_stand_beside_a_difference() -> None:
    old, new = draw((20, 5), b"before> now> ", [8, 13])
    assert old.lines[0].strip() == "before>"
    mark = AtMark("start", "ready", ("activity: busy, recorded as ready",), old, new)
    written = page([Release(name="pi", verified="1", version="2", marks=[mark])], [], [], "drift: pi 2 differs")
    shown = [base64.b64decode(found).decode() for found in re.findall(r"base64,([^\"]+)", written)]
    assert shown == [old.svg, new.svg]
    assert "recorded: 1" in written
    assert "1 of 1 marks differ" in written


def test_a_page_has_bounds() -> None:
    screen = draw((20, 5), b"x", [1])[0]
    marks = [AtMark("start", f"mark {n}", ("other",), screen, screen) for n in range(SHOWN_MAX + 3)]
    written = page([Release(name="pi", verified="1", version="2", marks=marks)], [], [], "")
    assert written.count("<img ") == 2 * SHOWN_MAX
    assert "3 more marks differ" in written
