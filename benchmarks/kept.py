"""Results of a benchmark that are kept: what is there is not run again."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from cloister.core.types import Floats


class Kept:
    """Results in a file of JSON lines. Args: path; work, a module's function of (how, case, seed)."""

    def __init__(self, path: Path, work: Callable[[tuple[str, Any, int]], dict[str, float]]) -> None:
        self._path, self._work = path, work
        lines = path.read_text().splitlines() if path.exists() else []
        self._found: dict[tuple[str, str, int], dict[str, float]] = {
            (e["how"], e["case"], e["seed"]): e["result"] for e in map(json.loads, lines)
        }

    def run(self, how: str, cases: Iterable[Any], seeds: int, workers: int) -> None:
        """Run what is missing, and write each result down at once."""
        todo = [(how, c, s) for s in range(seeds) for c in cases if (how, _key(c), s) not in self._found]
        with ProcessPoolExecutor(workers) as pool, self._path.open("a") as file:
            for done, ((_, case, seed), result) in enumerate(zip(todo, pool.map(self._work, todo), strict=True), 1):
                self._found[how, _key(case), seed] = result
                file.write(json.dumps({"how": how, "case": _key(case), "seed": seed, "result": result}) + "\n")
                file.flush()
                print(f"\r{how}: {done} of {len(todo)}", end="", file=sys.stderr, flush=True)

    def of(self, how: str, case: Any, figure: str = "cost") -> Floats:
        """One figure of all seeds of a case."""
        return self.named(how, _key(case), figure)

    def named(self, how: str, key: str, figure: str = "cost") -> Floats:
        return np.array(
            [r[figure] for (h, other, _), r in self._found.items() if (h, other) == (how, key) and figure in r]
        )


def _key(case: Any) -> str:
    return str(case.key) if hasattr(case, "key") else json.dumps(case)
