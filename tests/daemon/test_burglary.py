"""A program of an agent's does what a person may do, by every way there is: refused each time, on the real daemon."""

import json
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.support.daemon import Daemon, eventually

pytestmark = [
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the kernel tells less elsewhere"),
    pytest.mark.timeout(400),
]

ROOT = Path(__file__).parents[2]
PROFILE = """
command = "sh"
args = ["-c", "{python} {burglar} thief {results} 2> {results}.err & exec {python} -S -E -I {dummy}"]
ports = [8186, 8186]
[ready]
quiet_ms = 20
[composer]
at_cursor = true
line = '^dummy[>|] ?(?P<text>.*)$'
bracketed_paste = true
[delivery]
settle_ms = 10
[interrupt]
keys = "\\u0003"
[exit]
keys = ["\\u0003", "\\u0004"]
[prompts]
generic = true
"""


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    daemon = Daemon(tmp_path / "home")
    profiles = daemon.home / "config" / "profiles"
    profiles.mkdir()
    words = {"python": sys.executable, "burglar": ROOT / "tests/support/burglar.py", "results": tmp_path / "results"}
    dummy = ROOT / "examples" / "dummy_agent.py"
    text = PROFILE
    for name, word in {**words, "dummy": dummy}.items():
        text = text.replace(f"{{{name}}}", str(word))
    (profiles / "thief.toml").write_text(text)
    daemon.environ = {**daemon.environ, "PYTHONPATH": str(ROOT)}
    daemon.start()
    yield daemon
    daemon.end()


@pytest.mark.slow
def test_nobody_answers_his_own_prompt(daemon: Daemon, tmp_path: Path) -> None:
    started = daemon.ctl("start", "thief", "--cwd", "/")
    assert started.code == 0, started.err
    daemon.ready("thief")
    task = daemon.send("ask y/n", "thief")
    asked = daemon.task_in(task, "input_required")
    results = tmp_path / "results"
    tried = eventually(
        lambda: json.loads(results.read_text()) if results.exists() else None, "it has tried", patience=240
    )
    assert len(tried) > 70
    for one in tried:
        if one["way"].startswith("synapsectl"):
            assert one["outcome"] == 6, one
        else:
            status, code = one["outcome"]
            assert status in (200, 403), one
            assert code in ("FORBIDDEN", -32000, -32600, 403) or (status == 403 and "a2a" in one["way"]), one
    now = daemon.task(task)
    assert (now["status"], now["prompt"], now["updated_at"]) == ("input_required", asked["prompt"], asked["updated_at"])
    assert daemon.ctl("approve", "thief").code == 0
    daemon.task_in(task, "completed")


@pytest.mark.slow
def test_a_sender_is_what_the_kernel_says(daemon: Daemon, tmp_path: Path) -> None:
    """From an agent's process: itself, or a refusal; from outside: claimed."""
    daemon.start_agent()
    script = tmp_path / "say.py"
    script.write_text(SAY)
    daemon.start_agent(profile="generic", name="sh", args=[sys.executable, str(script)], env={**daemon.env})
    said = [json.loads(line) for line in eventually(lambda: _lines(tmp_path / "said", 4), "it has said four things")]
    assert [one["code"] for one in said] == [0, 6, 0, 6]
    for one in (said[0], said[2]):
        sender = one["task"]["metadata"]["sender"]
        view = daemon.agent("sh")
        assert (sender["sender_id"], sender["sender_type"]) == (view["id"], "generic")
        assert (sender["verified"], sender["tier"], sender["sender_endpoint"]) == (True, "agent", view["endpoint"])
        typed = f"[A2A:{one['task']['id'][:8]}:{view['id']}] from within"
        eventually(partial(_on_screen, daemon, typed), f"{typed} has been typed")
    claimed = daemon.ctl("send", "dummy", "--from", "sh", "--json", "hello").json["task"]
    assert claimed["metadata"]["sender"]["sender_id"] == view["id"]
    assert (claimed["metadata"]["sender"]["verified"], claimed["metadata"]["sender"]["tier"]) == (False, "claimed")


def _on_screen(daemon: Daemon, text: str) -> bool:
    """Whether the first agent has drawn it: `send` returns when a message is kept, which is before it is typed."""
    return text in daemon.ctl("logs", "dummy", "-n", "500").out


def _lines(path: Path, count: int) -> list[str] | None:
    lines = path.read_text().splitlines() if path.exists() else []
    return lines if len(lines) >= count else None


SAY = """
import json, os, subprocess, sys, pathlib
out = pathlib.Path(__file__).with_name("said").open("a")
bare = {k: v for k, v in os.environ.items() if not k.startswith("SYNAPSE")}
bare["SYNAPSED_HOME"] = os.environ["SYNAPSED_HOME"]
for env, options in (
    (os.environ, []), (os.environ, ["--from", "dummy"]), (bare, []), (bare, ["--from", "somebody"]),
):
    command = [sys.executable, "-m", "synapsectl", "send", "dummy", "--json", *options, "--", "from within"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    task = json.loads(done.stdout).get("task") if done.stdout else None
    print(json.dumps({"code": done.returncode, "task": task, "err": done.stderr}), file=out, flush=True)
input("$ ")
"""
