"""Pythons of ours that do something of a test's first: neither PYTHONPATH nor the current folder gives it to them."""

from pathlib import Path

from synapsed import own_python


def begins_with(program: Path) -> str:
    """A file in place of `own_python.FILE`: does what is in `program` when it is run, then what that one does."""
    begins = program.with_name("begins.py")
    first = f"exec(open({str(program)!r}).read())"
    begins.write_text(f"{first}\nimport runpy\nrunpy.run_path({str(own_python.FILE)!r}, run_name='__main__')\n")
    return str(begins)
