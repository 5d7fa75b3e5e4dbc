"""What a test can reach: the modules that it imports, and what no import shows.

The import graph (grimp, import-linter's) is widened by every text of the code that names a module: `python -m NAME`,
`import_module("NAME")`, `f"PACKAGE.{name}"`. FILES says who reads a file that is no module. A daemon that a test starts
runs the whole product, but a room of LATENT only where the test asks for it by one of its words.
"""

import hashlib
import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

import grimp

from scripts.folders import FOLDERS

__all__ = ["FILES", "LATENT", "PROCESSES", "Reach", "changed", "tracked"]

ROOT = Path(__file__).parents[2]
PACKAGES = (*FOLDERS, "tests", "bench", "scripts")

_ELSEWHERE = {
    package: where for package, folder in FOLDERS.items() if (where := folder.relative_to(ROOT).as_posix()) != package
}
"""Packages that are not in the folder of their name."""

EVERYBODY = "*"

_TEXT = re.compile(rf"""["']((?:{"|".join(PACKAGES)})(?:\.\w+)*)(?:["']|(\.)\{{)""")
"""A module's name in quotes, or with a dot and what is filled in behind it."""

_VERBS = "synapsectl.commands."

EVERY_VERB = (
    "synapsectl.manual", "tests.docs.test_readme", "tests.docs.test_reference", "tests.synapsectl.test_completion",
    "tests.synapsectl.test_parsing", "tests.synapsectl.test_quick",
)  # fmt: skip
"""Modules that load all verbs by name: what imports one of them sees a change of any verb."""

FILES: Mapping[str, tuple[str, ...]] = {
    # The first pattern that fits counts; the modules beside it read such a file, or nobody does.
    "pyproject.toml": (EVERYBODY,),
    "packages/*/pyproject.toml": (EVERYBODY,),
    "packages/*/synapsed_fleet/units/*": ("synapsed_fleet.ctl",),
    "packages/*": ("tests.release",),
    "requirements.lock": (EVERYBODY,),
    "scripts/setup": (EVERYBODY,),
    "profiles/*": ("synapsed.profiles.library",),
    "packaging/systemd/*": ("synapsectl.service",),
    "packaging/launchd/*": ("synapsectl.service",),
    "packaging/debian/*": ("tests.release",),
    "packaging/homebrew/*": ("tests.release",),
    "packaging/*": ("tests.docs", "tests.parts.telemetry"),
    "synapsed/process/*": ("synapsed.process.inherited",),
    "synapsed/parts/web/static/*": ("synapsed.parts.web.page_files", "tests.web"),
    "bench/javascript/*": ("bench.a2a", "tests.clients.programs"),
    "tests/recordings/*": ("tests.golden", "tests.pty", "tests.terminal", "tests.channels", "tests.profiles"),
    "tests/*/*": ("tests.{}",),  # a file beside tests is read by the tests of its folder
    "examples/*": ("tests.examples", "tests.support.daemon"),
    "licences.toml": ("tests.release",),
    "scripts/dist": ("tests.release",),
    "docs/releases/*": ("tests.release",),
    "docs/*": ("tests.docs",),
    "surface/*": ("tests.docs",),
    "CHANGELOG.md": ("tests.docs", "tests.release"),
    "*.md": ("tests.docs",),
    "Makefile": ("tests.docs",),
    ".ci/*": (),
    ".github/*": (),
    ".git*": (),
    "LICENSE": ("tests.release",),
}

PROCESSES = ("tests.support.daemon", "tests.support.warm", "tests.support.forking")
"""Modules by which a test starts a daemon: they reach the whole product."""

LATENT: Mapping[str, str] = {
    # A room that a daemon does not run until it is asked, and the words by which a test asks for it.
    "synapsed.parts.elsewhere": r"external|host",
    "synapsed.parts.a2a": r"a2a|push|card",
    "synapsed.parts.web.page": r"\bpage\b|/web|html",
    "synapsed.parts.web.page_files": r"\bpage\b|/web|html",
    "synapsed.parts.web": r"token|device|tls|web|phone",
    "synapsed.parts.attention": r"inbox|notify|notice|sink|next",
    "synapsed_fleet": r"fleet",
    "synapsed.parts.moods": r"mood",
    "synapsed.pipes": r"pipes|acp",
    "synapsed.parts.rules": r"rule|webhook",
    "synapsed.parts.schedules": r"schedule",
    "synapsed.parts.telemetry": r"metrics|traces|usage",
    "synapsed.channels": r"hook|channel|server|session|mcp",
    "synapsed.parts.editors": r"acp",
    "synapsectl.inbox": r"inbox|next",
    "synapsectl.service": r"service|install|doctor",
    "synapsectl.top": r"\btop\b",
    "synapsed.parts.worktrees": r"worktree",
    "synapsed.parts.profile_tools": r"profile|doctor|bundle|report",
}


def tracked() -> list[str]:
    """Returns the files of the checkout that git tracks, and new ones that it does not ignore."""
    told = _git("ls-files", "--cached", "--others", "--exclude-standard")
    return sorted({name for name in told if (ROOT / name).is_file()})


def changed(base: str) -> list[str]:
    """Returns the files that differ from the commit `base`, removed and new ones too."""
    return sorted(
        {*_git("diff", "--name-only", "--no-renames", base), *_git("ls-files", "--others", "--exclude-standard")}
    )


def _git(*arguments: str) -> list[str]:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


type _Edges = Mapping[str, frozenset[str]]


class Reach:
    """The graph of a checkout: who imports whom, starts whom, reads what."""

    def __init__(self) -> None:
        graph = grimp.build_graph(*PACKAGES, cache_dir=None)
        self.modules = frozenset(graph.modules)
        self.tests = frozenset(one for one in self.modules if one.startswith("tests.") and ".test_" in one)
        imports = {one: frozenset(graph.find_modules_directly_imported_by(one)) for one in self.modules}
        self._wide: _Edges = {one: imports[one] | frozenset(_named(one, self.modules)) for one in self.modules}
        importers = _turned(imports | {one: imports[one] | self._verbs() for one in EVERY_VERB})
        self._importers: _Edges = {one: importers[one] - {*PROCESSES} for one in self.modules}
        self._wide_importers = _turned(self._wide)
        self._readers = cache(self._find_readers)

    def _verbs(self) -> frozenset[str]:
        """Returns all modules of verbs, those of parts among them."""
        return self.below("synapsectl.commands") | {one for one in self.modules if ".ctl." in one}

    def readers(self, file: str) -> frozenset[str] | None:
        """Returns the modules that `file` is, or that read it; None where every test may.

        Raises KeyError for a file of which FILES does not say who reads it.
        """
        return self._readers(file)

    def _find_readers(self, file: str) -> frozenset[str] | None:
        module = _module(file)
        if module is not None and file.endswith("conftest.py"):
            return self.below(module.rpartition(".")[0])
        if module is not None:
            return self.modules & {module}  # one that was removed: whoever imported it is changed, too
        for pattern, names in FILES.items():
            if fnmatch(file, pattern):
                folder = file.split("/")[1:2]
                if EVERYBODY in names:
                    return None
                return frozenset[str]().union(*(self.below(name.format(*folder)) for name in names))
        raise KeyError(f"{file}: tests/runs/reach.py, FILES, does not say who reads it")

    def below(self, package: str) -> frozenset[str]:
        """Returns `package` and the modules in it; raises KeyError if there is no such module."""
        found = frozenset(one for one in self.modules if f"{one}.".startswith(f"{package}."))
        if not found:
            raise KeyError(f"there is no module {package}")
        return found

    def tests_of(self, files: Iterable[str]) -> list[str]:
        """Returns the files of the tests that a change of `files` can reach."""
        readers = [self.readers(file) for file in files]
        if None in readers:
            return sorted(map(_file, self.tests))
        changed_modules = frozenset[str]().union(*(found for found in readers if found))
        direct = _closure(changed_modules, self._importers) & self.tests
        asked = {
            test
            for module in changed_modules
            for test in self._by_processes(module) - direct
            if self._asks(test, module)
        }
        return sorted(map(_file, direct | asked))

    def importers(self, file: str) -> list[str]:
        """Returns the files of the tests that import the module `file` themselves."""
        return sorted(map(_file, self._importers[_module(file) or ""] & self.tests))

    def _by_processes(self, module: str) -> frozenset[str]:
        return _closure({module}, self._wide_importers) & self.tests

    def _asks(self, test: str, module: str) -> bool:
        words = _words(module)
        return words is None or re.search(words, _text(test), re.IGNORECASE) is not None

    def fingerprint(self, paths: Iterable[str], modules: Iterable[str] = ()) -> str:
        """Returns a hash over names and contents of all that the tests below `paths`, and `modules`, can reach."""
        below = tuple(path if path.endswith(".py") else f"{path}/" for path in paths)
        roots = {one for one in self.tests if below and _file(one).startswith(below)} | set(modules)
        reached = _closure(roots, self._wide)
        digest = hashlib.sha256()
        for file in tracked():
            readers = self.readers(file)
            if readers is None or not readers.isdisjoint(reached):
                digest.update(f"{file}\0{hashlib.sha256((ROOT / file).read_bytes()).hexdigest()}\n".encode())
        return digest.hexdigest()


def _turned(edges: _Edges) -> _Edges:
    found: dict[str, set[str]] = {one: set() for one in edges}
    for one, others in edges.items():
        for other in others & edges.keys():
            found[other].add(one)
    return {one: frozenset(others) for one, others in found.items()}


def _closure(begin: Iterable[str], edges: _Edges) -> frozenset[str]:
    """Returns `begin`, and all that can be reached from there."""
    found, left = set(begin), list(begin)
    while left:
        new = edges.get(left.pop(), frozenset()) - found
        found |= new
        left += new
    return frozenset(found)


def _words(module: str) -> str | None:
    """Returns the words by which a test asks a daemon, or the tool, to run `module`; None where it runs always."""
    if module.startswith(_VERBS) or ".ctl." in module:
        verb = module.rpartition(".")[2].rstrip("_")
        return rf'"{verb}"|synapsectl {verb}'
    return next((words for room, words in LATENT.items() if f"{module}.".startswith(f"{room}.")), None)


def _module(file: str) -> str | None:
    """Returns the dotted name of a module of PACKAGES, None for any other file."""
    for package, folder in _ELSEWHERE.items():
        file = re.sub(rf"^{re.escape(folder)}/", f"{package}/", file)
    parts = file.removesuffix(".py").split("/")
    if not file.endswith(".py") or parts[0] not in PACKAGES:
        return None
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def _text(module: str) -> str:
    return (ROOT / _file(module)).read_text()


@cache
def _file(module: str) -> str:
    package, dot, rest = module.partition(".")
    path = f"{_ELSEWHERE.get(package, package)}{dot.replace('.', '/')}{rest.replace('.', '/')}"
    return f"{path}/__init__.py" if (ROOT / path).is_dir() else f"{path}.py"


def _named(module: str, modules: frozenset[str]) -> Iterator[str]:
    """Yields the modules that a text in `module` names."""
    for name, all_below in set(_TEXT.findall(_text(module))):
        if all_below:
            yield from (one for one in modules if one.startswith(f"{name}."))
        elif name in modules:
            yield name
            if (started := f"{name}.__main__") in modules:
                yield started
