"""The entry point of `python -m synapsed` and of the installed script."""

from synapsed.own_python import hear_of_children, leave_this_folder, open_streams


def main() -> int:
    leave_this_folder()
    open_streams()
    hear_of_children()
    from synapsed.cli import main as run  # late: this folder may have files named like Python's modules

    return run()


if __name__ == "__main__":
    raise SystemExit(main())
