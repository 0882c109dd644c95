"""The places of a file where one operator, constant or branch can be changed, each with the text that changes it."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
# what only informs, so that no test should hold it, and types
MESSAGES = ("debug", "info", "warning", "error", "exception", "critical", "log", "warn")
TYPES_AT = {"isinstance": 1, "issubclass": 1, "cast": 0, "TypeVar": 0, "NewType": 0}
CHANGES_NOTHING = ("stacklevel", "strict", "slots", "kw_only")


@dataclass(frozen=True)
class Mutation:
    """One change of a file: the bytes from `start` to `end` become `new`."""

    line: int
    kind: str
    start: int
    end: int
    new: str

    def apply(self, source: bytes) -> bytes:
        """Return the changed file."""
        return source[: self.start] + self.new.encode() + source[self.end :]


def mutations(source: bytes) -> list[Mutation]:
    """Return every change of a file; a few would not compile."""
    visitor = Places(source)
    visitor.visit(ast.parse(source))
    return visitor.mutations


def compiles(source: bytes) -> bool:
    """Return whether a file has no syntax error."""
    try:
        compile(source, "mutant", "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return False
    return True


def does_something(body: list[ast.stmt]) -> bool:
    """Return whether a body does more than explain itself, raise `NotImplementedError` or return None."""
    return not all(
        isinstance(node, ast.Pass)
        or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
        or (isinstance(node, ast.Raise) and "NotImplementedError" in ast.dump(node))
        or (isinstance(node, ast.Return) and (node.value is None or ast.unparse(node.value) == "None"))
        for node in body
    )


class Places(ast.NodeVisitor):
    """Collect the mutations of a file, and pass by types, messages, decorators and what only a type checker reads."""

    def __init__(self, source: bytes) -> None:
        self.mutations: list[Mutation] = []
        self._starts = [0]
        for line in source.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))

    def _add(self, kind: str, first: ast.AST, last: ast.AST, new: str, line: int | None = None) -> None:
        start = self._starts[first.lineno - 1] + first.col_offset
        end = self._starts[last.end_lineno - 1] + last.end_col_offset
        self.mutations.append(Mutation(line or first.lineno, kind, start, end, new))

    def _change(self, kind: str, node: ast.expr, change: Callable[[ast.expr], object]) -> None:
        changed = copy.deepcopy(node)
        change(changed)
        self._add(kind, node, node, f"({ast.unparse(changed)})")

    def _negate(self, test: ast.expr) -> None:
        self._add("condition", test, test, f"(not ({ast.unparse(test)}))")

    def _visit_all(self, nodes: list[ast.stmt] | list[ast.expr]) -> None:
        for node in nodes:
            self.visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        for index, operator in enumerate(node.ops):
            other = COMPARISONS[type(operator)]()
            self._change("comparison", node, lambda changed, index=index, other=other: put(changed.ops, index, other))
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        other = ARITHMETIC.get(type(node.op))
        texts = any(isinstance(side, ast.JoinedStr) or is_text(side) for side in (node.left, node.right))
        if other and not texts:
            self._change("arithmetic", node, lambda changed: setattr(changed, "op", other()))
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        self._change("boolean", node, lambda changed: setattr(changed, "op", other))
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not):
            self._add("boolean", node, node, f"({ast.unparse(node.operand)})")
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, bool):
            self._add("constant", node, node, str(not node.value))
        elif isinstance(node.value, int | float):
            self._add("constant", node, node, repr(node.value + 1))

    def visit_Dict(self, node: ast.Dict) -> None:
        for index, key in enumerate(node.keys):
            if key is not None and is_text(key):
                self._change("key", node, lambda changed, index=index: drop(changed, index))
        self.generic_visit(node)

    def visit_If(self, node: ast.If) -> None:
        test = ast.unparse(node.test)
        if "TYPE_CHECKING" not in test and "__name__" not in test:
            self._negate(node.test)
            self._add("body", node.body[0], node.body[-1], "pass")
            self.visit(node.test)
            self._visit_all(node.body)
        self._visit_all(node.orelse)

    def visit_While(self, node: ast.While) -> None:
        if not isinstance(node.test, ast.Constant):
            self._negate(node.test)
            self.visit(node.test)
        self._visit_all([*node.body, *node.orelse])

    def visit_For(self, node: ast.For) -> None:
        self._add("body", node.body[0], node.body[-1], "pass")
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._negate(node.test)
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        for test in node.ifs:
            self._negate(test)
        self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        if any("overload" in ast.unparse(decorator) for decorator in node.decorator_list):
            return
        self.visit(node.args)
        if does_something(node.body):
            body = node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body
            self._add("body", body[0], body[-1], "return None", line=node.lineno)
        self._visit_all(node.body)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        if not any("Protocol" in ast.unparse(base) for base in node.bases):
            self._visit_all(node.body)

    def visit_Assign(self, node: ast.Assign) -> None:
        alias = node.col_offset == 0 and isinstance(node.value, ast.BinOp) and isinstance(node.value.op, ast.BitOr)
        if not alias and "__all__" not in {ast.unparse(target) for target in node.targets}:
            self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_arguments(self, node: ast.arguments) -> None:
        self._visit_all([default for default in (*node.defaults, *node.kw_defaults) if default is not None])

    def visit_Call(self, node: ast.Call) -> None:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ast.unparse(node.func)
        if isinstance(node.func, ast.Attribute) and name in MESSAGES:
            return
        self.visit(node.func)
        self._visit_all([value for index, value in enumerate(node.args) if TYPES_AT.get(name) != index])
        self._visit_all([keyword.value for keyword in node.keywords if keyword.arg not in CHANGES_NOTHING])

    def visit_Raise(self, node: ast.Raise) -> None:
        """Pass by: what it says is a message."""

    def visit_Assert(self, node: ast.Assert) -> None:
        """Pass by: it is for what cannot happen."""

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Pass by: it is a message."""


def put(items: list[ast.cmpop], index: int, item: ast.cmpop) -> None:
    """Replace one item of a list."""
    items[index] = item


def drop(node: ast.Dict, index: int) -> None:
    """Leave one entry out of a dict."""
    del node.keys[index], node.values[index]


def is_text(node: ast.expr) -> bool:
    """Return whether an expression is a text."""
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def lines_with_mutations(source: bytes) -> Iterator[tuple[int, list[Mutation]]]:
    """Yield the lines that can be changed, each with its changes."""
    by_line: dict[int, list[Mutation]] = {}
    for mutation in mutations(source):
        by_line.setdefault(mutation.line, []).append(mutation)
    yield from sorted(by_line.items())
