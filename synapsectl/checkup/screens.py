"""Checks that the processes which draw screens have no rights on this machine: a trial process reports which rights it
could give up."""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence

from synapsectl.checkup.finding import NOTE, OK, WRONG, Finding
from synapsed import own_python

WHAT = "screens"
TIMEOUT_S = 30.0

GIVEN_UP = {
    "landlock": ("every file", "boot a kernel of 5.13 or newer that has landlock in its 'lsm=' list"),
    "seccomp": ("calls of the system", "run a kernel with CONFIG_SECCOMP_FILTER, on x86-64 or ARM64"),
}
"""Protections on Linux: the resource that each denies, and the condition for it."""
IN_CONTAINER = "in a container, allow its calls in the seccomp profile"


def look_at_screens(environ: Mapping[str, str], *, linux: bool = sys.platform.startswith("linux")) -> Finding:
    try:
        done = subprocess.run(
            own_python.command("synapsed.process.sandbox"),
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=True,
        )
        held = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        detail = f"a process that gives up its rights does not come through it: {error}"
        return Finding(WHAT, WRONG, detail, "synapsectl doctor once more; the daemon's log says what it meets")
    return judged(held, linux=linux)


def judged(held: Sequence[str], *, linux: bool) -> Finding:
    """Returns the finding; `held` are the rights that a process could give up."""
    told = ", ".join(sorted(held)) or "nothing"
    if not linux:
        detail = f"drawn by processes with few rights ({told}); this system has neither landlock nor seccomp"
        return Finding(WHAT, NOTE, detail, "use Linux if agents may print harmful output: docs/security.md")
    missing = [name for name in GIVEN_UP if name not in held]
    if not missing:
        return Finding(WHAT, OK, f"drawn by processes without rights ({told})")
    lacks = " and ".join(f"no {name}, which keeps them from {GIVEN_UP[name][0]}" for name in missing)
    mend = "; ".join([*(GIVEN_UP[name][1] for name in missing), IN_CONTAINER])
    return Finding(WHAT, NOTE, f"drawn by processes with few rights ({told}): there is {lacks}", mend)
