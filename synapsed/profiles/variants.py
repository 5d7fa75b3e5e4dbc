"""The version check of a program, and the parts of a profile for some versions only; `profile` has the rest."""

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from synapsed.profiles.channel_spec import Pattern
from synapsed.profiles.releases import PRINTED, find, key


def _checked_release(version: str) -> str:
    if key(version) is None:
        raise ValueError(f"{version[:40]!r} is no version: numbers with dots between them, like 2.1.0")
    return version


Release = Annotated[str, AfterValidator(_checked_release)]


class VersionCheck(BaseModel):
    """Says how to ask the program for its version. Without this table it is never asked."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    args: list[str] = Field(default=["--version"], min_length=1)
    """The program is run with these arguments alone, in the agent's environment and directory."""
    pattern: Pattern = PRINTED
    """Matches the version in the output: the first match, or its group `version` if it has one."""
    since: Release | None = None
    """The oldest version that the profile is known to work with."""

    def find(self, printed: str) -> str | None:
        """Returns the version in the text that the program `printed`; None if there is no version in it."""
        return find(self.pattern, printed)


_SAME = frozenset(
    {
        "name",
        "source",
        "description",
        "command",
        "ports",
        "transport",
        "cols",
        "rows",
        "verified",
        "version",
        "versions",
    }
    | {"parsers", "rights", "skills"}
)
"""Keys of a profile that are the same for every version."""


class Variant(BaseModel):
    """Differences in some versions of the program, from `since` on and before `below`; they override the profile."""

    model_config = ConfigDict(extra="allow", frozen=True)

    since: Release | None = None
    below: Release | None = None
    note: str | None = Field(default=None, min_length=1, max_length=200)
    """A note to the person about these versions, shown at a start."""

    @model_validator(mode="after")
    def _check_bounded(self) -> "Variant":
        if self.since is None and self.below is None:
            raise ValueError("must say for which versions it is: 'below', 'since' or both")
        if fixed := sorted(_SAME & self.overrides.keys()):
            raise ValueError(f"{fixed[0]!r} cannot differ from version to version")
        return self

    @property
    def overrides(self) -> dict[str, Any]:
        return dict(self.model_extra or {})

    @property
    def range(self) -> str:
        """Returns the range of versions, in words."""
        bounds = (("from", self.since), ("below", self.below))
        return ", ".join(f"{word} {bound}" for word, bound in bounds if bound is not None)
