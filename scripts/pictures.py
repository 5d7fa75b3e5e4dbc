"""Draws docs/pictures: `python -m scripts.pictures [FOLDER]`.

Everything shown is real: scripted agents of a daemon of its own, and the verbs typed into a shell that is an agent of a
second daemon, whose screen `synapsectl screen --svg` draws. The recording is such pictures, one after the other.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path

ROOT = Path(__file__).parent.parent
BIN = Path(sys.executable).parent
SMALL, LARGE = (88, 16), (124, 30)
PATIENCE_S = 60.0
FRAME_S, LAST_S = 1.6, 5.0
"""How long a picture of the recording stands, and the last one."""
CONFIG = '[api]\nlisten = "127.0.0.1:0"\nagent_ports = false\n'
NAMES = ("api", "web", "docs", "db")
ASKS = {
    "api": "Bring the database up to date.\necho Three migrations are pending: users, orders, invoices.\nask y/n",
    "web": "Give the page a header.\necho Which colour is it to have?\nask red/blue",
}


class Place:
    """A daemon of its own, and its synapsectl."""

    def __init__(self, folder: Path, home: Path) -> None:
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("SYNAPSE", "XDG_"))}
        self.env = kept | {
            "HOME": str(home),
            "SYNAPSED_HOME": str(folder),
            "SYNAPSED_A2A_HOME": str(folder / "a2a"),
            "PATH": f"{BIN}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
            "PS1": "$ ",
            "TERM": "xterm-256color",
            "LC_ALL": "C.UTF-8",
        }
        (folder / "config").mkdir(parents=True)
        (folder / "config" / "config.toml").write_text(CONFIG)
        with (folder / "log").open("wb") as log:
            self._daemon = subprocess.Popen([BIN / "synapsed", "run"], env=self.env, stderr=log)
        until(self.answers, f"the daemon of {folder} answers")

    def ctl(self, *arguments: str) -> str:
        done = subprocess.run(
            [BIN / "synapsectl", *arguments], env=self.env, text=True, capture_output=True, check=False
        )
        if done.returncode != 0:
            raise SystemExit(f"pictures: synapsectl {' '.join(arguments)}: {done.stderr}")
        return done.stdout

    def answers(self) -> bool:
        return (
            subprocess.run([BIN / "synapsectl", "list"], env=self.env, capture_output=True, check=False).returncode == 0
        )

    def end(self) -> None:
        """Whatever of it runs."""
        subprocess.run([BIN / "synapsectl", "shutdown"], env=self.env, capture_output=True, check=False)
        self._daemon.wait()

    def busy(self, name: str) -> None:
        until(lambda: self.agent(name)["activity"] == "busy", f"{name} works")

    def agent(self, name: str) -> dict[str, object]:
        return next(one for one in json.loads(self.ctl("list", "--json")) if one["name"] == name)


class Camera:
    """A shell on a terminal that pictures are taken of. What is typed there is for the daemon of `shown`."""

    def __init__(self, place: Place, shown: Place, name: str, size: tuple[int, int]) -> None:
        self._place, self._name = place, name
        told = {key: shown.env[key] for key in ("SYNAPSED_HOME", "SYNAPSED_A2A_HOME", "PS1")}
        options = ["--name", name, "--cwd", shown.env["HOME"], "--cols", str(size[0]), "--rows", str(size[1])]
        options += [word for key, value in told.items() for word in ("--env", f"{key}={value}")]
        place.ctl("start", "generic", *options, "--", "sh")

    def type(self, line: str) -> None:
        """A line for the shell, once it is ready for one."""
        self.at_prompt()
        self._place.ctl("keys", self._name, "--", line, "Enter")

    def press(self, *keys: str) -> None:
        self._place.ctl("keys", self._name, "--", *keys)

    def at_prompt(self) -> None:
        until(lambda: self._screen().rstrip().endswith("\n$") or self._screen().strip() == "$", "the shell is ready")

    def until(self, *wanted: str) -> None:
        until(lambda: all(one in self._screen() for one in wanted), f"{wanted} stands there")

    def _screen(self) -> str:
        return self._place.ctl("screen", self._name)

    def picture(self, file: Path) -> Path:
        self._place.ctl("screen", self._name, "--svg", str(file))
        return file


def until(is_so: Callable[[], object], what: str) -> None:
    end = time.monotonic() + PATIENCE_S
    while not is_so():
        if time.monotonic() > end:
            raise SystemExit(f"pictures: never happened: {what}")
        time.sleep(0.1)


def recording(pictures: Sequence[str], title: str) -> str:
    """One SVG that shows them one after the other, over and over. What stands in several is written once."""
    heads = [re.match(r"(.*?<g transform[^>]*>\n?)(.*)(</g>\n</svg>\n)", one, re.DOTALL) for one in pictures]
    found = [head for head in heads if head is not None]
    spans: dict[tuple[int, ...], list[str]] = {}
    elements = [head[2].splitlines() for head in found]
    for element in dict.fromkeys(line for lines in elements for line in lines):
        spans.setdefault(tuple(n for n, lines in enumerate(elements) if element in lines), []).append(element)
    lasts = [FRAME_S] * (len(pictures) - 1) + [LAST_S]
    total = sum(lasts)
    times = ";".join(f"{sum(lasts[:n]) / total:.4f}" for n in range(len(lasts)))
    parts = [
        re.sub(r"<title>.*?</title>", "", found[0][1]).replace("<rect", f"<title>{escape(title)}</title>\n<rect", 1)
    ]
    for frames, lines in spans.items():
        shown = ";".join("inline" if n in frames else "none" for n in range(len(lasts)))
        at_rest = "" if len(lasts) - 1 in frames else ' display="none"'  # where nothing moves, the last one is seen
        moves = (
            f'<animate attributeName="display" values="{shown}" keyTimes="{times}" calcMode="discrete"'
            f' dur="{total:g}s" repeatCount="indefinite"/>'
        )
        parts += [f"<g{at_rest}>", *([moves] if len(frames) < len(lasts) else []), *lines, "</g>"]
    return "\n".join([*parts, found[0][3].lstrip("\n")]).replace("\n\n", "\n")


def draw(target: Path, folder: Path) -> None:
    home = folder / "home"
    for name in NAMES:
        (home / name).mkdir(parents=True)
    shown, place = Place(folder / "shown", home), Place(folder / "camera", home)
    try:
        for name in NAMES:
            shown.ctl("start", "dummy", "--name", name, "--cwd", str(home / name), "--cols", "70", "--rows", "16")
        small, large = Camera(place, shown, "small", SMALL), Camera(place, shown, "large", LARGE)
        shown.ctl("send", "docs", "Write the chapter on errors.\nuntil ../done")
        for name, what in ASKS.items():
            shown.ctl("send", name, what)
            until(lambda name=name: shown.agent(name)["activity"] == "waiting", f"{name} asks")
        small.type("synapsectl list")
        small.until("busy")
        small.at_prompt()
        small.picture(target / "list.svg")
        for camera, file, line, words in (
            (small, "inbox", "synapsectl inbox", ["2 need you", "no, because"]),
            (large, "top", "synapsectl top api", ["2 need you", "Three migrations are", "no, because"]),
        ):
            camera.type(line)
            camera.until(*words)
            camera.picture(target / f"{file}.svg")
            camera.press("q")
        (target / "kill-9.svg").write_text(killed(small, shown, folder), encoding="utf-8")
    finally:
        for daemon in (shown, place):
            daemon.end()


def killed(camera: Camera, shown: Place, folder: Path) -> str:
    """A daemon that is killed in the middle of a turn, and the answer all the same."""
    frames: list[str] = []

    def scene(line: str, *words: str, then: Callable[[], object] = lambda: None) -> None:
        camera.type(line)
        then()
        camera.until(*words)
        camera.at_prompt()
        frames.append(camera.picture(folder / "frame.svg").read_text(encoding="utf-8"))

    camera.type("clear")
    scene('synapsectl send db "until ../tests-pass"', "tests-pass", then=lambda: shown.busy("db"))
    pid = json.loads(shown.ctl("status", "--json"))["pid"]
    scene(f"kill -9 {pid}  # the daemon", "the daemon", then=lambda: until(lambda: not shown.answers(), "it is dead"))
    scene("synapsectl list", "no daemon is running")
    scene("touch tests-pass  # what db waits for", "waits for")
    scene('synapsectl send db "echo And this." --wait  # starts a daemon', "\nAnd this.")
    task = next(one["id"] for one in json.loads(shown.ctl("tasks", "db", "--json")) if "until" in str(one))
    scene(f"synapsectl task {task[:8]}  # what was being done when it was killed", "It is there.")
    return recording(frames, "kill -9 in the middle of a turn: the answer arrives")


def main() -> int:
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "pictures"
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="synapsed-") as folder:
        draw(target, Path(folder))
    for file in sorted(target.glob("*.svg")):
        file.chmod(0o644)
        print(f"{file}: {file.stat().st_size // 1000} kB")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
