"""Reads JSON that someone else wrote: another host, a program, the broker, a person. There is one error, whatever is
wrong with the text, and the value can be worked with: it is not deep, and each text in it can be encoded.

A large body that the event loop reads is the business of `synapsed.documents.reading`, which reads it in pieces.
"""

import json
import math
from typing import Any, Final

DEPTH_MAX: Final = 200
"""Levels of objects and arrays. Code that calls itself for each level needs a few frames of Python's 1000 for one."""
DIGITS_MAX: Final = 300
"""Digits of an integer: a float can hold it, and Python reads it in no time."""


class NotJson(ValueError):
    """The text is not JSON, or is deeper or has larger numbers than is read here."""


def read_json(raw: bytes | bytearray | str) -> Any:
    """Returns the value of a JSON text. Raises NotJson: NaN, infinities, numbers that a float cannot hold, bytes that
    are not UTF-8 and more than DEPTH_MAX levels are not JSON here. The lone half of a surrogate pair becomes U+FFFD."""
    try:
        text = raw if isinstance(raw, str) else raw.decode("utf-8-sig")
        value = _DECODER.decode(text)
    except NotJson:
        raise
    except ValueError as error:
        raise NotJson(str(error)) from None
    except RecursionError:
        raise NotJson(_DEEP) from None
    if text.count("[") + text.count("{") > DEPTH_MAX and _is_deep(value):
        raise NotJson(_DEEP)
    if "\\ud" in text or "\\uD" in text or (isinstance(raw, str) and not _is_whole(text)):
        return _mended(value)
    return value


def read_object(raw: bytes | bytearray | str) -> dict[str, Any]:
    """Returns the object of a JSON text, as `read_json` does. Raises NotJson, also for another value."""
    value = read_json(raw)
    if not isinstance(value, dict):
        raise NotJson("it is JSON, but not an object")
    return value


def _integer(digits: str) -> int:
    if len(digits) > DIGITS_MAX:
        raise NotJson(f"a number has more than {DIGITS_MAX} digits")
    return int(digits)


def _fraction(digits: str) -> float:
    if math.isinf(number := float(digits)):
        raise NotJson("a number is too large")
    return number


def _constant(name: str) -> None:
    raise NotJson(f"{name} is not JSON")


_INNER: Final = (dict, list)
"""Kinds of values that have values in them. A tuple is asked faster than a union."""
_DEEP: Final = f"it has more than {DEPTH_MAX} levels"
_DECODER: Final = json.JSONDecoder(parse_int=_integer, parse_float=_fraction, parse_constant=_constant)


def _is_deep(value: Any) -> bool:
    level = [value] if isinstance(value, _INNER) else []
    for _ in range(DEPTH_MAX):
        level = [
            inner
            for each in level
            for inner in (each.values() if isinstance(each, dict) else each)
            if isinstance(inner, _INNER)
        ]
        if not level:
            return False
    return True


def _is_whole(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _mended(value: Any) -> Any:
    """Returns `value` with the lone halves of surrogate pairs in its texts replaced."""
    text = json.dumps(value, ensure_ascii=False)
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return value if whole == text else _DECODER.decode(whole)
