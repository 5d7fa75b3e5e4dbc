"""Users of the wall clock: `python -m tests.clocks.uses` writes the list that `test_uses` holds the code against."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from scripts.folders import modules

__all__ = ["LIST", "uses"]

ROOT = Path(__file__).parents[2]
LIST = Path(__file__).with_name("wall_clock.txt")

_OF_MODULES = {
    ("time", "time"), ("time", "time_ns"), ("time", "gmtime"), ("time", "localtime"), ("time", "ctime"),
    ("datetime", "now"), ("datetime", "utcnow"), ("datetime", "today"), ("date", "today"),
}  # fmt: skip
_OF_ANYTHING = {
    "wall",
    "st_mtime",
    "st_mtime_ns",
    "st_ctime",
    "st_ctime_ns",
    "st_atime",
    "st_birthtime",
    "getmtime",
    "getctime",
}
"""`Clock`'s, and what files are dated with."""
_OF_NOW = {"strftime": 1, "formatdate": 0, "localdate": 0}
"""Functions that take the present where they are called with no more arguments than these."""
_HELPERS = {"Ages", "PastDates", "began"}
"""Those of `synapsed.clock` that take dates."""
_PAGE = ROOT / "synapsed/parts/web/static"
_SCRIPT_USE = re.compile(r"\bDate\.now\b|\bnew Date\(|\bDate\(\)")
_SCRIPT_NAME = re.compile(
    r"\s*(?:export )?(?:default )?(?:async )?(?:function |class |get |set |static )*"
    r"(?!(?:if|for|while|switch|catch|return)\b)(\w+)(?:\([^()]*\))? \{$"
)
"""The line that begins a function, a method or a class of the page's scripts."""
_SQL = ("'now'", "'localtime'", "current_timestamp", "unixepoch()")


def uses() -> list[str]:
    """Each function that uses it: its file and its name, or `-` outside of functions."""
    found = set()
    for _, path in modules():
        tree = ast.parse(path.read_text())
        helpers = {
            alias.asname or alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and node.module == "synapsed.clock"
            for alias in node.names
            if alias.name in _HELPERS
        }
        found |= {f"{path.relative_to(ROOT)} {name}" for name in _in(tree, "", helpers)}
    for path in _PAGE.rglob("*.js"):
        if "vendor" not in path.parts:
            found |= {f"{path.relative_to(ROOT)} {name}" for name in _in_script(path.read_text())}
    return sorted(found)


def _in_script(text: str) -> Iterator[str]:
    """By the lines that begin and are indented less: the page's scripts are all laid out alike."""
    around: list[tuple[int, str]] = []
    for line in text.splitlines():
        if not line.strip():
            continue
        indent = len(line) - len(line.lstrip())
        around = [one for one in around if one[0] < indent]
        if begun := _SCRIPT_NAME.match(line):
            around.append((indent, begun[1]))
        if _SCRIPT_USE.search(line):
            yield ".".join(name for _, name in around) or "-"


def _in(node: ast.AST, name: str, helpers: set[str]) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        inner = name
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            inner = f"{name}.{child.name}".lstrip(".")
        elif _is_use(child, helpers):
            yield name or "-"
        yield from _in(child, inner, helpers)


def _is_use(node: ast.AST, helpers: set[str]) -> bool:
    match node:
        case ast.Attribute(value=ast.Name(id=module), attr=attr) if (module, attr) in _OF_MODULES:
            return True
        case ast.Attribute(value=ast.Attribute(attr="_clock" | "clock") | ast.Name(id="clock"), attr="settled"):
            return True
        case ast.Call(func=ast.Name(id=name), args=args) if name in _OF_NOW:
            return len(args) <= _OF_NOW[name]
        case ast.Call(func=ast.Attribute(value=ast.Name(id="time" | "utils"), attr=name), args=args) if name in _OF_NOW:
            return len(args) <= _OF_NOW[name]
        case ast.Attribute(attr=attr):
            return attr in _OF_ANYTHING
        case ast.Name(id=name, ctx=ast.Load()):
            return name in helpers
        case ast.Constant(value=str(text)):
            return len(text) < 4000 and any(word in text.lower() for word in _SQL)
    return False


if __name__ == "__main__":
    LIST.write_text("".join(f"{line}\n" for line in uses()))
