"""Bundles as a person has them: made, signed, taken, refused, and rolled back by a program that fails."""

import json
import os
import pty
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from synapsed.parts.profile_tools.bundles.shelf import SHIPPED, Shelf
from tests.parts.profile_tools.made import Signer
from tests.support.daemon import NO_PORTS, Daemon, eventually

TESTS = Path(__file__).parents[2]
PROFILES = TESTS.parent / "profiles"
DUMMY = (PROFILES / "dummy.toml").read_text()
ENDS = DUMMY.replace('args = ["-S", "-E", "-I", "{examples}/dummy_agent.py"]', 'args = ["-c", "raise SystemExit(3)"]')
SILENT = DUMMY.replace(
    'args = ["-S", "-E", "-I", "{examples}/dummy_agent.py"]', 'args = ["-c", "import time; time.sleep(9999)"]'
)
READS = DUMMY.replace("quiet_ms = 20", "quiet_ms = 30")
assert DUMMY not in (ENDS, SILENT, READS)


@pytest.fixture
def signer(tmp_path: Path) -> Signer:
    return Signer(tmp_path)


def trusting(*signers: Signer) -> str:
    keys = json.dumps([key for one in signers for key in one.trusted])
    return f"{NO_PORTS}\n[profiles]\nkeys = {keys}\n"


@pytest.fixture
def daemon(tmp_path: Path, signer: Signer) -> Iterator[Daemon]:
    daemon = Daemon(tmp_path / "home", config=trusting(signer))
    yield daemon
    daemon.end()


def written(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def bundled(daemon: Daemon, signer: Signer, text: str, name: str = "dummy", **options: str) -> Path:
    """A bundle that the verb has made."""
    file = written(daemon.home / "made" / f"{name}.toml", text)
    out = daemon.home / "made" / f"{abs(hash(text))}.bundle"
    made = daemon.ctl("profiles", "bundle", str(file), "--key", str(signer.file), "-o", str(out), *options.values())
    assert made.code == 0, made.err
    return out


def counting(daemon: Daemon) -> str:
    return Shelf(daemon.home / "state").counts().current


@pytest.mark.night
def test_made_taken_and_gone_back_from(daemon: Daemon, signer: Signer, tmp_path: Path) -> None:
    daemon.start()
    bundle = bundled(daemon, signer, READS)
    assert bundle.stat().st_mode & 0o777 == 0o644
    dry = daemon.ctl("profiles", "update", "--from", str(bundle), "--dry-run")
    assert "ready.quiet_ms: 20 → 30" in dry.out
    assert counting(daemon) == SHIPPED
    taken = daemon.ctl("profiles", "update", "--from", str(bundle))
    assert taken.code == 0, taken.err
    assert "WHAT IS RUN" not in taken.out
    listed = {row["name"]: row["source"] for row in daemon.ctl("profiles", "list", "--json").json}
    assert listed["dummy"] == str(Shelf(daemon.home / "state").place(counting(daemon)) / "profiles" / "dummy.toml")
    assert "quiet_ms = 30" in daemon.ctl("profiles", "show", "dummy").out
    assert "this bundle is in use already" in daemon.ctl("profiles", "update", "--from", str(bundle)).out
    told = [row for row in daemon.ctl("doctor", "--json").json["checks"] if row["check"] == "bundle of profiles"]
    assert [row["status"] for row in told] == ["ok"]
    assert "made 0 days ago by tests@example" in told[0]["detail"]
    back = daemon.ctl("profiles", "update", "--rollback")
    assert (back.code, back.out) == (0, "the shipped profiles are in use\n")
    assert "quiet_ms = 20" in daemon.ctl("profiles", "show", "dummy").out
    assert daemon.ctl("profiles", "update", "--rollback").code == 2


@pytest.mark.night
def test_a_key_is_made_and_a_bundle_of_it_believed(daemon: Daemon, tmp_path: Path) -> None:
    made = daemon.ctl("profiles", "key", str(tmp_path / "new.key"), "--json")
    assert made.code == 0
    assert (tmp_path / "new.key").stat().st_mode & 0o777 == 0o600
    assert daemon.ctl("profiles", "key", str(tmp_path / "new.key")).code == 2
    out = tmp_path / "b"
    words = ("profiles", "bundle", "dummy", "qwen", "--key", str(tmp_path / "new.key"), "-o", str(out))
    assert daemon.ctl(*words).code == 0
    refused = daemon.ctl("profiles", "update", "--from", str(out))
    assert refused.code == 6
    assert "[profiles] keys" in refused.err
    daemon.config_file.write_text(f'{NO_PORTS}\n[profiles]\nkeys = ["{made.json["key"]} me"]\n')
    taken = daemon.ctl("profiles", "update", "--from", str(out))
    assert taken.code == 0, taken.err
    assert "no daemon runs: it counts once one does" in taken.err


@pytest.mark.night
def test_what_is_run_is_shown_apart_and_asked_for(daemon: Daemon, signer: Signer) -> None:
    bundle = bundled(daemon, signer, ENDS)
    refused = daemon.ctl("profiles", "update", "--from", str(bundle))
    assert refused.code == 6
    assert "dummy changes WHAT IS RUN OR TYPED as you:" in refused.out
    assert 'args: ["-S", "-E", "-I", "{examples}/dummy_agent.py"] → ["-c", "raise SystemExit(3)"]' in refused.out
    digest = shown_digest(refused.out)
    assert f"--accept-commands {digest}" in refused.err
    assert counting(daemon) == SHIPPED
    other = daemon.ctl("profiles", "update", "--from", str(bundle), "--accept-commands", "0" * 12)
    assert (other.code, counting(daemon)) == (6, SHIPPED), "another bundle than the one that was shown"
    assert daemon.ctl("profiles", "update", "--from", str(bundle), "--accept-commands", "yes").code == 2
    for answer, counts in (("n", False), ("y", True)):
        assert at_a_terminal(daemon, answer, "profiles", "update", "--from", str(bundle)) == (0 if counts else 6)
        assert (counting(daemon) != SHIPPED) == counts
    assert daemon.ctl("profiles", "update", "--rollback").code == 0
    assert daemon.ctl("profiles", "update", "--from", str(bundle), "--accept-commands", digest).code == 0


def shown_digest(told: str) -> str:
    found = re.search(r"^bundle ([0-9a-f]{12}),", told, re.MULTILINE)
    assert found is not None, told
    return found[1]


def at_a_terminal(daemon: Daemon, answer: str, *words: str) -> int:
    pid, master = pty.fork()
    if pid == 0:
        os.environ.clear()
        os.environ.update(daemon.env)
        os.execv(sys.executable, [sys.executable, "-m", "synapsectl", *words])
    shown = b""
    while True:
        try:
            if not (data := os.read(master, 4096)):
                break
        except OSError:  # its end, on Linux
            break
        asked, shown = b"[y/N]" in shown, shown + data
        if b"[y/N]" in shown and not asked:  # what is typed before the question is dropped
            os.write(master, f"{answer}\n".encode())
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    os.close(master)
    return status


@pytest.mark.night
def test_a_persons_own_profile_wins(daemon: Daemon, signer: Signer) -> None:
    written(daemon.home / "config" / "profiles" / "dummy.toml", "[ready]\nquiet_ms = 70\n")
    taken = daemon.ctl("profiles", "update", "--from", str(bundled(daemon, signer, READS)))
    assert "your own file of it still wins" in taken.out
    assert "quiet_ms = 70" in daemon.ctl("profiles", "show", "dummy").out
    refused = daemon.ctl("profiles", "bundle", "dummy", "--key", str(signer.file), "-o", str(daemon.home / "x"))
    assert (refused.code, "give a file with a whole profile" in refused.err) == (2, True)


# --- a program that does not come up ---------------------------------------------------------------------------------


def take(daemon: Daemon, bundle: Path) -> str:
    update = ("profiles", "update", "--from", str(bundle))
    digest = shown_digest(daemon.ctl(*update, "--dry-run").out)
    taken = daemon.ctl(*update, "--accept-commands", digest)
    assert taken.code == 0, taken.err
    return counting(daemon)


def alerts(daemon: Daemon) -> str:
    return json.dumps(daemon.get("/control/status").json["alerts"])


def works(daemon: Daemon) -> None:
    daemon.ready()
    task = daemon.ctl("send", "dummy", "--wait", "echo it works again")
    assert (task.code, task.out.strip()) == (0, "it works again")


@pytest.mark.night
def test_a_bundle_whose_program_fails_is_rolled_back_by_itself(daemon: Daemon, signer: Signer) -> None:
    daemon.start()
    assert daemon.ctl("start", "dummy").code == 0
    daemon.ready()
    good = take(daemon, bundled(daemon, signer, READS))
    assert take(daemon, bundled(daemon, signer, ENDS)) != good
    eventually(lambda: counting(daemon) == good, "the bundle before counts again")
    eventually(lambda: "was rolled back" in alerts(daemon), "it is told")
    assert "BUNDLE_ROLLED_BACK" in daemon.ctl("events", "dummy", "--after", "0", "--json").out
    assert "quiet_ms = 30" in daemon.ctl("profiles", "show", "dummy").out
    works(daemon)


@pytest.mark.night
def test_a_daemon_that_is_killed_while_it_tries_another_profile_leaves_the_bundle(
    daemon: Daemon, signer: Signer
) -> None:
    """The profile before keeps it at its trial: its program lives, and shows nothing."""
    daemon.start()
    assert daemon.ctl("start", "dummy").code == 0
    daemon.ready()
    take(daemon, bundled(daemon, signer, SILENT))
    taken = take(daemon, bundled(daemon, signer, ENDS))
    assert daemon.ctl("restart", "dummy").code == 0
    shelf = Shelf(daemon.home / "state")
    eventually(lambda: shelf.counts().aside == "dummy", "it is tried without the bundle")
    assert "time.sleep" in daemon.ctl("profiles", "show", "dummy").out
    daemon.kill9()
    assert shelf.counts().aside == "dummy"
    daemon.start()
    eventually(lambda: not shelf.counts().aside, "the trial is over")
    assert counting(daemon) == taken
    for _ in range(2):
        assert daemon.ctl("profiles", "update", "--rollback").code == 0
    assert daemon.ctl("restart", "dummy").code == 0
    works(daemon)


@pytest.mark.night
def test_agents_go_on_where_a_daemon_finds_a_bundle(daemon: Daemon, signer: Signer) -> None:
    """Taken while none ran; and the daemon's own `kill -9` changes nothing about it."""
    assert daemon.ctl("profiles", "update", "--from", str(bundled(daemon, signer, READS))).code == 0
    daemon.start()
    assert daemon.ctl("start", "dummy").code == 0
    daemon.ready()
    eventually(lambda: not Shelf(daemon.home / "state").counts().unproved or None, "it is proved")
    taken = counting(daemon)
    daemon.kill9()
    daemon.start()
    daemon.ready()
    assert counting(daemon) == taken
    assert daemon.ctl("send", "dummy", "--wait", "echo still here").out.strip() == "still here"


def test_an_agent_takes_none(daemon: Daemon, signer: Signer) -> None:
    socket = str(daemon.socket)
    inside = {**daemon.env, "SYNAPSE_CONTROL_SOCKET": socket, "SYNAPSE_AGENT_ID": "synapse-dummy-8190"}
    for words in (("--rollback",), ("--from", "x")):
        refused = daemon.ctl("profiles", "update", *words, env=inside)
        assert (refused.code, "an agent's shell" in refused.err) == (6, True)
