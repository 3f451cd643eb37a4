"""Lattice rows: products and differences."""

from __future__ import annotations

from typing import TypeAlias

Row: TypeAlias = list[int]


def dot(a: Row, b: Row) -> int:
    return sum(x * y for x, y in zip(a, b, strict=True))


def less(a: Row, b: Row) -> Row:
    return [x - y for x, y in zip(a, b, strict=True)]
