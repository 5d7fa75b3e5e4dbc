"""Prompts of languages under the profile `generic`: messages of several lines do what they do in a file."""

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.daemon import ANY_PORTS, Daemon

FUNCTION = "def f(x):\n    y = x * 2\n    return y\nprint(f(21))"
CLASS = "class A:\n    x = 1\n\n    def g(self):\n        return 7\n\nA().g()"
PYTHON = [(FUNCTION, "42\n"), ("for i in range(2):\n    print(i)", "0\n1\n"), (CLASS, "7\n"), ("6*7", "42\n")]
SHELL = [("for i in 1 2; do\n  echo $i\ndone", "1\n2\n"), ("printf abc", "abc\n"), ("echo hi", "hi\n")]
NODE = [
    ("function f(x) {\n  const y = x * 2;\n  return y;\n}\nf(21)", "undefined\n42\n"),
    ("[1, 2].map(x => {\n  return x * 2\n})", "[ 2, 4 ]\n"),
]
PROGRAMS = {
    "python": ([sys.executable, "-q"], {}, PYTHON),
    "python basic": ([sys.executable, "-q"], {"PYTHON_BASIC_REPL": "1"}, PYTHON),
    "python dumb": (["env", "TERM=dumb", sys.executable, "-q"], {}, PYTHON),
    "python 3.11": (["python3.11", "-q"], {}, PYTHON),
    "node": (["node"], {}, NODE),
    "zsh": (["zsh", "-f"], {}, SHELL),
    "bash": (["bash", "--norc"], {"PS1": "$ "}, SHELL),
    "dash": (["dash"], {"PS1": "$ "}, SHELL),
}


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    daemon = Daemon(tmp_path_factory.mktemp("repls"), config=ANY_PORTS).start()
    yield daemon
    daemon.end()


@pytest.mark.parametrize(
    "name", ["python", *(pytest.param(name, marks=pytest.mark.night) for name in PROGRAMS if name != "python")]
)
def test_a_message_does_what_it_does_in_a_file(daemon: Daemon, name: str, tmp_path: Path) -> None:
    command, env, messages = PROGRAMS[name]
    program = command[-2] if command[0] == "env" else command[0]
    if shutil.which(program) is None:
        pytest.skip(f"needs {program}")
    agent = name.replace(" ", "-").replace(".", "")
    daemon.start_agent(profile="generic", name=agent, args=command, env={"HOME": str(tmp_path), **env})
    assert [daemon.ctl("send", agent, "--wait", "--", text).out for text, _ in messages] == [out for _, out in messages]
