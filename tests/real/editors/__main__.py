"""`python -m tests.real.editors install`; with ``--optional`` it is no failure, but loud, where that cannot be."""

import subprocess
import sys

from tests.real import editors
from tests.support.npm import MissingProgramsError

if sys.argv[1:2] != ["install"]:
    sys.exit("usage: python -m tests.real.editors install [--optional]")
try:
    editors.install()
except (MissingProgramsError, subprocess.CalledProcessError) as error:
    print(f"\n*** ACP CLIENTS NOT INSTALLED: {error} ***\n", file=sys.stderr)
    sys.exit(0 if "--optional" in sys.argv else 1)
