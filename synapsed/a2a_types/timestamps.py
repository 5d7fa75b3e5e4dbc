"""Makes the SDK's types read times without an offset in JSON as UTC: some servers write such times (fasta2a, and with
it pydantic-ai), and protobuf's parser refuses a whole task because of one. Importing this module is enough.
"""

from collections.abc import Callable
from typing import Any, Final

from google.protobuf.internal import well_known_types

from synapsed.shared.regex import regex

NAIVE: Final = regex(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?")

_strict: Final[Callable[[Any, Any], None]] = well_known_types.Timestamp.FromJsonString


def _from_json(timestamp: Any, value: Any) -> None:
    """Reads `value` as protobuf's own method does, which takes times with an offset only."""
    _strict(timestamp, f"{value}Z" if isinstance(value, str) and NAIVE.fullmatch(value) else value)


setattr(well_known_types.Timestamp, "FromJsonString", _from_json)  # noqa: B010 - for the type checker
