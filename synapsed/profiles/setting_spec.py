"""Models of a profile's tables about the person's side of its program, which parts read: the settings in the person's
files that affect what synapsed adds to a launch (the person's settings win; the cost of that is reported), and the
account that the program works with.

`$NAME` in a path is a variable of the program's environment; a path that names an unset one is ignored.
"""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from synapsed.model.released_names import RefusingRules
from synapsed.profiles.channel_spec import ErrorCode, Pattern

__all__ = ["AccountSpec", "KeysSpec", "LimitPattern", "SettingsNote", "SettingsSpec", "Yields"]


class _Section(BaseModel):
    # Without `defer_build` each model would build a validator at import, and again as a part of `Profile`'s.
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class Yields(_Section):
    """Arguments of the profile that are not given if the person has set `to` (a dotted path)."""

    args: list[str] = Field(min_length=1)
    to: str = Field(min_length=1)
    not_by_folder: list[str | bool] = []
    """Values that a file in the agent's folder cannot set, as it may be a repository's."""


class SettingsNote(_Section):
    """A note to the person if the setting at `path` has one of `values` (`*` is any value), or if no value below it is
    one of `lacks`."""

    path: str = ""
    values: list[str | bool] = []
    lacks: list[str | bool] = []
    says: str = Field(min_length=1)
    channel: str | None = None
    """The note counts only if this channel is used, and no other in its place."""
    loses: list[RefusingRules] = []
    told: bool = True
    """False: only a person whose agent has rules that are not in force for this reason is notified."""

    @model_validator(mode="after")
    def _check_values_or_lacks(self) -> "SettingsNote":
        if bool(self.values) == bool(self.lacks):
            raise ValueError("a note is for 'values' or for what the settings lack ('lacks')")
        return self


class KeysSpec(_Section):
    """Finds the keys of the program that a person has changed, and lists the keys that synapsed presses."""

    adapter: Literal["bindings", "actions"]
    """`bindings`: a list with the command of each key, of objects with `key` and `command`, or by `context`. `actions`:
    each action with its key or keys."""
    files: list[str | list[str]] = Field(min_length=1)
    """The same as in `SettingsSpec`."""
    format: Literal["json", "toml"] = "json"
    at: str = ""
    """Dotted path of the keys in those files."""
    contexts: list[str] = []
    """The contexts that count."""
    pressed: dict[str, str] = Field(min_length=1)
    """Maps an action to its default key, which synapsed presses."""


class SettingsSpec(_Section):
    """Finds the person's settings of the program. Without this table they are not looked at."""

    format: Literal["json", "toml"] = "json"
    """JSON may have comments."""
    files: list[str | list[str]] = []
    """Files from the weakest to the strongest; of a list, the first one counts whose variables are all set. Paths that
    are not absolute are in the agent's folder."""
    options: dict[str, dict[str, Any]] = {}
    """Maps the person's own arguments to the equivalent settings: `--mode VALUE` for one that has a value, which
    replaces `{value}`."""
    beyond: bool = False
    """Words behind `--` count as options, too: they are those of a program that another one starts."""
    env: dict[str, dict[str, Any]] = {}
    """The same for environment variables that are set."""
    assignments: list[str] = []
    """Options whose value is an assignment, `path=value` in TOML."""
    document: str | None = None
    """An option whose value is a document, or the path of one, of which the program takes only one: the person's
    document is merged into the file of that name (`into`)."""
    into: str | None = None
    merged: dict[str, list[str]] = {}
    """Files of a launch that replace one of the person's: the first of these that exists is merged into it."""
    yields: list[Yields] = []
    notes: list[SettingsNote] = []
    instructions: str | None = None
    """Place of the person's own instructions for the model, which those of `[instructions]` would replace: so the
    person's are put before these."""
    keys: KeysSpec | None = None

    @model_validator(mode="after")
    def _document_has_a_file(self) -> "SettingsSpec":
        if (self.document is None) != (self.into is None):
            raise ValueError("'document' and 'into' belong together: the option, and the file that it is merged into")
        return self


class LimitPattern(_Section):
    """The program's words for a usage limit that is reached: in the text of a turn's failure, or of a dialog. Line
    breaks are blanks. The group `until`, if the text has an end of the limit, may be a time, a date or a duration."""

    pattern: Pattern
    answer: str | None = None
    """The words belong to a dialog, which gets this answer: the turn then ends."""
    code: ErrorCode | None = None
    """The words mean instead that the program is not signed in: the turn fails with this code."""


class AccountSpec(_Section):
    """The account that a program works with: failures that come from the account and not from a message, and signs that
    it works again. `$NAME` is a variable of the program's environment; an entry that names an unset one is ignored."""

    apart: list[str] = []
    """Variables that distinguish accounts: agents of one program with equal values share an account. Without any, each
    agent has its own."""
    files: list[str] = []
    """Files with the account's credentials, and with settings that choose the account: when one of them changes, the
    account is tried again."""
    failures: list[Pattern] = []
    """A failed turn's words about the account (its bill, a model that it does not include), besides AUTH_REQUIRED."""
    unreachable: list[Pattern] = []
    """Words of a turn that failed because the service cannot be reached; a group `url` may name the address."""
    endpoints: list[str] = []
    """Addresses of the service; the first known one counts: the account is tried again once it is reached."""
    remedy: str = ""
    """Command of the program with which a person repairs the account."""
