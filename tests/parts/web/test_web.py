"""`synapsectl web` where the daemon cannot look up whose connection it is (macOS): the code is in no argument."""

import os
import stat
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from synapsed.parts.web.ctl import web

ADDRESS = "http://localhost:8090/#code=secret"


def test_what_the_opener_is_given_is_a_file_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[list[str]] = []
    said: list[str] = []
    monkeypatch.setattr(web.sys, "platform", "darwin")
    monkeypatch.setattr(web.subprocess, "Popen", lambda command, **_: given.append(command))
    out = SimpleNamespace(note=said.append, line=said.append)
    ctx: Any = SimpleNamespace(environ=os.environ, out=out, paths=SimpleNamespace(run=tmp_path))
    assert web._open(ctx, ADDRESS, "open") == 0
    ((opener, address),) = given
    assert (opener, "secret" in address, "secret" in "".join(said)) == ("open", False, False)
    file = Path(unquote(urlsplit(address).path))
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert f'content="0;url={ADDRESS}"' in file.read_text()
    (tmp_path / "web.html").unlink()
    tmp_path.rmdir()
    tmp_path.touch()  # no folder
    assert web._open(ctx, ADDRESS, "open") == 0
    assert said[-2] == ADDRESS, "where it cannot be written, the person gets it"


def test_a_qr_code_is_the_same_on_light_and_dark_terminals() -> None:
    rows = web.qr_rows("https://box.tail1234.ts.net/#code=k3Jx9QeZ0aBcDeFgHiJkLm")
    assert {(row[: len(web.WHITE_ON_BLACK)], row[-len(web.AS_BEFORE) :]) for row in rows} == {
        (web.WHITE_ON_BLACK, web.AS_BEFORE)
    }
    blocks = [row.removeprefix(web.WHITE_ON_BLACK).removesuffix(web.AS_BEFORE) for row in rows]
    assert len({len(row) for row in blocks}) == 1
    assert set("".join(blocks)) == set("█▀▄ ")
    assert set(blocks[0]) == {"█"}, "the quiet zone is light"
