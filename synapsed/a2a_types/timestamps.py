"""Reads times without an offset as UTC, where the SDK's types come from JSON: servers write them (fasta2a, and with it
pydantic-ai), and protobuf's parser refuses the whole task for one. Importing it is enough.
"""

import re
from collections.abc import Callable
from typing import Any, Final

from google.protobuf.internal import well_known_types

NAIVE: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?")

_strict: Final[Callable[[Any, Any], None]] = well_known_types.Timestamp.FromJsonString


def _from_json(timestamp: Any, value: Any) -> None:
    """Does the same as protobuf's own method, which knows times with an offset only."""
    _strict(timestamp, f"{value}Z" if isinstance(value, str) and NAIVE.fullmatch(value) else value)


setattr(well_known_types.Timestamp, "FromJsonString", _from_json)  # noqa: B010 - for the type checker
