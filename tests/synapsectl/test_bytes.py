"""Arguments and names of files that are no UTF-8, or have line breaks."""

import base64
import os
from pathlib import Path

import pytest

from synapsectl.messages import part_text
from synapsectl.output import harmless, named
from synapsectl.parsing import command_line, parsers
from tests.synapsectl.conftest import Ctl
from tests.synapsectl.fake_daemon import FakeDaemon

STRANGE = os.fsdecode(b"caf\xe9")
"""In Latin-1."""
FILES_ONLY = ("synapsectl completion", "synapsectl profiles key")
"""Verbs that take nothing but names of files."""
LEAVES = [leaf for leaf in parsers(command_line()) if not leaf.parts and leaf.prog not in FILES_ONLY]


@pytest.mark.parametrize("count", [1, 2, 3])
def test_no_verb_takes_one_that_is_not_utf_8(daemon: FakeDaemon, ctl: Ctl, count: int) -> None:
    told = 0
    for leaf in LEAVES:
        done = ctl(*leaf.prog.split()[1:], *[STRANGE] * count)
        assert (done.code, done.out) == (2, ""), (leaf.prog, done)
        told += done.err.endswith(r": an argument is not UTF-8: 'caf\xe9'" "\n") and done.err.count("\n") == 1
    assert told > 10
    assert daemon.requests == []


def test_words_that_python_has_read_as_ascii_are_texts(daemon: FakeDaemon, ctl: Ctl) -> None:
    """As under LC_ALL=C with PYTHONUTF8=0: each byte that is no ASCII is a lone surrogate."""
    read_as_ascii = "größe".encode().decode("ascii", "surrogateescape")
    assert ctl("send", "claude", "--", read_as_ascii).code == 0
    (sent,) = [body for _, path, body in daemon.requests if path.endswith("/tasks/send")]
    assert sent["message"]["parts"][0]["text"] == "größe"


@pytest.mark.parametrize(
    "words",
    [
        ("send", "claude", "hi", "--context", STRANGE),
        ("send", "claude", "hi", f"--context={STRANGE}"),
        ("send", "claude", "--", STRANGE),
        ("send", "claude", "hi", "--file", "a.txt", "--from", STRANGE),
        ("start", "dummy", "--env", f"A={STRANGE}"),
        ("start", "dummy", "--name", STRANGE, "--json"),
        ("start", "dummy", "--", STRANGE),
        ("ls", "--json", STRANGE),
        ("--version", STRANGE),
        (STRANGE,),
        (f"--{STRANGE}",),
    ],
)
def test_nor_an_option(daemon: FakeDaemon, ctl: Ctl, words: tuple[str, ...]) -> None:
    done = ctl(*words)
    assert (done.code, done.out) == (2, "")
    assert "caf" in done.err
    assert daemon.requests == []


@pytest.mark.parametrize("verb", [("send", "claude", "look"), ("reply", "--from", "claude", "look")])
def test_a_file_with_such_a_name_is_sent(daemon: FakeDaemon, ctl: Ctl, tmp_path: Path, verb: tuple[str, ...]) -> None:
    for name in (f"{STRANGE}.txt", "two\nlines.txt"):
        (tmp_path / name).write_text("what it has")
        for option in (("--file", str(tmp_path / name)), (f"--file={tmp_path / name}",)):
            ctl(*verb, *option)
            body = next(body for _, path, body in reversed(daemon.requests) if "message" in (body or {}))
            (_, part) = body["message"]["parts"]
            assert base64.b64decode(part["file"]["bytes"]) == b"what it has"
            assert part["file"]["name"] == name.replace("\udce9", "\\xe9")
    missing = ctl(*verb, "--file", str(tmp_path / f"no{STRANGE}\nfile"))
    assert (missing.code, missing.err) == (
        2,
        f"synapsectl: --file: {tmp_path}/nocaf\\xe9\\nfile: No such file or directory\n",
    )


def test_names_are_shown_on_one_line() -> None:
    assert named("a\n\tb\x1bc\u202e" + STRANGE) == r"a\n\tb\x1bc\u202ecaf\xe9"
    assert harmless("two\nlines\t" + STRANGE) == "two\nlines\tcaf\\xe9"
    file = {"type": "file", "file": {"name": "two\nlines"}}
    assert part_text(file) == r"(two\nlines)"
