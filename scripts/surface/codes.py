"""Words and numbers that programs compare: codes of errors, tasks and alerts, exit codes, metrics, variables.

Where no table has them they are read from the sources."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import get_args

from scripts.folders import modules
from synapsectl import dispatch
from synapsectl.ahead import INTERRUPTED
from synapsectl.errors import ApiError, CtlError
from synapsectl.manual import ENVIRONMENT, EXIT_CODES
from synapsectl.service.login import CARRIED as OF_A_LOGIN
from synapsectl.service.settings import CARRIED, LOCALE
from synapsed import cli
from synapsed.a2a_types.a2a_errors import KINDS
from synapsed.api.problems import _HTTP_CODES
from synapsed.errors import EXIT_CODES as EXIT_OF
from synapsed.errors import HTTP_STATUS
from synapsed.model.figures import FAST_S, SLOW_S
from synapsed.process.inherited import LEFTOVERS
from synapsed.profiles.channel_spec import ErrorCode

_CODE = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*")


@cache
def sources() -> dict[Path, str]:
    """The texts of all modules of the product."""
    return {path: path.read_text(encoding="utf-8") for _, path in modules()}


def errors() -> Iterator[str]:
    """Codes of errors over HTTP, with their status; those of A2A with what it calls them."""
    yield from (f"{code}: HTTP {status}" for code, status in HTTP_STATUS.items())
    yield from (f"{code}: HTTP {status.value} ({message})" for status, (code, message) in _HTTP_CODES.items())
    for text in sources().values():
        for status, code in re.findall(r'plain_problem\(\s*(\d+),\s*"([A-Z_]+)"', text):
            yield f"{code}: HTTP {status}"
    yield from (f"A2A {number}: {kind.reason}, HTTP {kind.http}, {kind.status}" for number, kind in KINDS.items())


def exits() -> Iterator[str]:
    """Exit codes: of `synapsectl` with what leads to each, and of `synapsed`."""
    yield from (f"synapsectl {number}: {about}" for number, about in EXIT_CODES)
    yield f"synapsectl {dispatch.PIPE_CLOSED}: PIPE_CLOSED"
    yield f"synapsectl {dispatch.NOT_WRITTEN}: NOT_WRITTEN"
    yield f"synapsectl {INTERRUPTED}: INTERRUPTED"
    yield from (f"synapsectl {number} for the daemon's {code}" for code, number in EXIT_OF.items())
    yield from (f"synapsed {value}: {name}" for name, value in vars(cli).items() if name.startswith("EXIT_"))
    yield from (f"synapsectl {number} for its own {code}" for code, number in _errors_of_the_tool())


def _errors_of_the_tool() -> Iterator[tuple[str, int]]:
    """Codes and exit codes of what `synapsectl` raises itself. Some of its modules are loaded by the verb that needs
    them alone."""
    for name, path in modules():
        text = sources()[path]
        if re.search(r'^    code = "', text, re.MULTILINE) and "from synapsectl" in text:
            import_module(name)
    waiting = CtlError.__subclasses__()
    for kind in waiting:
        waiting += kind.__subclasses__()
        if kind is not ApiError:
            yield kind.code, kind.exit_code


def tasks() -> Iterator[str]:
    """Codes of tasks that failed; a message that was refused elsewhere may have any code of an error too."""
    yield from get_args(ErrorCode.__value__)
    makers = {"failed", "_failed", "TaskError", "LinkTurnFailed", "TurnFailed", "FoundTurn", "TurnOver", "settle"}
    yield from _codes_given(makers)


def alerts() -> Iterator[str]:
    """Codes of `agentAlert`, and of `alerts` in a status."""
    yield from _codes_given({"AgentAlert", "LinkAlert", "Alert"})


def _codes_given(makers: set[str]) -> Iterator[str]:
    called = re.compile(rf"\b(?:{'|'.join(sorted(makers))})\(")
    for text in sources().values():
        if called.search(text):
            yield from _Codes(ast.parse(text), makers).found()


class _Codes:
    """What a module gives as a code to one of `makers`."""

    def __init__(self, tree: ast.Module, makers: set[str]) -> None:
        self._makers = makers
        self._nodes = list(ast.walk(tree))
        self._assigned: dict[str, list[ast.expr]] = {}
        for node in self._nodes:
            if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                for target in targets:
                    if isinstance(target, ast.Name):
                        self._assigned.setdefault(target.id, []).append(node.value)

    def found(self) -> Iterator[str]:
        for node in self._nodes:
            match node:
                case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name in self._makers:
                    given = [one.value for one in node.keywords if one.arg == "code"] + node.args[:2]
                    for one in given:
                        yield from self._texts(one)
                case ast.FunctionDef(name=name, returns=ast.Name(id="str")) if re.search(r"(^|_)code(_of)?$", name):
                    for inner in ast.walk(node):
                        if isinstance(inner, ast.Return) and inner.value is not None:
                            yield from self._texts(inner.value)

    def _texts(self, value: ast.expr, *, deep: bool = True) -> Iterator[str]:
        match value:
            case ast.Constant(value=str(text)) if len(text) > 3 and _CODE.fullmatch(text):
                yield text
            case ast.IfExp(body=body, orelse=other):
                yield from self._texts(body)
                yield from self._texts(other)
            case ast.BoolOp(values=values):
                for one in values:
                    yield from self._texts(one)
            case ast.Name(id=name) if deep:
                for one in self._assigned.get(name, ()):
                    yield from self._texts(one, deep=False)


def metrics() -> Iterator[str]:
    """`GET /metrics`: nothing where that part is not there."""
    if find_spec("synapsed.parts.telemetry") is None:
        return
    for family in import_module("synapsed.parts.telemetry.families").FAMILIES.values():
        yield f"{family.name} {family.kind} {{{', '.join(family.labels)}}}: {family.about}"
    for name, bounds in (("fast", FAST_S), ("slow", SLOW_S)):
        yield f"(bounds of the {name} histograms): {' '.join(map(str, bounds))}"


_NAMES = re.compile(r'(?:\bfor \w+ in|\bkept =) \(((?:"[A-Z][A-Z0-9_]*"(?:, )?)+)\)')
_READ = re.compile(
    r"""(?:environ|env)(?:\.get|\.pop|\.setdefault)?[(\[]\s*"([A-Z][A-Z0-9_]*)"|_number\(environ,\s*"([A-Z_]+)"
    |"([A-Z][A-Z0-9_]*)"\s+(?:not\s+)?in\s+(?:\w+\.)*_?environ\b|b?"(SYNAPSED?_[A-Z_]+)=?\"""",
    re.VERBOSE,
)


def environment() -> Iterator[str]:
    """Variables that the product knows: reads, hands on, keeps from agents, tells of in its manual."""
    for text in sources().values():
        yield from (f"known {next(filter(None, found))}" for found in _READ.findall(text))
        if "environ" in text:
            yield from (f"known {name}" for names in _NAMES.findall(text) for name in re.findall(r"\w+", names))
    for row in LEFTOVERS:
        when = f" beside {row.beside}" if row.beside else f" that is {' or '.join(row.values)}"
        when = when if row.beside or row.values != ("*",) else ""
        yield from (f"kept from agents {pattern}{when}" for pattern in row.patterns)
    yield from (f"given to the service {name}" for name in (*CARRIED, *LOCALE))
    yield from (f"given to the shell of a login {name}" for name in OF_A_LOGIN)
    for names, about in ENVIRONMENT:
        yield from (f"in the manual {name}: {about}" for name in names.split(", "))
