"""`python -m tests.terminal.headless install`; with ``--optional`` it is no failure, but loud, where that cannot be."""

import subprocess
import sys

from tests.support.npm import MissingProgramsError
from tests.terminal.headless import CACHE

if sys.argv[1:2] != ["install"]:
    sys.exit("usage: python -m tests.terminal.headless install [--optional]")
try:
    CACHE.install()
except (MissingProgramsError, subprocess.CalledProcessError) as error:
    print(f"\n*** THE TERMINAL OF ANOTHER MAKER IS NOT INSTALLED: {error} ***\n", file=sys.stderr)
    sys.exit(0 if "--optional" in sys.argv else 1)
