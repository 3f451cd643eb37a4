"""Single-place faults of a source file: comparisons, off-by-ones, signs, and/or, any/all, constants, swapped arguments,
dropped statements. Each changes one place and nothing else; ``survivors.py`` runs tests on them."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from typing import Any

import attrs

OTHER: dict[type, type] = {
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
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Pow: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.And: ast.Or,
    ast.Or: ast.And,
}
"""Operators, and what each becomes."""

NAMES = {
    one: other
    for pair in (("any", "all"), ("min", "max"), ("floor", "ceil"), ("minimum", "maximum"))
    for one, other in (pair, pair[::-1])
}
"""Functions, and what each becomes."""

SYMMETRIC = {*NAMES, "cast", "hypot", "isclose", "logaddexp", "isdisjoint", "gcd"}
"""Functions whose arguments are not swapped, since nothing changes by it."""

UNTESTED = {"repr", "eq", "order", "slots", "strict"}
"""Keywords that say how a class is written, or (``strict`` of ``zip``) guard against mistakes of the program's own."""


@attrs.frozen
class Fault:
    """One place that is changed. Attributes: file (path from the checkout), where (the function or class), line (of the
    statement), last (line of the place's end), source (the text of the line on which the place begins), before, after
    (the place, as Python writes it), start, end (offsets of the place in bytes)."""

    file: str
    where: str
    line: int
    last: int
    source: str
    before: str
    after: str
    start: int
    end: int

    @property
    def key(self) -> tuple[str, ...]:
        """What ``equivalent.toml`` knows it by, which does not change when lines above it do."""
        return self.file, self.where, self.source, self.before, self.after

    def planted(self, text: str) -> str:
        """Return the file's text with the fault."""
        raw = text.encode()
        return (raw[: self.start] + self.after.encode() + raw[self.end :]).decode()

    def __str__(self) -> str:
        return f"{self.file}:{self.line} in {self.where or 'the module'}: {self.before} -> {self.after}"


def faults(file: str, text: str) -> list[Fault]:
    """Return every single-place fault of a file that Python still compiles. Args: file (what faults say it is)."""
    finder = _Finder(file, text)
    finder.visit(ast.parse(text))
    return finder.faults


class _Finder(ast.NodeVisitor):
    def __init__(self, file: str, text: str) -> None:
        self.file, self.faults, self._text = file, list[Fault](), text.splitlines()
        self._starts = [0]
        for line in text.encode().splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))
        self._path, self._line = list[str](), 0

    def visit(self, node: ast.AST) -> None:
        if isinstance(node, ast.stmt):
            self._line = node.lineno
            if _dropped(node):
                self._add(node, "pass")
        if isinstance(node, ast.expr):
            for other in _altered(node):
                self._add(node, f"({ast.unparse(ast.fix_missing_locations(other))})")
        super().visit(node)

    def _add(self, node: Any, after: str) -> None:
        start = self._starts[node.lineno - 1] + node.col_offset
        end = self._starts[node.end_lineno - 1] + node.end_col_offset
        where, source, before = ".".join(self._path), self._text[node.lineno - 1].strip(), ast.unparse(node)
        self.faults.append(Fault(self.file, where, self._line, node.end_lineno, source, before, after, start, end))

    def _inside(self, name: str, parts: list[Any]) -> None:
        self._path.append(name)
        for part in parts:
            self.visit(part)
        self._path.pop()

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._inside(node.name, [*node.args.defaults, *filter(None, node.args.kw_defaults), *node.body])

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._inside(node.name, node.body)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_If(self, node: ast.If) -> None:
        if ast.unparse(node.test) != "TYPE_CHECKING":
            self.generic_visit(node)

    def visit_keyword(self, node: ast.keyword) -> None:
        if node.arg not in UNTESTED:
            self.visit(node.value)

    def visit_Raise(self, node: ast.Raise) -> None:
        """What an error says has tests of its own."""

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Texts are no calculation."""


def _dropped(node: ast.stmt) -> bool:
    """True if the function still compiles, and does something else, without the statement."""
    call = isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
    return call or isinstance(node, (ast.AugAssign, ast.Raise, ast.Continue, ast.Break))


def _altered(node: ast.expr) -> Iterator[ast.expr]:
    """Copies of an expression, each with one change at its root."""
    match node:
        case ast.Compare(ops=ops):
            for i, op in enumerate(ops):
                yield _with(node, ops=[*ops[:i], OTHER[type(op)](), *ops[i + 1 :]])
        case ast.BinOp(op=op) | ast.BoolOp(op=op) if type(op) in OTHER:
            yield _with(node, op=OTHER[type(op)]())
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
            yield copy.deepcopy(operand)
        case ast.IfExp(body=body, orelse=orelse):
            yield _with(node, body=orelse, orelse=body)
        case ast.Constant(value=bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(value=int(value)):
            yield ast.Constant(value + 1)
        case ast.Constant(value=float(value)):
            yield ast.Constant(2 * value if value else 1.0)
        case ast.Call(func=func, args=args):
            yield from _called(node, func, args)


def _called(node: ast.Call, func: ast.expr, args: list[ast.expr]) -> Iterator[ast.expr]:
    name = func.id if isinstance(func, ast.Name) else func.attr if isinstance(func, ast.Attribute) else ""
    if isinstance(func, ast.Name) and name in NAMES:
        yield _with(node, func=ast.Name(NAMES[name]))
    elif isinstance(func, ast.Attribute) and name in NAMES:
        yield _with(node, func=_with(func, attr=NAMES[name]))
    if name in SYMMETRIC:
        return
    for i in range(len(args) - 1):
        one, two = args[i : i + 2]
        starred = isinstance(one, ast.Starred) or isinstance(two, ast.Starred)
        if not starred and ast.dump(one) != ast.dump(two):
            yield _with(node, args=[*args[:i], two, one, *args[i + 2 :]])


def _with(node: Any, **changes: Any) -> Any:
    other = copy.deepcopy(node)
    for name, value in changes.items():
        setattr(other, name, value)
    return other
