"""The keeper's command line: `python -S -E -I .../keeper/__main__.py --ptyprocess DIR [--foreground] [--spec FILE]`.

Reads the launch specification (from FILE, which is then removed, else from standard input), starts the keeper and the
program, and ends with status 0 once the keeper's socket listens and the program runs. The keeper goes on as a daemon of
its own. One line of JSON on standard output describes both processes: the fields of WELCOME. If the launch fails, the
status is 1 and one line of JSON on standard error has the reason: `{"code", "message"}`.

`--foreground` is for service managers: this process becomes the keeper, and after the line on standard output it sends
`READY=1` to NOTIFY_SOCKET, if that is set.
"""

import os
import sys

if not __package__:
    # Python was given the path of this file: synapsed's folder goes to the end of sys.path, where it shadows nothing.
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [place for place in sys.path if os.path.abspath(place) != here]
    sys.path.append(os.path.dirname(os.path.dirname(here)))

from synapsed.keeper.launch import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
