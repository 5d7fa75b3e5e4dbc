"""Regular expressions of modules, which are compiled when they are first used: a start uses few of them."""

import re
from typing import Any, cast


class LateRegex:
    """A pattern with all members of a compiled one. The functions of `re` do not take it."""

    def __init__(self, text: str | bytes, flags: int) -> None:
        self._given = text, flags
        self._compiled: re.Pattern[Any] | None = None

    def __getattr__(self, name: str) -> Any:
        """Called once for each name."""
        if self._compiled is None:
            self._compiled = re.compile(*self._given)
        value = self.__dict__[name] = getattr(self._compiled, name)
        return value


def regex[T: (str, bytes)](text: T, flags: int = 0) -> re.Pattern[T]:
    """Returns a pattern that is compiled when it is first used."""
    return cast("re.Pattern[T]", LateRegex(text, flags))
