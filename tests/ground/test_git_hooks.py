"""From git's hooks of each kind, whose environment git makes."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.ground.installed import Installed
from tests.ground.person import Person, living_somewhere

HOOKS = (
    "pre-commit", "prepare-commit-msg", "commit-msg", "post-commit", "post-checkout", "pre-merge-commit", "post-merge",
    "pre-push", "pre-receive", "update", "post-receive", "post-update", "pre-rebase", "post-rewrite",
    "reference-transaction", "applypatch-msg", "pre-applypatch", "post-applypatch",
)  # fmt: skip

HOOK = """#!/bin/sh
hook=$(basename "$0")
test -e "{told}/$hook" || "{tool}" send d --wait -- "echo $hook" > "{told}/$hook" 2> "{told}/$hook.err" || exit 1
"""

SESSION = """set -e
git init -q --bare remote
git clone -q remote clone 2> clone.err
for folder in remote/hooks clone/.git/hooks; do
    mkdir -p "$folder"
    for hook in {hooks}; do ln -sf "$PWD/hook.sh" "$folder/$hook"; done
done
cd clone
git config user.name one; git config user.email one@example.org
{work}
"""

ALL = """git commit -q --allow-empty -m one
git checkout -q -b side
echo 1 > side; git add side; git commit -q -m side
git checkout -q -
echo 2 > main; git add main; git commit -q -m main
git merge -q --no-edit side
git push -q origin HEAD
git commit -q --amend -m again
git checkout -q -b third HEAD~
echo 3 > third; git add third; git commit -q -m third
git rebase -q side
git format-patch -q -1 --stdout > ../one.patch
git checkout -q -b fourth HEAD~
git am -q ../one.patch"""


@pytest.fixture(scope="module")
def person(installed: Installed) -> Iterator[Person]:
    with living_somewhere(installed) as person:
        person.with_dummy("d")
        yield person


def asked_by(hooks: tuple[str, ...], work: str, person: Person, folder: Path) -> dict[str, str]:
    """The answer that each hook got while git did the `work`."""
    told = folder / "told"
    told.mkdir()
    (folder / "hook.sh").write_text(HOOK.format(told=told, tool=person.installed.tool))
    (folder / "hook.sh").chmod(0o700)
    env = {**person.login, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
    done = person.run("sh", "-c", SESSION.format(hooks=" ".join(hooks), work=work), env=env, cwd=folder)
    errors = {one.name: one.read_text() for one in told.glob("*.err")}
    assert (done.code, [one for one in errors.values() if "Traceback" in one]) == (0, []), (done, errors)
    return {one.name: one.read_text() for one in told.iterdir() if one.suffix != ".err"}


def test_the_hook_of_a_commit(person: Person, tmp_path: Path) -> None:
    pid = person.pid
    told = asked_by(("pre-commit",), "git commit -q --allow-empty -m one", person, tmp_path)
    assert (told, person.pid) == ({"pre-commit": "pre-commit\n"}, pid)


@pytest.mark.night
def test_hooks_of_each_kind(person: Person, tmp_path: Path) -> None:
    pid = person.pid
    told = asked_by(HOOKS, ALL, person, tmp_path)
    assert told == {hook: f"{hook}\n" for hook in HOOKS}
    assert person.pid == pid
    assert person.misplaced() == []
