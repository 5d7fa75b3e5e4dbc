"""`python -S -E -I .../synapsed/keeper/__main__.py --ptyprocess DIR [--foreground] [--spec FILE]`.

Reads the launch specification (from FILE, which is removed, else from standard input), starts keeper and program, and
ends with status 0 once the keeper's socket listens and the program runs; the keeper goes on as a daemon of its own.
A launch that fails ends with status 1 and one line of JSON on standard error: `{"code", "message"}`. On success one
line of JSON on standard output says who runs: the fields of WELCOME.

`--foreground` is for service managers: this process becomes the keeper, and says `READY=1` on NOTIFY_SOCKET, if that is
set, after the line on standard output.
"""

import os
import sys

if not __package__:
    # Started by its path: synapsed is importable from the end of the path only, so that it shadows nothing.
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [place for place in sys.path if os.path.abspath(place) != here]
    sys.path.append(os.path.dirname(os.path.dirname(here)))

from synapsed.keeper.launch import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
