"""File of a study: a line of JSON for its conditions, then one for every finished run.

A run is written and synced as soon as it ends, so that a crash loses only the unfinished ones.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, final

import attrs

from cloister.core.errors import Damaged, InvalidInput
from cloister.core.plain_data import parsed
from cloister.lab.lines import LinesFile

FORMAT = "cloister-study-1"

PREFIX = f'{{"format": "{FORMAT}"'.encode()

NOTE = "NOT private: computed from the rows themselves"

ENDINGS = (".jsonl",)

Key = tuple[str, float, int]


@final
@attrs.frozen
class Outcome:
    """Outcome of a run.

    Args:
        nicv: cost of the rows, clipped to the bounds.
        seconds: of the run.
        refused: why it failed, or None.
        unclipped: cost of the unclipped rows; None if none lies outside the bounds.
    """

    nicv: float = 0.0
    seconds: float = 0.0
    refused: str | None = None
    unclipped: float | None = None


@final
class StudyFile:
    """Open study file, locked by this process; without a path, nothing is stored.

    Attributes:
        path: of the file, or None.
        outcomes: of all finished runs, by label, epsilon and number.
        costs: of the baselines, by name.
    """

    def __init__(self, path: Path | None, conditions: dict[str, Any]) -> None:
        """Open a study, or begin a new one.

        Raises:
            InvalidInput: it has other conditions, another process uses it, or it cannot be written.
            Damaged: it cannot be read.
        """
        self.path = path
        self.outcomes: dict[Key, Outcome] = {}
        self.costs: dict[str, float] = {}
        self._file = None if path is None else LinesFile(path, PREFIX, "a cloister study", "comparison")
        try:
            self._begin(json.loads(json.dumps(conditions)))
        except BaseException:
            self.close()
            raise

    def _begin(self, conditions: dict[str, Any]) -> None:
        if self._file is None:
            return
        head = {"format": FORMAT, "private": False, "note": NOTE, "conditions": conditions}
        lines = self._file.entries
        if not lines:
            self._append(head)
            return
        try:
            first, *entries = map(parsed, lines)
            self._check(first["conditions"], conditions)
            for entry in entries:
                self._take(entry)
        except (ValueError, KeyError, TypeError) as error:
            raise Damaged(f"the study {self.path} cannot be read: restore it, or choose another file") from error

    def _check(self, stored: dict[str, Any], expected: dict[str, Any]) -> None:
        other = [name for name in {**stored, **expected} if stored.get(name) != expected.get(name)]
        if other:
            raise InvalidInput(
                f"the study {self.path} has other conditions ({', '.join(other)}): only methods, budgets and runs may "
                f"change"
            )

    def _take(self, entry: dict[str, Any]) -> None:
        if "cost of" in entry:
            self.costs[entry["cost of"]] = float(entry["nicv"])
        else:
            key = str(entry["method"]), float(entry["epsilon"]), int(entry["run"])
            other = entry.get("unclipped nicv")
            self.outcomes[key] = Outcome(
                float(entry["nicv"]), float(entry["seconds"]), unclipped=None if other is None else float(other)
            )

    def keep(self, key: Key, outcome: Outcome) -> None:
        """Store a finished run. A refused one is not written, so the next comparison tries it again."""
        self.outcomes[key] = outcome
        if outcome.refused is None:
            label, epsilon, number = key
            facts: dict[str, Any] = {"method": label, "epsilon": epsilon, "run": number}
            facts |= {} if outcome.unclipped is None else {"unclipped nicv": outcome.unclipped}
            self._append({**facts, "nicv": outcome.nicv, "seconds": round(outcome.seconds, 4)})

    def keep_cost(self, name: str, nicv: float) -> None:
        """Store the cost of a baseline."""
        self.costs[name] = nicv
        self._append({"cost of": name, "nicv": nicv})

    def _append(self, entry: dict[str, Any]) -> None:
        if self._file is not None:
            self._file.append(entry)

    def close(self) -> None:
        """Close and unlock the file."""
        if self._file is not None:
            self._file.close()
