"""Draws docs/web: `python -m scripts.page_pictures [FOLDER]`. Takes a Chromium of the system, as the page's tests do.

Everything shown is real: scripted agents of a daemon of its own, and its page in a browser that was let in by a code.
"""

import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, expect, sync_playwright

from scripts.pictures import ASKS, NAMES, PATIENCE_S, ROOT, Place, until

TARGET = ROOT / "docs" / "web"
PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "color_scheme": "light"}
DESK: dict[str, Any] = {"viewport": {"width": 1440, "height": 900}, "color_scheme": "dark"}
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = ["--no-sandbox", "--disable-dev-shm-usage"]
"""In a container there is no sandbox for a browser of root's; nothing but the page is opened."""
CHAPTER = "Write the chapter on errors."


def chromium() -> str:
    found = os.environ.get("SYNAPSED_CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        raise SystemExit("page_pictures: there is no Chromium: install one, or name it in SYNAPSED_CHROMIUM")
    return found


def opened(browser: Browser, place: Place, options: dict[str, Any]) -> Page:
    """A window of a device of its own, once it has its lists."""
    page = browser.new_context(**options).new_page()
    page.set_default_timeout(PATIENCE_S * 1000)
    page.goto(place.ctl("web", "--no-open").split()[-1])
    expect(page.locator(".card:not(.ghost)").first).to_be_visible(timeout=PATIENCE_S * 1000)
    expect(page.locator(".card [aria-disabled=true]")).to_have_count(0, timeout=PATIENCE_S * 1000)
    return page


def draw(target: Path, folder: Path) -> None:
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
            opened(browser, place, PHONE).screenshot(path=target / "phone.png")
            desk = opened(browser, place, DESK)
            desk.locator(".agents a", has_text="docs").first.click()
            expect(desk.get_by_text(CHAPTER).first).to_be_visible(timeout=PATIENCE_S * 1000)
            desk.screenshot(path=target / "desk.png")
            browser.close()
    finally:
        place.end()


def main() -> int:
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else TARGET
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="synapsed-") as folder:
        draw(target, Path(folder))
    for file in sorted(target.glob("*.png")):
        print(f"{file}: {file.stat().st_size // 1000} kB")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
