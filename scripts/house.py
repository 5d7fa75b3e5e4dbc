"""How large the house is, and how much of it one has to know: the figures that a step towards parts is compared with.

    python -m scripts.house             all of it
    python -m scripts.house --static    without the message, which is sent on a simulated machine

What is in a part's folder is the part's, and libraries that parts alone import (`a2a_types`, `model/event_pattern`) are
counted for themselves. The rest is the kernel: its lines are printed without these libraries, with them, and with the
core of the tool, too.
"""

import itertools
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, Self

import grimp

from scripts.folders import FOLDERS, OUTSIDE, modules
from synapsed.parts.list import NAMES

ROOT = Path(__file__).resolve().parent.parent
LIBRARIES = (
    "synapsed.a2a_types",
    "synapsed.documents",
    "synapsed.model.event_pattern",
    "synapsed.outgoing",
    "synapsed.own_python",
    "synapsed.shared",
)
"""These know neither agents nor parts, and are no modules of the kernel."""
SHARED = "libraries of parts alone"
OF_PARTS = ("synapsed.a2a_types", "synapsed.model.event_pattern")
"""Those of them that no module of the kernel imports (tests/parts/test_house.py): they have a row of their own."""

WORDS = {
    "fleet": r"fleet",
    "schedules": r"schedule[sd]?\b",
    "a2a": r"a2a",
    "web": r"\bdevice|\btls\b|pairing|web.?push",
    "elsewhere": r"External(Agent|Error)|\bexternals\b|external agent|(?<!\.)external:|\bssh\b|courier|\[hosts\]",
    "telemetry": r"telemetry|\bmetrics\b|\btraces?d?\b",
    "history": r"history\.db|/control/history|\[history\]",
    "moods": r"mood|emotion",
}


def part_of(module: str) -> str | None:
    """Returns the name of the part that a module belongs to; None for the kernel, and for who puts all together."""
    for part, package in OUTSIDE.items():
        if module.partition(".")[0] == package:
            return part
    _, in_parts, name = module.partition("synapsed.parts.")
    return found if in_parts and (found := name.partition(".")[0]) in NAMES else None


def _is_of_parts(module: str) -> bool:
    return any(module == one or module.startswith(f"{one}.") for one in OF_PARTS)


def sizes() -> Iterator[tuple[str, str]]:
    """Yields lines and files: of all, of the kernel, of each part."""
    lines: Counter[str] = Counter()
    files: Counter[str] = Counter()
    for module, path in modules():
        owner = part_of(module) or (SHARED if _is_of_parts(module) else f"the kernel's {module.partition('.')[0]}")
        lines[owner] += path.read_text().count("\n")
        files[owner] += 1
    yield "all lines; files", f"{lines.total():,}; {files.total()}"
    for owner, count in sorted(lines.items(), key=lambda one: -one[1]):
        yield f"  {owner}", f"{count:,}; {files[owner]}"
    kernel, tool = "the kernel's synapsed", "the kernel's synapsectl"
    for name, owners in (("libraries of parts", [kernel, SHARED]), ("these and synapsectl", [kernel, SHARED, tool])):
        told = f"{sum(lines[one] for one in owners):,}; {sum(files[one] for one in owners)}"
        yield f"the kernel with {name}", told


@dataclass
class Against:
    """Imports that are against the rule, each as `MODULE -> MODULE`, and the modules of the kernel that parts use."""

    to_parts: list[str] = field(default_factory=list)
    between: list[str] = field(default_factory=list)
    used: set[str] = field(default_factory=set)

    @classmethod
    def found(cls) -> Self:
        """Returns those of this checkout."""
        graph, found = grimp.build_graph(*FOLDERS, cache_dir=None), cls()
        for module in sorted(graph.modules):
            own = part_of(module)
            for other in sorted(graph.find_modules_directly_imported_by(module)):
                theirs = part_of(other)
                if theirs is not None and own is None:
                    found.to_parts.append(f"{module} -> {other}")
                elif theirs is not None and own != theirs:
                    found.between.append(f"{module} -> {other}")
                elif theirs is None and own is not None and other.startswith("synapsed."):
                    found.used.add(other)
        found.used = {one for one in found.used if not one.startswith(LIBRARIES)}
        return found


def structure() -> Iterator[tuple[str, str]]:
    """Yields layers of imports, loose modules, and imports that are against the rule."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (layers,) = (one["layers"] for one in contracts if one.get("containers") == ["synapsed"])
    yield "import layers", str(len(layers))
    yield "loose modules", str(sum(one.name != "__init__.py" for one in (ROOT / "synapsed").glob("*.py")))
    against = Against.found()
    for what, imports in (("the kernel to a part", against.to_parts), ("part to part", against.between)):
        yield f"imports from {what}", f"{len(imports)} in {len({one.split()[0] for one in imports})} modules"
    yield "modules of the kernel that parts use", str(len(against.used))


def libraries_of_parts() -> tuple[str, ...]:
    """Returns the names of libraries that no module of the kernel imports."""
    graph = grimp.build_graph("synapsed", cache_dir=None)
    names = []
    for library in (one for one in LIBRARIES if one in graph.modules):
        own = {library, *graph.find_descendants(library)}
        importers = {other for one in own for other in graph.find_modules_that_directly_import(one)} - own
        if all(part_of(one) for one in importers):
            names.append(library)
    return tuple(names)


def words() -> Iterator[tuple[str, str]]:
    """Yields how many lines of the kernel have the words of each part."""
    found: Counter[str] = Counter()
    for module, path in modules():
        ours = module.startswith("synapsed.") and module != "synapsed.model.released_names"
        if ours and part_of(module) is None:
            for line in path.read_text().splitlines():
                found.update(part for part, pattern in WORDS.items() if re.search(pattern, line, re.IGNORECASE))
    yield (
        "lines of the kernel with words of parts",
        f"{found.total()}: " + ", ".join(f"{n} {p}" for p, n in found.most_common()),
    )


def first_byte() -> Iterator[tuple[str, str]]:
    """Yields what one message passes through until its first byte is typed, on a simulated machine."""
    from tests.simulation import run
    from tests.simulation.clients import Clients
    from tests.simulation.judge import Judge
    from tests.simulation.plan import Act, Plan, Player

    entered: list[str] = []
    here = str(ROOT / "synapsed")
    send, typed = Clients._send, Judge.typed  # noqa: SLF001 - where a message begins, and where it is a key

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(here):
            entered.append(frame.f_code.co_filename)

    async def sending(self: Any, agent: str, act: Act) -> None:
        sys.setprofile(note)
        await send(self, agent, act)

    def typing(self: Any, keeper: Any, pending: Any) -> None:
        if pending.input_id is not None:
            sys.setprofile(None)
        typed(self, keeper, pending)

    Clients._send, Judge.typed = sending, typing  # type: ignore[assignment,method-assign]  # noqa: SLF001
    try:
        run.play(Plan(1, (Player("tui"),), (Act(5.0, "send", 0, "hello"),), (), 0.0))
    finally:
        sys.setprofile(None)
        Clients._send, Judge.typed = send, typed  # type: ignore[method-assign]  # noqa: SLF001
    changes = sum(one != other for one, other in itertools.pairwise(entered))
    yield "a message to its first byte", f"{len(set(entered))} files, {changes} changes of file, {len(entered)} calls"


def main(arguments: list[str]) -> None:
    for figures in (sizes, structure, words, *([] if "--static" in arguments else [first_byte])):
        for name, value in figures():
            print(f"{name:<44}{value}")


if __name__ == "__main__":
    main(sys.argv[1:])
