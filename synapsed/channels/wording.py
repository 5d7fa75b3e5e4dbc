"""What an error's words mean, by a profile's patterns."""

import re
from collections.abc import Mapping


def error_code(patterns: Mapping[str, str], text: str) -> str:
    """The code (docs/http-api.md) of the first pattern that is found in `text`, else MODEL_ERROR."""
    for pattern, code in patterns.items():
        if re.search(pattern, text, re.MULTILINE):
            return code
    return "MODEL_ERROR"
