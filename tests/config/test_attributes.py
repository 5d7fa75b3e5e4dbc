"""What a process tells of itself, and what a daemon does with what it was started with."""

import json
import os
import resource
import subprocess
import sys

import pytest

from synapsed.model.attributes import ProcessAttributes
from synapsed.process.parent_attributes import hindrances, measured

SHELL = "umask 027; ulimit -S -n 100; ulimit -S -f 8; exec nice -n 5 "
MEASURE = """
import json, os, resource
from synapsed.process.parent_attributes import become_ordinary, make_room, measured
before = measured()
make_room()
become_ordinary()
print(json.dumps([before, measured(), os.getpriority(os.PRIO_PROCESS, 0)]))
"""


def test_this_process_in_the_words_of_the_model() -> None:
    told = ProcessAttributes.model_validate_json(json.dumps(measured()), strict=True)
    assert told.umask == os.umask(told.umask or 0)
    names = {name.removeprefix("RLIMIT_") for name in dir(resource) if name.startswith("RLIMIT_")}
    assert told.limits.keys() == names - {"OFILE", "VMEM"}
    if sys.platform == "linux":
        assert told.cpus is not None
        assert told.oom_score_adj is not None


def test_a_daemon_makes_room_for_itself_and_knows_what_it_was_started_with() -> None:
    done = subprocess.run(
        ["/bin/sh", "-c", f'{SHELL} "$@"', "sh", sys.executable, "-c", MEASURE], capture_output=True, check=True
    )
    before, after, nice = json.loads(done.stdout)
    assert (before["umask"], before["nice"], before["limits"]["NOFILE"]["soft"]) == (0o027, min(os.nice(0) + 5, 19), 100)
    assert before["limits"]["FSIZE"]["soft"] == 8 * 512
    assert after["limits"]["FSIZE"]["soft"] == before["limits"]["FSIZE"]["hard"]
    assert nice == (0 if os.geteuid() == 0 else before["nice"])


@pytest.mark.parametrize(
    ("limits", "told"),
    [("ulimit -n 4000 -u 5000", []), ("ulimit -f 1000", ["limit FSIZE 512000"]), ("ulimit -n 64", ["limit NOFILE 64"])],
)
def test_what_a_daemon_cannot_get_rid_of(limits: str, told: list[str]) -> None:
    code = "import json; from synapsed.process.parent_attributes import hindrances; print(json.dumps(hindrances()))"
    done = subprocess.run(
        ["/bin/bash", "-c", f'{limits} && exec "$@"', "sh", sys.executable, "-c", code], capture_output=True, check=True
    )
    here = {one for one in hindrances() if one.split()[1] not in ("FSIZE", "NOFILE")}
    assert [one for one in json.loads(done.stdout) if one not in here] == [
        one.replace("512000", str(1000 * 1024)) for one in told
    ]
