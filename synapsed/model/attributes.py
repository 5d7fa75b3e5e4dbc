"""Attributes that a program has from the shell that started it, besides the environment."""

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

CPU_MAX = 65_535
CPUS_MAX = 4096
LIMITS_MAX = 32
USUAL_UMASKS = (0o022, 0o002)

_Limit = Annotated[int, Field(ge=0, lt=1 << 63)]


class ResourceLimit(BaseModel):
    """A limit as setrlimit(2) has it; null is unlimited."""

    model_config = ConfigDict(extra="forbid", strict=True)

    soft: _Limit | None
    hard: _Limit | None

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.hard is not None and (self.soft is None or self.soft > self.hard):
            raise ValueError("the soft limit must not be above the hard one")
        return self

    def __str__(self) -> str:
        return "unlimited" if self.soft is None else str(self.soft)


class ProcessAttributes(BaseModel):
    """Attributes of a process. Null, and a limit that is missing, mean "not known": the daemon's own value holds."""

    model_config = ConfigDict(extra="ignore")

    umask: Annotated[int, Field(ge=0, le=0o777)] | None = None
    nice: Annotated[int, Field(ge=-20, le=20)] | None = None
    cpus: (
        Annotated[list[Annotated[int, Field(ge=0, le=CPU_MAX)]], Field(min_length=1, max_length=CPUS_MAX)]
        | Literal["all"]
        | None
    ) = None
    """CPUs on which it runs."""
    limits: Annotated[
        dict[Annotated[str, StringConstraints(pattern=r"^[A-Z]{1,16}$")], ResourceLimit],
        Field(max_length=LIMITS_MAX, json_schema_extra={"additionalProperties": False}),
    ] = {}
    """Limits by their names in setrlimit(2), without `RLIMIT_`."""
    oom_score_adj: Annotated[int, Field(ge=-1000, le=1000)] | None = None

    def over(self, own: "ProcessAttributes") -> "ProcessAttributes":
        """Returns a copy whose unknown attributes are those of `own`."""
        known = {name: value for name, value in self if value is not None}
        return own.model_copy(update={**known, "limits": own.limits | self.limits})

    def unusual(self, own: "ProcessAttributes") -> str | None:
        """Describes the unusual attributes in one line: an uncommon umask or nice value, other CPUs or lower limits
        than the daemon's own. Returns None if all are usual."""
        told = []
        if self.umask is not None and self.umask not in USUAL_UMASKS:
            told.append(f"umask {self.umask:03o}")
        if self.nice:
            told.append(f"nice {self.nice}")
        if isinstance(self.cpus, list) and self.cpus != own.cpus:
            told.append(f"CPUs {_ranges(self.cpus)}")
        told += [
            f"limit {name} {limit}" for name, limit in self.limits.items() if _is_less(limit, own.limits.get(name))
        ]
        return ", ".join(told) or None


def _is_less(limit: ResourceLimit, than: ResourceLimit | None) -> bool:
    if limit.soft is None or than is None:
        return False
    return than.soft is None or limit.soft < than.soft


def _ranges(numbers: list[int]) -> str:
    """Returns the numbers as ranges, as `0-3,8`."""
    runs: list[list[int]] = []
    for number in sorted(set(numbers)):
        if runs and number == runs[-1][-1] + 1:
            runs[-1][1:] = [number]
        else:
            runs.append([number])
    return ",".join("-".join(map(str, run)) for run in runs)
