"""Mutants of a text, and a draw among them by a seed. A mutant is one small fault, in an expression or a statement.

Nothing is drawn in annotations, decorators, `__all__`, `__slots__`, f-strings, texts of help and calls of a log.
"""

import ast
import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, filterfalse

__all__ = ["Mutant", "applied", "draw", "mutants", "room"]

PER_FILE = 2

_COMPARED: Mapping[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
_COMPUTED: Mapping[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult, ast.LShift: ast.RShift, ast.RShift: ast.LShift,
}  # fmt: skip

_HELP = ("help", "description", "epilog", "metavar", "usage")
_LOGS = ("log", "_log", "logger")
_TYPED = ("Literal", "cast", "TypeVar", "NewType")
_NAMES = ("__all__", "__slots__")


@dataclass(frozen=True, slots=True)
class Mutant:
    """`before`, at `line` and `column` (of characters, both from 1) of `file`, becomes `after`."""

    file: str
    line: int
    column: int
    kind: str
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}: {self.before} -> {self.after}"


def room(file: str) -> str:
    """The folder that a file of the product is in, or the module itself: `synapsed/store`, `synapsectl/client`."""
    return "/".join(file.removesuffix(".py").split("/")[:2])


def mutants(file: str, text: str) -> Iterator[Mutant]:
    """Yields every mutant of `text` in its order; `draw` leaves out the few that do not compile."""
    data = text.encode()  # the columns of ast are of bytes
    begins = [0, *accumulate(len(line) + 1 for line in data.split(b"\n"))]
    for node, is_condition in _nodes(ast.parse(text)):
        faults = [*_faults(node), *(_negated(node) if is_condition else ())]
        if not faults:
            continue
        line = begins[node.lineno - 1]
        column = len(data[line : line + node.col_offset].decode()) + 1
        end = begins[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
        before = data[line + node.col_offset : end].decode()
        yield from (Mutant(file, node.lineno, column, kind, before, after) for kind, after in faults)


def applied(text: str, mutant: Mutant) -> str:
    """Returns `text` with the mutant in it; raises ValueError where the text is another one than it was drawn from."""
    lines = text.split("\n")
    at = sum(len(line) + 1 for line in lines[: mutant.line - 1]) + mutant.column - 1
    if not text.startswith(mutant.before, at):
        raise ValueError(f"{mutant.file} is not what it was drawn from: at line {mutant.line} is no {mutant.before}")
    return text[:at] + mutant.after + text[at + len(mutant.before) :]


def draw(texts: Mapping[str, str], covered: Mapping[str, Sequence[int]], *, seed: int, count: int) -> list[Mutant]:
    """Draws up to `count` mutants on `covered` lines: as many of a room as it has such lines, PER_FILE of a file."""
    chance = random.Random(seed)
    lines = {name: set(numbers) for name, numbers in covered.items() if name in texts}
    rooms: dict[str, list[list[Mutant]]] = defaultdict(list)
    for name in sorted(lines):
        at: dict[int, list[Mutant]] = defaultdict(list)
        for mutant in mutants(name, texts[name]):
            if mutant.line in lines[name]:
                at[mutant.line].append(mutant)
        rooms[room(name)] += at.values()
    sizes = Counter[str]()
    for name, numbers in lines.items():
        sizes[room(name)] += len(numbers)
    found, of_file = list[Mutant](), Counter[str]()

    def take(queue: list[list[Mutant]], several: int) -> None:
        chance.shuffle(queue)
        while several > 0 and queue:
            mutant = chance.choice(queue.pop())
            if of_file[mutant.file] < PER_FILE and _compiles(applied(texts[mutant.file], mutant)):
                found.append(mutant)
                of_file[mutant.file] += 1
                several -= 1

    for name, quota in _quotas(sizes, count).items():
        take(rooms[name], quota)
    take([one for queue in rooms.values() for one in queue], count - len(found))  # what a small room had not
    return sorted(found, key=lambda one: (one.file, one.line, one.column))


def _quotas(sizes: Mapping[str, int], count: int) -> dict[str, int]:
    """Shares `count` out in proportion; what is left over goes to those who are nearest to one more."""
    whole = sum(sizes.values()) or 1
    shares = {name: count * size / whole for name, size in sorted(sizes.items())}
    quotas = {name: int(share) for name, share in shares.items()}
    nearest = sorted(shares, key=lambda name: quotas[name] - shares[name])
    return quotas | {name: quotas[name] + 1 for name in nearest[: count - sum(quotas.values())]}


# --- where ---


def _nodes(node: ast.AST) -> Iterator[tuple[ast.expr | ast.stmt, bool]]:
    """Yields the statements and expressions below `node` that may be mutated; with each, if it is a condition."""
    conditions = _conditions(node)
    for child in filterfalse(_barred, _children(node)):
        if isinstance(child, ast.expr | ast.stmt):
            yield child, any(child is one for one in conditions)
        yield from _nodes(child)


def _conditions(node: ast.AST) -> list[ast.expr]:
    """Not those of `while`: most would go round for ever, which tells nothing."""
    match node:
        case ast.If(test=test) | ast.IfExp(test=test):
            return [test]
        case ast.comprehension(ifs=tests):
            return tests
    return []


def _children(node: ast.AST) -> list[ast.AST]:
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            return [*node.args.defaults, *(one for one in node.args.kw_defaults if one), *node.body]
        case ast.Lambda():
            return [node.body]
        case ast.ClassDef():
            return [*node.body]
        case ast.AnnAssign():
            return [] if node.value is None else [node.value]
        case ast.If() if "TYPE_CHECKING" in ast.unparse(node.test):
            return [*node.orelse]
        case ast.Call():
            kept = (one.value for one in node.keywords if one.arg not in _HELP)
            return [] if _ends(node.func, _TYPED) else [node.func, *node.args, *kept]
    return [*ast.iter_child_nodes(node)]


def _barred(node: ast.AST) -> bool:
    match node:
        case ast.JoinedStr() | ast.TypeAlias():
            return True
        case ast.Assign():
            return any(_ends(target, _NAMES) for target in node.targets)
        case ast.Subscript():
            return _ends(node.value, _TYPED)
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=value))):
            return _ends(value, _LOGS) or (isinstance(value, ast.Call) and ast.unparse(value).startswith("log."))
    return False


def _ends(node: ast.expr, names: Sequence[str]) -> bool:
    return ast.unparse(node).rpartition(".")[2] in names


# --- what ---


def _faults(node: ast.expr | ast.stmt) -> Iterator[tuple[str, str]]:
    """Yields the kind and the new text of each mutant of `node` itself."""
    match node:
        case ast.Compare(left, [op, *ops], values) if type(op) in _COMPARED:
            yield "comparison", _text(ast.Compare(left, [_COMPARED[type(op)](), *ops], values))
        case ast.BinOp(left, op, right) if type(op) in _COMPUTED and not _is_text(left) and not _is_text(right):
            yield "arithmetic", _text(ast.BinOp(left, _COMPUTED[type(op)](), right))
        case ast.BoolOp(op, values):
            yield "and/or", _text(ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), values))
        case ast.Constant(value=bool() as value):
            yield "constant", str(not value)
        case ast.Constant(value=int() as value):
            yield "constant", str(value + 1)
        case ast.Await(value=value):
            yield "await", _text(value)
        case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant) or _is_text(value):
            yield "return", "return None"
        case ast.Expr(value=ast.Call() | ast.Await(value=ast.Call())):
            yield "call", "pass"


def _negated(node: ast.expr | ast.stmt) -> Iterator[tuple[str, str]]:
    match node:
        case ast.Compare(ops=[ast.Eq() | ast.NotEq() | ast.Is() | ast.IsNot() | ast.In() | ast.NotIn()]):
            return  # the comparison's own mutant is that already
        case ast.expr():
            yield "condition", f"(not {_text(node)})"


def _text(node: ast.expr) -> str:
    return f"({ast.unparse(node)})"


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str | bytes))


def _compiles(text: str) -> bool:
    try:
        compile(text, "mutant", "exec", dont_inherit=True)
    except SyntaxError:
        return False
    return True
