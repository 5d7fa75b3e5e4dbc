"""Draws docs/web: `python -m scripts.page_pictures [FOLDER]`. Takes a Chromium of the system, as the page's tests do.
With `--all FOLDER`: every view at each width, light and dark, and at 200 %, to be looked at (`inbox-320-light.png`).

Everything shown is real: scripted agents of a daemon of its own, and its page in a browser that was let in by a code.
In the pictures of every view, an edit and the usage of tokens are not, of which scripted agents tell nothing.
"""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, Route, expect, sync_playwright

from scripts.pictures import ASKS, NAMES, PATIENCE_S, ROOT, Place, until

TARGET = ROOT / "docs" / "web"
PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "color_scheme": "light"}
DESK: dict[str, Any] = {"viewport": {"width": 1440, "height": 900}, "color_scheme": "dark"}
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = ["--no-sandbox", "--disable-dev-shm-usage"]
"""In a container there is no sandbox for a browser of root's; nothing but the page is opened."""
CHAPTER = "Write the chapter on errors."
SAID = "Mend the words.\necho | word | meaning |\nlines 30\nreverse abc"
EDIT = {
    "kind": "permission", "question": "Edit pages/header.css?", "prompt_type": "permission", "command": None,
    "own_words": True,
    "options": [
        {"key": "1", "label": "Yes"},
        {"key": "2", "label": "Yes, and don't ask again  for files in this folder"},
        {"key": "3", "label": "No, and tell it what to do differently"},
    ],
    "diff": "--- a/pages/header.css\n+++ b/pages/header.css\n@@ -1,4 +1,5 @@\n header {\n-  color: gray;\n"
    "+  color: navy;\n+  background: linear-gradient(to right, white, whitesmoke 40%, gainsboro);\n   margin: 0;\n }\n",
}  # fmt: skip
USED = {"turns": 12, "input_tokens": 123_456, "cache_read_tokens": 9_876_543, "cache_write_tokens": 12_345}
USED |= {"output_tokens": 54_321, "cost_usd": 1.5}

SIZES = ((320, 640), (390, 844), (768, 1024), (1400, 900))
ZOOM = 2
DESK_FROM = 900
"""From this width on the page is that of a desk."""
VIEWS = {
    "inbox": "", "agent": "agent/docs", "asks": "agent/web", "talk": "agent/db", "terminal": "agent/db",
    "events": "events", "history": "history", "usage": "usage", "settings": "settings", "side": "side/api,web",
    "start": "start", "keys": "", "edit": "", "words": "", "offline": "agent/docs", "none": "agent/nobody", "out": "",
}  # fmt: skip
AT_A_DESK = ("terminal", "keys")
REFUSED = {"error": {"code": "UNAUTHORIZED", "message": "this is no device of this daemon's", "details": {}}}


def chromium() -> str:
    found = os.environ.get("SYNAPSED_CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        raise SystemExit("page_pictures: there is no Chromium: install one, or name it in SYNAPSED_CHROMIUM")
    return found


def opened(browser: Browser, place: Place, options: dict[str, Any], *rights: str) -> Page:
    """A window of a device of its own, once it has its lists."""
    page = browser.new_context(**options).new_page()
    page.set_default_timeout(PATIENCE_S * 1000)
    page.goto(place.ctl("web", "--no-open", *rights).split()[-1])
    expect(page.locator(".card:not(.ghost)").first).to_be_visible(timeout=PATIENCE_S * 1000)
    expect(page.locator(".card [aria-disabled=true]")).to_have_count(0, timeout=PATIENCE_S * 1000)
    return page


@contextmanager
def shown(folder: Path) -> Iterator[tuple[Place, Browser]]:
    """A daemon of which one agent works and two ask, and a browser."""
    home = folder / "home"
    for name in NAMES:
        (home / name).mkdir(parents=True)
    place = Place(folder / "shown", home)
    try:
        for name in NAMES:
            place.ctl("start", "dummy", "--name", name, "--cwd", str(home / name), "--cols", "90", "--rows", "30")
        place.ctl("send", "docs", f"{CHAPTER}\nuntil ../done")
        for name, what in ASKS.items():
            place.ctl("send", name, what)
            until(lambda name=name: place.agent(name)["activity"] == "waiting", f"{name} asks")
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
            yield place, browser
            browser.close()
    finally:
        place.end()


def draw(target: Path, folder: Path) -> None:
    with shown(folder) as (place, browser):
        opened(browser, place, PHONE).screenshot(path=target / "phone.png")
        desk = opened(browser, place, DESK)
        desk.locator(".agents a", has_text="docs").first.click()
        expect(desk.get_by_text(CHAPTER).first).to_be_visible(timeout=PATIENCE_S * 1000)
        expect(desk.locator(".screen .under")).to_contain_text("×", timeout=PATIENCE_S * 1000)
        expect(desk.locator(".task .said")).to_contain_text(CHAPTER, timeout=PATIENCE_S * 1000)
        desk.screenshot(path=target / "desk.png")


def draw_all(target: Path, folder: Path) -> None:
    with shown(folder) as (place, browser):
        place.ctl("send", "db", SAID, "--wait")
        for scale in (1, ZOOM):
            options = {"device_scale_factor": scale}
            page = opened(browser, place, options, "--rights", "look,answer,type,manage")
            page.route("**/control/usage?*", _usage)
            address = page.url.partition("#")[0]
            for width, height in SIZES:
                page.set_viewport_size({"width": width // scale, "height": height // scale})
                for theme in ("light", "dark"):
                    page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
                    for view, where in VIEWS.items():
                        if view in AT_A_DESK and width // scale < DESK_FROM:
                            continue
                        page.goto(f"{address}#/{where}")
                        _prepare(page, view)
                        page.screenshot(path=target / f"{view}-{width}-{theme}{'-zoom' * (scale > 1)}.png")
                        _put_back(page, view)


def _usage(route: Route) -> None:
    rows = [{**USED, "agent": f"agent-{number}", "day": None} for number in (1, 2)]
    route.fulfill(json={"rows": rows, "total": rows[0], "complete": True})


def _edit(route: Route) -> None:
    """What waits, with an edit in the first place."""
    answer = route.fetch(headers={**route.request.headers, "Synapsed-Page": "1"})
    told = answer.json()
    told[0] |= EDIT
    route.fulfill(response=answer, json=told)


def _prepare(page: Page, view: str) -> None:
    """Returns when the view has what it shows."""
    expect(page.locator("h1, h2").first).to_be_visible(timeout=PATIENCE_S * 1000)
    if view == "talk" and (tab := page.get_by_role("tab", name="Conversation")).is_visible():
        tab.click()
    elif view == "terminal":
        page.locator("#terminal").click()
        expect(page.locator(".xterm-rows")).to_contain_text("dummy>", timeout=PATIENCE_S * 1000)
    elif view == "keys":
        page.keyboard.press("?")
        expect(page.get_by_role("dialog")).to_be_visible(timeout=PATIENCE_S * 1000)
    elif view == "edit":
        page.route("**/inbox", _edit)
        page.reload()
        expect(page.locator(".d-sum")).to_be_visible(timeout=PATIENCE_S * 1000)
    elif view == "offline":
        expect(page.locator(".screen .under")).to_contain_text("×", timeout=PATIENCE_S * 1000)
        page.context.set_offline(True)
        expect(page.locator(".l-offline")).to_be_visible(timeout=PATIENCE_S * 1000)
    elif view == "out":
        page.route("**/web/me", lambda route: route.fulfill(status=401, json=REFUSED))
        page.reload()
        expect(page.locator(".out")).to_be_visible(timeout=PATIENCE_S * 1000)
    for there in page.locator(".screen .under").all():
        expect(there).to_contain_text("×", timeout=PATIENCE_S * 1000)
    if view == "start":
        expect(page.get_by_label("Profile")).not_to_have_value("", timeout=PATIENCE_S * 1000)
    expect(page.locator("[aria-busy=true], .card [aria-disabled=true]")).to_have_count(0, timeout=PATIENCE_S * 1000)
    if view == "words":  # about that edit
        page.get_by_role("button", name="In your own words").click()
        page.locator(".card textarea").fill("Only in the header, and leave the margins as they are.")


def _put_back(page: Page, view: str) -> None:
    """Makes the page what it was before the view."""
    if view == "keys":
        page.keyboard.press("Escape")
    elif view == "offline":
        page.context.set_offline(False)
        expect(page.locator(".l-offline")).to_have_count(0, timeout=PATIENCE_S * 1000)
    elif view in ("words", "out"):
        page.unroute("**/web/me" if view == "out" else "**/inbox")
        page.reload()


def main() -> int:
    arguments = sys.argv[1:]
    every = arguments[:1] == ["--all"]
    if every and len(arguments) != 2:
        raise SystemExit("page_pictures: --all takes the FOLDER in which the pictures are to be")
    target = Path(arguments[-1]) if arguments else TARGET
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="synapsed-") as folder:
        (draw_all if every else draw)(target, Path(folder))
    for file in sorted(target.glob("*.png")):
        print(f"{file}: {file.stat().st_size // 1000} kB")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
