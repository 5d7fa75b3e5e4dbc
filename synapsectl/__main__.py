"""`synapsectl VERB …`: draws the screen of `attach AGENT` at once, then loads the rest of the tool."""

import os
import sys

from synapsed.own_python import hear_of_children, leave_this_folder, open_streams

USAGE = 2

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def main(argv: "Sequence[str] | None" = None) -> int:
    """Runs one verb; returns the exit code (docs/synapsectl.md)."""
    leave_this_folder()
    open_streams()
    hear_of_children()
    from synapsectl.ahead import INTERRUPTED, begin

    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        from synapsed.config.sockets import NoHome, settle_home

        settle_home(os.environ)
        begun = begin(arguments, os.environ)
    except KeyboardInterrupt:
        return INTERRUPTED
    except NoHome as error:
        sys.stderr.write(f"synapsectl: {error}\n")
        return USAGE
    try:
        from synapsectl.dispatch import run_verb  # not before the screen is drawn
    except KeyboardInterrupt:
        return INTERRUPTED
    return run_verb(arguments, begun)


if __name__ == "__main__":
    raise SystemExit(main())
