"""The base of all models, and what a `TypeAdapter` needs to be as late as they are."""

from typing import Final

from pydantic import BaseModel, ConfigDict

LATE: Final = ConfigDict(defer_build=True)
"""A validator is built when it is first used: to build all of them would take a tenth of the daemon's start. pydantic
does it under a lock."""


class Model(BaseModel):
    model_config = LATE
