"""The build backend (PEP 517) that pip, pipx and uv call: hatchling, unless the Python is too old.

That is said before anything else is installed or read, in one sentence; left to itself pip ends in a traceback, or at a
dependency that there is not for that Python. So this file is one that an old Python can read, and requires nothing
until it is asked."""

import sys

LEAST = (3, 12)
HATCHLING = ["hatchling>=1.27"]


def check(version=sys.version_info):
    """Ends with a sentence where this Python, or that of `version`, is too old."""
    if tuple(version[:2]) < LEAST:
        sys.exit(
            "synapsed needs Python {}.{} or newer, and this is Python {}.{}: install with a newer one, "
            "as in python3.13 -m pip install .".format(*(LEAST + tuple(version[:2])))
        )


def get_requires_for_build_wheel(config_settings=None):
    check()
    return HATCHLING


get_requires_for_build_sdist = get_requires_for_build_wheel


def get_requires_for_build_editable(config_settings=None):
    check()
    return HATCHLING + ["editables>=0.5,<1"]


def build_wheel(*arguments):
    from hatchling import build

    return build.build_wheel(*arguments)


def build_sdist(*arguments):
    from hatchling import build

    return build.build_sdist(*arguments)


def build_editable(*arguments):
    from hatchling import build

    return build.build_editable(*arguments)
