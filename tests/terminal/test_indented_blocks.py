"""Blocks by indentation, as they are typed at a prompt. What Python itself makes of them is the judge."""

import codeop
import contextlib
import io

import pytest

from synapsed.profiles.library import ProfileLibrary
from synapsed.terminal.delivery import as_typed, type_message

DELIVERY = ProfileLibrary.builtin().get("generic").delivery
PROGRAMS = {
    "a call below a function": "def f(x):\n    y = x * 2\n    return y\nprint(f(21))",
    "a block alone": "for i in range(3):\n    print(i)",
    "one line": "for i in range(3): print(i)",
    "else": "if 0:\n    print(1)\n\nelif 0:\n    print(2)\nelse:\n    print(3)\nprint(4)",
    "empty lines within": "class A:\n    x = 1\n\n    def g(self):\n\n        return 7\n\n\nprint(A().g())",
    "quotes": "def f():\n    return '''a\n\nb\n    '''\nprint(f())",
    "brackets": "def f(\n    x,\n):\n    return [\nx,\n\n]\nprint(f(1))",
    "a decorator": "import functools\n@functools.cache\ndef f():\n    return 5\nprint(f())",
    "comments": "def f():\n    # one: (\n    return 1  # [\n# two\nprint(f())",
    "a backslash": "x = 1 + \\\n    2\nprint(x)",
    "try": "try:\n    1/0\nexcept ZeroDivisionError:\n    print('no')\nfinally:\n    print('end')\nx = 1\nprint(x)",
    "text with hash and quote": "s = '# not'\nif s:\n    print('it\\'s', \"#\")\nprint(2)",
    "no block": "x = 1\ny = 2\nprint(x + y)",
}


def at_a_prompt(text: str) -> str:
    """What is printed where each line is taken by itself."""
    compiles, names, pending, out = codeop.CommandCompiler(), {}, [], io.StringIO()
    with contextlib.redirect_stdout(out):
        for line in text.split("\n"):
            pending.append(line)
            if (code := compiles("\n".join(pending), symbol="single")) is not None:
                exec(code, names)
                pending = []
    assert not pending, "it waits for more"
    return out.getvalue()


@pytest.mark.parametrize("name", PROGRAMS)
def test_it_does_what_the_file_does(name: str) -> None:
    assert DELIVERY.indented is not None
    text, out = PROGRAMS[name], io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(text, {})
    assert at_a_prompt(as_typed(DELIVERY.indented, text, whole=False)) == out.getvalue() != ""


@pytest.mark.parametrize(
    ("text", "bracketed", "prompt", "typed"),
    [
        ("if 1:\n    x\ny", True, ">>> ", "if 1:\n    x\ny\n"),
        ("if 1: x", True, ">>> ", "if 1: x\n"),
        ("x", True, ">>> ", "x"),
        ("if 1:\n    x\ny", False, ">>> ", "if 1:\n    x\n\ny"),
        ("if 1:\n    x\ny", False, "$ ", "if 1:\n    x\ny"),
        ("if 1:\n    x\ny", False, "sqlite> ", "if 1:\n    x\ny"),
    ],
)
def test_only_at_such_a_prompt(text: str, *, bracketed: bool, prompt: str, typed: str) -> None:
    assert type_message(DELIVERY, text, bracketed=bracketed, prompt=prompt).text == typed
