"""What the page's tests need beside Python: packages from npm, pinned, and a Chromium of the system.

    python -m tests.web.programs install             # as `npm/package-lock.json` says; Chromium is the system's own
    python -m tests.web.programs vendor              # the same, and into `synapsed/parts/web/static/vendor`

The cache is ``$SYNAPSED_PAGE_CACHE``, by default ``${XDG_CACHE_HOME:-~/.cache}/synapsed/page``.
"""

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import tomli_w

from tests.support.npm import MissingProgramsError, NpmCache, cache_root

__all__ = ["CACHE", "VENDOR", "chromium", "vendored"]

_HERE = Path(__file__).parent
_COMMAND = "python -m tests.web.programs install"

CACHE = NpmCache(
    locked=_HERE / "npm",
    folder=Path(os.environ.get("SYNAPSED_PAGE_CACHE") or cache_root() / "page"),
    what="packages of the page",
    command=_COMMAND,
)
VENDOR = _HERE.parents[1] / "synapsed" / "parts" / "web" / "static" / "vendor"

_FILES: Mapping[str, Mapping[str, str]] = {
    "preact": {"dist/preact.mjs": "preact.mjs", "hooks/dist/hooks.mjs": "hooks.mjs"},
    "@xterm/xterm": {"lib/xterm.mjs": "xterm.mjs", "css/xterm.css": "xterm.css"},
    "@xterm/addon-fit": {"lib/addon-fit.mjs": "addon-fit.mjs"},
    "@xterm/addon-search": {"lib/addon-search.mjs": "addon-search.mjs"},
    "@xterm/addon-unicode-graphemes": {"lib/addon-unicode-graphemes.mjs": "addon-unicode-graphemes.mjs"},
}
"""Of each package what the page has, and what it is called there."""

_BARE = re.compile(r'from"preact"')
_UNREAD = re.compile(
    r"(?<!\A)/\*.*?\*/\n?|(?<=@license MIT)\n \*$.*?(?=\n \*/)|^[ \t]+(?!\*)|\n+(?=\n)", re.DOTALL | re.MULTILINE
)
"""Of a style sheet: all comments but the first, which says whose it is; what that one has of the licence, whose text
lies beside it; indentation."""
_MAP = re.compile(r"^//# sourceMappingURL=.*\n?", re.MULTILINE)

_BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def chromium() -> str | None:
    """The system's Chromium, or None."""
    asked = os.environ.get("SYNAPSED_CHROMIUM")
    return asked or next((found for name in _BROWSERS if (found := shutil.which(name))), None)


def vendored(modules: Path) -> dict[str, bytes]:
    """The files of `synapsed/parts/web/static/vendor`, made of npm's `node_modules`: as they were published, but that
    the hooks find Preact beside them, that no file names a map that is not there, and that style sheets say whose they
    are and nothing more about themselves."""
    locked = json.loads((CACHE.locked / "package-lock.json").read_text())["packages"]
    told: list[dict[str, Any]] = []
    made: dict[str, bytes] = {}
    for package, files in _FILES.items():
        folder, entry = modules / package, locked[f"node_modules/{package}"]
        here: dict[str, str] = {}
        for source, name in files.items():
            text = (folder / source).read_text()
            text = _UNREAD.sub("", text) if name.endswith(".css") else _BARE.sub('from"./preact.mjs"', text)
            made[name] = _MAP.sub("", text).encode()
            here[name] = hashlib.sha256(made[name]).hexdigest()
        licence = f"LICENSE.{package.rpartition('/')[2]}.txt"
        made[licence] = (folder / "LICENSE").read_bytes()
        told.append(
            {
                "name": package,
                "version": entry["version"],
                "licence": entry["license"],
                "text": licence,
                "integrity": entry["integrity"],
                "sha256": here,
            }
        )
    head = "# What the page has from others. Made by `python -m tests.web.programs vendor`.\n\n"
    made["vendored.toml"] = (head + tomli_w.dumps({"package": told})).encode()
    return made


def brotli(body: bytes, *, back: bool = False) -> bytes:
    """By node, which `npm` has with it: as browsers take it over TLS and from this machine; or what was in it."""
    script = "process.stdout.write(zlib.%s(fs.readFileSync(0)))" % (
        "brotliDecompressSync" if back else "brotliCompressSync"
    )
    return subprocess.run(["node", "-e", script], input=body, stdout=subprocess.PIPE, check=True).stdout


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.web.programs", description=__doc__)
    parser.add_argument("verb", choices=("install", "vendor"))
    parser.add_argument("--optional", action="store_true", help="say so loudly, but do not fail, where it cannot")
    options = parser.parse_args(arguments)
    try:
        print(f"packages of the page in {CACHE.install()}")
    except (MissingProgramsError, subprocess.CalledProcessError) as error:
        print(f"\n*** PACKAGES OF THE PAGE NOT INSTALLED: {error} ***\n", file=sys.stderr)
        return 0 if options.optional else 1
    if chromium() is None:
        print("\n*** NO CHROMIUM: the page is not tried in a browser (apt-get install chromium) ***\n", file=sys.stderr)
    if options.verb == "vendor":
        VENDOR.mkdir(exist_ok=True)
        for name, body in vendored(CACHE.folder / "node_modules").items():
            (VENDOR / name).write_bytes(body)
            if name.endswith((".mjs", ".css")):
                (VENDOR / f"{name}.br").write_bytes(brotli(body))
    return 0


if __name__ == "__main__":
    sys.exit(main())
