"""The command line of a keeper that systemd starts: no version of it puts variables in for what we wrote."""

import pytest

from synapsed.keepers.systemd_launcher import _as_written

SHELL = ["/bin/sh", "-c", 'exec "$$0" "$$@"']


@pytest.mark.parametrize(
    ("command", "written"),
    [
        (["/usr/bin/python3", "--spec", "/home/ann/spec"], ["/usr/bin/python3", "--spec", "/home/ann/spec"]),
        (["/usr/bin/python3", "/a$HOME/${b}"], ["/usr/bin/python3", "/a$$HOME/$${b}"]),
        (["/a$b/python3", "-S", "$$"], [*SHELL, "/a$$b/python3", "-S", "$$$$"]),
    ],
)
def test_dollars_of_a_path_stay(command: list[str], written: list[str]) -> None:
    assert _as_written(command) == written
