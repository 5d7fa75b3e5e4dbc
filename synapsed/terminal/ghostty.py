"""libghostty-vt by its C API, as the package `pyghostty` ships it: the library, and its own description of its types.

Only the shared library of that package is used: importing it parses its declarations for half a second. Ours are in
`ghostty_abi`, compiled (`scripts.ghostty_abi`). A wrong type in a call ends the process, so importing this module
refuses a library whose layout differs from the declarations.
"""

import importlib.util
import json
from pathlib import Path
from typing import Any

from synapsed.terminal.ghostty_abi import ffi

__all__ = ["EmulatorError", "check", "ffi", "lib", "sized"]

LIBRARIES = ("libghostty-vt.so", "libghostty-vt.dylib")
VERSION = "0.1.0-dev"


class EmulatorError(RuntimeError):
    """A call of the library failed: the only known cause is a lack of memory."""


def _opened() -> Any:
    spec = importlib.util.find_spec("pyghostty")
    if spec is None or spec.origin is None:
        raise ImportError("pyghostty is not installed")
    folder = Path(spec.origin).parent / "_lib"
    found = next((folder / name for name in LIBRARIES if (folder / name).exists()), None)
    if found is None:
        raise ImportError(f"there is no libghostty-vt in {folder}")
    return ffi.dlopen(str(found))


lib = _opened()


def _types() -> dict[str, Any]:
    """Returns the library's description of its types, after checking it against the declarations."""
    told = json.loads(ffi.string(lib.ghostty_type_json()))
    if told["library_version"] != VERSION:
        raise ImportError(f"libghostty-vt is {told['library_version']}, not {VERSION}")
    types: dict[str, Any] = told["types"]
    for name in (name for name in ffi.list_types()[0] if name in types and types[name]["kind"] != "opaque"):
        kind, said = ffi.typeof(name), types[name]
        fields = {field: (at.offset, ffi.sizeof(at.type)) for field, at in getattr(kind, "fields", None) or ()}
        expected = {field: (at.get("offset", 0), at["size"]) for field, at in said.get("fields", {}).items()}
        if ffi.sizeof(kind) != said["size"] or fields != expected:
            raise ImportError(f"{name} of libghostty-vt is laid out otherwise")
    if ffi.sizeof("Point") != types["GhosttyPoint"]["size"]:
        raise ImportError("GhosttyPoint of libghostty-vt is laid out otherwise")
    return types


_TYPES = _types()


def _values(name: str) -> dict[str, int]:
    values: dict[str, int] = _TYPES[name]["values"]
    return values


DATA, OPTION = _values("GhosttyTerminalData"), _values("GhosttyTerminalOption")
FORMAT = _values("GhosttyFormatterFormat")
STATE_DATA, ROW_DATA = _values("GhosttyRenderStateData"), _values("GhosttyRenderStateRowData")
CELLS_DATA = _values("GhosttyRenderStateRowCellsData")
DIRTY = _values("GhosttyRenderStateDirty")
CURSOR = _values("GhosttyRenderStateCursorVisualStyle")
COLOR = _values("GhosttyStyleColorTag")
OUT_OF_SPACE = _values("GhosttyResult")["OUT_OF_SPACE"]

# A cell has 64 bits, which `_check_cells` verifies: 2 for the kind of its content, 24 for a code point or a colour, 16
# for its style, 2 for its width.
CELL_BYTES = 8
CONTENT_AT, STYLE_AT, WIDTH_AT = 2, 26, 42
CODE_POINT, JOINED, PALETTE, RGB = range(4)
NARROW, WIDE, TAIL, HEAD = range(4)


def check(result: int, what: str) -> None:
    """Raises `EmulatorError` if a call has not succeeded."""
    if result:
        raise EmulatorError(f"{what}: {result}")


def sized(kind: str) -> Any:
    """Returns a new struct that has its size set."""
    made = ffi.new(f"{kind}*")
    _set_sizes(made)
    return made


def _set_sizes(made: Any) -> None:
    """Sets the size of each struct that may grow, in the struct, for the library."""
    kind = ffi.typeof(made).item
    for name, field in kind.fields:
        if name == "size":
            made.size = ffi.sizeof(kind)
        elif field.type.kind == "struct":
            _set_sizes(ffi.addressof(made[0], name))


def _wrapped_bit() -> int:
    """Returns the bit of a row that says that it is wrapped."""
    out = ffi.new("bool*")
    for bit in range(64):
        lib.ghostty_row_get(1 << bit, _values("GhosttyRowData")["WRAP"], out)
        if out[0]:
            return 1 << bit
    raise ImportError("no bit of a row of libghostty-vt says that it is wrapped")


def _check_cells() -> None:
    """Checks the layout of a cell, which is not guaranteed, against the library's own functions."""
    keys = _values("GhosttyCellData")
    code, style, number = 0x1F600, 0x1234, ffi.new("int*")
    for tag, width in ((CODE_POINT, NARROW), (JOINED, WIDE), (CODE_POINT, TAIL), (JOINED, HEAD)):
        cell = tag | code << CONTENT_AT | style << STYLE_AT | width << WIDTH_AT
        for key, expected in (("CODEPOINT", code), ("STYLE_ID", style), ("WIDE", width), ("CONTENT_TAG", tag)):
            number[0] = 0
            lib.ghostty_cell_get(cell, keys[key], number)
            if number[0] != expected:
                raise ImportError("a cell of libghostty-vt is laid out otherwise")


WRAPPED = _wrapped_bit()
_check_cells()
