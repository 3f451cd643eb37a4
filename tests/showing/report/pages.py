"""A page of HTML as a strict reader sees it, and made results to report."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

import attrs
import numpy as np

from cloister.run.result import Result
from cloister.run.statement import PrivacyStatement, Spend

VOID = {"meta", "link", "img", "br", "hr", "input", "base", "embed", "source"}

SPENDS = (
    Spend(0, "question 1 (counts)", "discrete-gaussian", "gaussian", 0.01),
    Spend(0, "question 2 (sums)", "discrete-gaussian", "gaussian", 0.03),
)
STATEMENT = PrivacyStatement("Central", 1.0, 1e-6, SPENDS, rows=1000)


def made(d: int = 3, k: int = 3, seed: int = 0, **changes: Any) -> Result:
    """A result over [-1, 1]^d as a method would give it."""
    g = np.random.default_rng(seed)
    result = Result(
        g.uniform(-1, 1, (k, d)),
        g.uniform(100, 400, k),
        tuple(f"c{j}" for j in range(d)),
        {"name": "fastlloyd", "options": {"rounds": 2}, "slots": {}},
        {"k": k, "rows": 1000, "bounds": {"lower": [-1.0] * d, "upper": [1.0] * d}},
        STATEMENT,
        {},
        "0.1.0",
    )
    return attrs.evolve(result, **changes)


class Page(HTMLParser):
    """A page whose every element is closed where it should be.

    Attributes: tags (in order, with their attributes), text (outside of style).
    """

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags = list[tuple[str, dict[str, str | None]]]()
        self.text, self._open = "", list[str]()
        self.feed(html)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        assert len(dict(attributes)) == len(attributes), "an attribute twice"
        self.tags.append((tag, dict(attributes)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open[-1:] != ["style"]:
            self.text += data

    def every(self, tag: str) -> list[dict[str, str | None]]:
        """The attributes of all elements of a kind."""
        return [attributes for name, attributes in self.tags if name == tag]

    def cards(self) -> int:
        return len(self.every("article"))
