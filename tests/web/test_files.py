"""The files of the page: what is served, how, and how much of it comes first."""

import json
import re
import tomllib
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import expect

from synapsed.parts.web.page_files import POLICY, page_files
from tests.api.serving import Api
from tests.web.conftest import DESK, PHONE, Devices
from tests.web.firstload import PHONE_KB, SIZES, TERMINAL_KB
from tests.web.programs import CACHE, VENDOR, brotli, vendored

WEB = Path(__file__).parents[2] / "synapsed" / "parts" / "web" / "static"
IMPORT = re.compile(r'(?:from|import)\s*"(\.[^"]+)"')
LOADED_LATER = re.compile(r'import\("(\.[^"]+)"\)')


def closure(*names: str) -> set[str]:
    """The modules that are loaded with these."""
    found: set[str] = set()
    waiting = [WEB / name for name in names]
    while waiting:
        path = waiting.pop()
        name = path.relative_to(WEB).as_posix()
        if name not in found:
            found.add(name)
            waiting += [(path.parent / other).resolve() for other in IMPORT.findall(path.read_text())]
    return found


def first() -> set[str]:
    return {"index.html", "app.css", *closure("js/main.js")}


@pytest.mark.night
async def test_a_phone_loads_little(devices: Devices):
    page = await devices.open("/", **PHONE)
    await expect(page.locator(".agents .name").first).to_be_visible()
    files, _, _ = await page.evaluate(SIZES)
    assert 20 * 1024 < files <= PHONE_KB * 1024


@pytest.mark.night
async def test_a_desk_with_a_terminal_loads_not_much_more(devices: Devices):
    page = await devices.open("/#/agent/ann", **DESK, service_workers="block")  # of whose files a browser tells no size
    await page.locator("#terminal").click()
    await expect(page.locator(".xterm-rows")).to_be_visible()
    files, _, _ = await page.evaluate(SIZES)
    assert 100 * 1024 < files <= TERMINAL_KB * 1024


def test_a_terminal_is_loaded_when_it_is_opened():
    assert not any("xterm" in name for name in first())
    assert not any("xterm" in name for name in closure("js/desk.js", "js/agent.js"))
    assert "vendor/xterm.mjs" in closure("js/terminal.js")


def test_what_a_phone_loads_is_asked_for_at_once():
    html = (WEB / "index.html").read_text()
    preloaded = set(re.findall(r'modulepreload" href="web/([^"]+)"', html))
    assert preloaded | {"js/main.js"} == closure("js/main.js")
    own = {f"js/{path.name}" for path in WEB.glob("js/*.js")} | {path.name for path in WEB.glob("*.css")}
    assert set(told_to_the_worker()["files"]) == own | closure("js/main.js") | {"index.html"}


def told_to_the_worker() -> dict[str, Any]:
    first, _ = page_files().files["sw.js"].body.decode().split(";\n", 1)
    told: dict[str, Any] = json.loads(first.removeprefix("self.PAGE = "))
    return told


def test_scripts_and_styles_stand_below_the_version():
    page = page_files()
    html = page.files["index.html"].body.decode()
    linked = re.findall(r'(?:href|src)="web/([^"]+)"', html)
    versioned = {name for name in linked if name.startswith(page.version)}
    assert {name for name in linked if name.endswith(("js", "css"))} == versioned
    assert all(name.removeprefix(f"{page.version}/") in page.files for name in linked)
    assert told_to_the_worker()["version"] == page.version
    for path in WEB.glob("js/*.js"):
        assert not re.search(r'["`/]web/[^"]+\.(?:css|mjs|js)["`]', path.read_text().replace("/web/sw.js`", "")), (
            path.name
        )


def test_modules_are_there():
    for path in WEB.glob("js/*.js"):
        for name in (*IMPORT.findall(path.read_text()), *LOADED_LATER.findall(path.read_text())):
            assert (path.parent / name).is_file() or name == "../events", (path.name, name)


def test_only_comments_and_blanks_are_left_out():
    for path in (*WEB.glob("js/*.js"), WEB / "sw.js", *WEB.glob("*.css")):
        served = page_files().files[path.relative_to(WEB).as_posix()].body.decode()
        if path.name == "sw.js":
            served = served.partition(";\n")[2]
        assert "/**" not in served
        assert not re.search(r"(?:^|\s)//\s", served, re.MULTILINE)
        lines = [line.strip().partition("; // ") for line in path.read_text().splitlines()]
        lines = [line + ";" * bool(comment) for line, comment, _ in lines]
        code = re.sub(
            r"/\*.*?\*/ ?", "", "\n".join(line for line in lines if not line.startswith("//")), flags=re.DOTALL
        )
        whole = [line.strip() for line in code.splitlines() if line.strip()]
        if path.suffix == ".css":
            assert not any(set(text) & set("{};:,") for text in re.findall(r'"[^"]*"', code)), path.name
            whole = [re.sub(r"([{;:,]) +", r"\1", re.sub(r" +([{}])", r"\1", line)) for line in whole]
        assert [line for line in served.splitlines() if line] == whole
        texts = [line for line in lines if not re.match(r"const [A-Z]+ = /", line)]
        assert all(line.count("`") % 2 == 0 for line in texts), "a text of several lines would lose its indentation"


def test_letters_have_the_sizes_of_one_scale():
    """As app.css says: five of them, that of fields, and that of one sign."""
    sizes = {"12.5px", "13.5px", "15px", "17px", "20px"}
    fields = re.compile(r"input|select|textarea")
    for path in WEB.glob("*.css"):
        style = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.DOTALL)
        for rule, body in re.findall(r"([^{}]+)\{([^{}]*)\}", style):
            for size in re.findall(r"font(?:-size)?:\s*([\d.]+(?:px|r?em))", body):
                alone = {"code, pre, kbd": ".92em", ".back": "28px"}.get(rule.strip())
                assert size in sizes or size == alone or (size == "16px" and fields.search(rule)), (path.name, rule)


@pytest.mark.parametrize(
    "word", ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "dangerouslySet"]
)
def test_no_text_becomes_markup(word: str):
    assert [path.name for path in (*WEB.glob("js/*.js"), WEB / "sw.js") if word in path.read_text()] == []


def test_nothing_is_inline_and_nothing_from_elsewhere():
    html = (WEB / "index.html").read_text()
    assert not re.search(r"<style|\sstyle=|\son\w+=|<script(?![^>]*src=)", html)
    for path in (*WEB.glob("*.html"), *WEB.glob("*.css"), *WEB.glob("js/*.js")):
        assert not re.search(r"(?:href|src|url|import|fetch)\W{1,3}(?:https?:)?//", path.read_text()), path.name


def test_what_is_from_others_is_what_was_published():
    told = tomllib.loads((VENDOR / "vendored.toml").read_text())["package"]
    for package in told:
        assert (VENDOR / package["text"]).is_file()
        for name, digest in package["sha256"].items():
            assert sha256((VENDOR / name).read_bytes()).hexdigest() == digest
    files = {name for package in told for name in package["sha256"]}
    listed = {f"{name}.br" for name in files} | {package["text"] for package in told}
    assert {path.name for path in VENDOR.iterdir()} == files | listed | {"vendored.toml"}


@pytest.mark.skipif(CACHE.missing() is not None, reason=f"*** VENDORED FILES NOT COMPARED: {CACHE.missing()} ***")
def test_what_is_from_others_can_be_made_again():
    for name, body in vendored(CACHE.folder / "node_modules").items():
        assert (VENDOR / name).read_bytes() == body, name
        if (VENDOR / f"{name}.br").exists():
            assert brotli((VENDOR / f"{name}.br").read_bytes(), back=True) == body, name


async def test_the_page_is_served(api: Api):
    async with api.http.get("/", headers={"Accept-Encoding": "gzip"}) as answer:
        assert (answer.status, answer.content_type) == (200, "text/html")
        assert answer.headers["Content-Encoding"] == "gzip"
        assert answer.headers["Content-Security-Policy"] == POLICY
        assert answer.headers["Cross-Origin-Opener-Policy"] == "same-origin"
        assert (answer.headers["X-Content-Type-Options"], answer.headers["Referrer-Policy"]) == (
            "nosniff",
            "no-referrer",
        )
        assert "unsafe" not in POLICY
        versioned = re.sub(rb"web/[0-9a-f]{16}/", b"web/", await answer.read())
        assert versioned == (WEB / "index.html").read_bytes()
        etag = answer.headers["ETag"]
    async with api.http.get("/", headers={"If-None-Match": etag}) as answer:
        assert (answer.status, await answer.read()) == (304, b"")


async def test_every_file_is_served(api: Api):
    for name, file in page_files().files.items():
        async with api.http.get(f"/web/{name}") as answer:
            assert answer.status == 200, name
            assert answer.headers["Content-Type"] == file.media
            assert await answer.read() == file.body
            assert answer.headers["Cache-Control"] == "no-cache"
            own = name.endswith((".js", ".css", ".html")) and not name.startswith("vendor/")
            assert file.body == (WEB / name).read_bytes() or own
        async with api.http.get(f"/web/{page_files().version}/{name}") as answer:
            assert (answer.status, await answer.read()) == (200, file.body)
            assert "immutable" in answer.headers["Cache-Control"]
    async with api.http.get("/web/sw.js") as answer:
        assert answer.headers["Service-Worker-Allowed"] == "../"


@pytest.mark.parametrize(
    ("taken", "sent"),
    [
        ("gzip, deflate, br, zstd", "br"), ("br", "br"), ("BR;q=0.5, gzip", "br"), ("gzip", "gzip"),
        ("br;q=0,gzip", "gzip"),
        ("br; q=0.0", None), ("brave", None), ("identity", None), ("", None), (";,;q", None), ("gzip;q=0", None),
    ],
)  # fmt: skip
async def test_how_a_file_is_packed(api: Api, taken: str, sent: str | None):
    file = page_files().files["vendor/xterm.mjs"]
    bodies = {"br": file.brotli, "gzip": file.gzip, None: file.body}
    async with api.http.get(
        "/web/vendor/xterm.mjs", headers={"Accept-Encoding": taken}, auto_decompress=False
    ) as answer:
        assert (answer.headers.get("Content-Encoding"), answer.headers["Vary"]) == (sent, "Accept-Encoding")
        assert await answer.read() == bodies[sent]


@pytest.mark.parametrize(
    "name",
    [
        "nothing.js",
        "0123456789abcdef/js/main.js",
        "0123456789abcdef/",
        "VERSION/",
        "VERSION/nothing.js",
        "VERSION/VERSION/js/main.js",
        "vendor/xterm.mjs.br",
        "../app.py",
        "%2e%2e/api/app.py",
        "js",
        "",
        "vendor/vendored.toml",
        "js/main.js/",
    ],
)
async def test_nothing_else_is_served(api: Api, name: str):
    name = name.replace("VERSION", page_files().version)
    async with api.http.get(f"/web/{name}") as answer:
        assert (answer.status, (await answer.json())["error"]["code"]) == (404, "NOT_FOUND")
