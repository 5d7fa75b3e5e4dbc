"""What turns have used, over `kill -9` of the daemon: counted where the program writes it down after the turn's end."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.daemon import ANY_PORTS, Daemon, eventually

PROGRAM = """
import datetime, json, os, subprocess, sys, threading, time

TRANSCRIPT, RELEASED = sys.argv[1:]


def note(**record):
    at = datetime.datetime.now(datetime.UTC).isoformat()
    with open(TRANSCRIPT, "a") as file:
        file.write(json.dumps({"timestamp": at, **record}) + "\\n")


def tell(hook, **payload):
    given = json.dumps({"session_id": "s", "transcript_path": TRANSCRIPT, **payload})
    subprocess.run(os.environ[hook], shell=True, input=given.encode(), check=True)


def say_later(number):
    while number == 2 and not os.path.exists(RELEASED):
        time.sleep(0.01)
    note(type="assistant", id=str(number), content="said", tokens={"in": 10 * number, "out": number})


for number in range(1, 100):
    line = input("later> ")
    tell("ON_PROMPT", prompt=line)
    note(type="user", content=line)
    print("said")
    tell("ON_END", prompt=line, answer="said")
    threading.Thread(target=say_later, args=[number], daemon=True).start()
"""

PROFILE = """
command = "{{python}}"
args = ["-S", "-E", "{program}", "{transcript}", "{released}"]

[ready]
quiet_ms = 20

[composer]
at_cursor = true
line = '^later> ?(?P<text>.*)$'

[channels.hooks]
adapter = "hooks"
env = {{ ON_PROMPT = "{{hook:Prompt}}", ON_END = "{{hook:End}}" }}

[channels.hooks.events]
Prompt = "accepted"
End = "ended"

[channels.hooks.fields]
answer = "answer"

[channels.hooks.transcript]
files = "nothing"

[channels.hooks.transcript.usage]
when = {{ type = ["assistant"] }}
id = "id"
input = "tokens.in"
output = ["tokens.out"]

[[channels.hooks.transcript.user]]
when = {{ type = ["user"] }}
text = "content"

[[channels.hooks.transcript.assistant]]
when = {{ type = ["assistant"] }}
text = "content"
id = "id"
"""


@pytest.fixture
def released(tmp_path: Path) -> Path:
    """Once it is there, the program writes down what its second turn has used."""
    return tmp_path / "released"


@pytest.fixture
def daemon(tmp_path: Path, released: Path) -> Iterator[Daemon]:
    program = tmp_path / "later.py"
    program.write_text(PROGRAM)
    daemon = Daemon(tmp_path / "home", config=ANY_PORTS)
    profiles = daemon.home / "config" / "profiles"
    profiles.mkdir(parents=True)
    profile = PROFILE.format(program=program, transcript=tmp_path / "transcript.jsonl", released=released)
    (profiles / "later.toml").write_text(profile)
    daemon.start()
    yield daemon
    daemon.end()


def used(daemon: Daemon) -> dict[str, tuple[int, int, int]]:
    rows = daemon.ctl("usage", "--by", "task", "--json").json["rows"]
    return {row["task"]: (row["turns"], row["input_tokens"], row["output_tokens"]) for row in rows}


@pytest.mark.night
def test_what_was_not_written_down_when_the_daemon_was_killed_is_counted_by_the_next(
    daemon: Daemon, released: Path
) -> None:
    """Each turn is counted once, for its own task."""
    daemon.start_agent(profile="later")
    first = daemon.ended(daemon.send("one", "later"))["id"]
    eventually(lambda: used(daemon) == {first: (1, 10, 1)}, "the first turn is counted")
    second = daemon.ended(daemon.send("two", "later"))["id"]
    daemon.kill9()
    released.touch()
    wanted = {first: (1, 10, 1), second: (1, 20, 2)}
    for _ in range(2):
        daemon.start()
        daemon.ready("later")
        eventually(lambda: used(daemon) == wanted, f"{wanted} are counted")
        daemon.kill9()
    daemon.start()
    daemon.ready("later")
    third = daemon.ended(daemon.send("three", "later"))["id"]
    eventually(lambda: used(daemon) == {**wanted, third: (1, 30, 3)}, "the next one is counted, and no other again")
