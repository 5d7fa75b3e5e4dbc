"""Separates a repository from its own configuration and hooks, so that no command runs that an agent may have written
there.

git runs commands that its configuration names in many places (`RUNS`), and future versions will have more. So a command
that reads or changes files gets a folder in place of the repository's common one (`GIT_COMMON_DIR`): links to all its
files, but no hooks, and a configuration with only the settings that are known to be data (`DATA`). That configuration
is a copy: an agent cannot change it meanwhile. The person's own configuration stays valid.
"""

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

DATA = re.compile(
    r"core\.(repositoryformatversion|bare|filemode|symlinks|ignorecase|precomposeunicode|protect\w+|autocrlf|eol|safecrlf"
    r"|checkroundtripencoding|checkstat|trustctime|excludesfile|attributesfile|sparsecheckout(cone)?|abbrev|quotepath"
    r"|bigfilethreshold|sharedrepository|logallrefupdates)"
    r"|extensions\.(objectformat|compatobjectformat|refstorage|relativeworktrees|noop|preciousobjects)"
    r"|(user|author|committer)\.\w+"
    r"|diff\.(algorithm|context|interhunkcontext|indentheuristic|noprefix|mnemonicprefix|orderfile)"
    r"|merge\.(ff|verifysignatures|conflictstyle|renames|renamelimit|directoryrenames|log)|commit\.(gpgsign|cleanup)"
    r"|remote\..*\.(url|fetch)|lfs\.url",
    re.DOTALL,
)
"""Settings of a repository that name no command, and control how its files are compared and checked out. `lfs` and
`remote` are for the program of a filter that the person has configured."""

RUNS = re.compile(
    r"filter\..*\.(clean|smudge|process)|merge\..*\.driver|diff\.(external|.*\.(command|textconv))"
    r"|core\.(hookspath|fsmonitor|pager|editor|sshcommand|askpass|gitproxy|alternaterefscommand)|hook\..*\.command"
    r"|gpg\.(.*\.)?(program|defaultkeycommand)|credential\.(.*\.)?helper|alias\..*|pager\..*|sequence\.editor"
    r"|(diff|merge|gui)tool\..*\.(cmd|path)|(browser|man)\..*\.(cmd|path)|submodule\..*\.update"
    r"|remote\..*\.(uploadpack|receivepack|vcs|proxy)|uploadpack\.packobjectshook|sendemail\..*cmd"
    r"|extensions\.partialclone|include(if)?\..*path|tar\..*\.command|interactive\.difffilter|trailer\..*\.(command|cmd)",
    re.DOTALL,
)
"""Settings that make git run a command, read another file of settings, or fetch missing objects;
used in messages to people: a setting is not allowed merely because it is missing here."""

MERGING = re.compile(r"filter\.|merge\.|core\.(hookspath|fsmonitor)$|hook\.|gpg\.|extensions\.partialclone$", re.DOTALL)
"""Settings of `RUNS` that a merge can run; in a partial clone, a merge fetches missing objects."""

FILTERS = re.compile(r"filter\.", re.DOTALL)

MERGE_HOOKS = frozenset(
    {"pre-merge-commit", "prepare-commit-msg", "commit-msg", "post-merge", "post-checkout", "post-index-change"}
    | {"reference-transaction", "pre-auto-gc"}
)

_OURS = frozenset({"config", "config.worktree", "hooks"})
"""Entries of a common folder that get no link."""
_THEIRS = frozenset({"system", "global", "command"})
"""Scopes of settings that are the person's."""


class Setting(NamedTuple):
    """A setting. `value` is None if there is only its name, which means true."""

    scope: str
    key: str
    value: str | None

    @property
    def of_the_repository(self) -> bool:
        """True if it comes from a file that the repository has, or names: an agent may have written it."""
        return self.scope not in _THEIRS

    @property
    def of_all_repositories(self) -> bool:
        return self.scope in ("system", "global")


def settings(told: bytes) -> list[Setting]:
    """Parses the output of `git config --list --show-scope -z`."""
    words = [os.fsdecode(word) for word in told.split(b"\0")][:-1]
    found = []
    for scope, pair in zip(words[::2], words[1::2], strict=True):
        key, line, value = pair.partition("\n")
        found.append(Setting(scope, key, value if line else None))
    return found


def commands(found: Iterable[Setting], wanted: re.Pattern[str] = RUNS) -> dict[str, str]:
    """Returns the repository's own settings that make git run a command, if they are `wanted`."""
    own = ((each.key, each.value) for each in found if each.of_the_repository and each.value)
    return {key: value for key, value in own if RUNS.fullmatch(key) and wanted.match(key)}


@contextmanager
def apart(common: Path, found: Iterable[Setting]) -> Iterator[Path]:
    """Yields a folder that replaces `common` while one command runs."""
    with TemporaryDirectory(prefix="synapsectl-") as name:
        folder = Path(name)
        for entry in common.iterdir():
            if entry.name not in _OURS:
                (folder / entry.name).symlink_to(entry)
        kept = [each for each in found if each.of_the_repository and DATA.fullmatch(each.key)]
        (folder / "config").write_bytes(b"".join(map(_written, kept)))
        yield folder


def _written(setting: Setting) -> bytes:
    """Returns the setting in the form of a file of settings."""
    section, _, name = setting.key.rpartition(".")
    section, dot, inner = section.partition(".")
    head = f"[{section} {_quoted(inner)}]" if dot else f"[{section}]"
    line = name if setting.value is None else f"{name} = {_quoted(setting.value)}"
    return os.fsencode(f"{head}\n\t{line}\n")


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
