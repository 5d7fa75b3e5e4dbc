"""What a profile says of the person's own settings of its program: where they are, and what of them bears on what
synapsed adds to a launch. The person's settings win; what that costs is told.

`$NAME` in a path is a variable of the program's environment; a path that names one which is not set is passed over.
"""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from synapsed.model.released_names import RefusingRules

__all__ = ["KeysSpec", "SettingsNote", "SettingsSpec", "Yields"]


class _Section(BaseModel):
    # Each would build a validator of its own when it is imported, and again as a part of `Profile`'s.
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class Yields(_Section):
    """Arguments of the profile's that are not given where the person has set `to` (a dotted path)."""

    args: list[str] = Field(min_length=1)
    to: str = Field(min_length=1)
    not_by_folder: list[str | bool] = []
    """Values that a file in the agent's folder cannot set, as it may be a repository's."""


class SettingsNote(_Section):
    """What a person is told where the setting at `path` has one of `values` (`*` is any), or where no value below it is
    one of `lacks`."""

    path: str = ""
    values: list[str | bool] = []
    lacks: list[str | bool] = []
    says: str = Field(min_length=1)
    channel: str | None = None
    """Only where this channel is used, and no other in its place."""
    loses: list[RefusingRules] = []

    @model_validator(mode="after")
    def _is_about_values(self) -> "SettingsNote":
        if bool(self.values) == bool(self.lacks):
            raise ValueError("a note is for 'values' or for what the settings lack ('lacks')")
        return self


class KeysSpec(_Section):
    """Where a person binds the program's keys otherwise, and which keys are pressed here."""

    adapter: Literal["bindings", "actions"]
    """`bindings`: a list of what each key does, of objects with `key` and `command`, or by `context`. `actions`: each
    action with its key or keys."""
    files: list[str | list[str]] = Field(min_length=1)
    """As in `SettingsSpec`."""
    format: Literal["json", "toml"] = "json"
    at: str = ""
    """Where in them that is, a dotted path."""
    contexts: list[str] = []
    """The contexts that count."""
    pressed: dict[str, str] = Field(min_length=1)
    """Action → the key that does it by itself: what is pressed here."""


class SettingsSpec(_Section):
    """Without any the program's settings are not looked at."""

    format: Literal["json", "toml"] = "json"
    """JSON may have comments."""
    files: list[str | list[str]] = []
    """From the weakest to the strongest; of a list the first one counts all of whose variables are set. Paths that are
    not absolute are in the agent's folder."""
    options: dict[str, dict[str, Any]] = {}
    """The person's own arguments as the settings that they stand for: `--mode VALUE` for one that has a value, which
    replaces `{value}`."""
    env: dict[str, dict[str, Any]] = {}
    """The same of variables that are set."""
    assignments: list[str] = []
    """Options that set what their value says, `path=value` in TOML."""
    document: str | None = None
    """An option whose value is a document, or the path of one, of which the program takes one only: the person's is
    merged into the file of that name (`into`)."""
    into: str | None = None
    merged: dict[str, list[str]] = {}
    """Files of a launch that stand in the place of one of the person's: the first of them that is there is merged into
    it."""
    yields: list[Yields] = []
    notes: list[SettingsNote] = []
    instructions: str | None = None
    """Where the person's own instructions for the model are, in whose place those of `[instructions]` would be given:
    they stand before these."""
    keys: KeysSpec | None = None

    @model_validator(mode="after")
    def _document_has_a_file(self) -> "SettingsSpec":
        if (self.document is None) != (self.into is None):
            raise ValueError("'document' and 'into' belong together: the option, and the file that it is merged into")
        return self
