"""Small entrants of a few lines of shell, which start quickly."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from cloister.core.types import Floats
from cloister.lab.bench.entrants import Entrant, entrant_of
from cloister.lab.bench.running import Answer, RowsFile, RunFailure, Task, run_entrant

FIRST_ROWS = 'head -n "$BENCH_K" "$BENCH_ROWS" > "$BENCH_OUT"\n'
"""Answers the first k rows: valid centres, and no privacy at all."""

ROWS = np.random.default_rng(0).uniform(-1, 1, (30, 2))


def small(folder: Path, program: str = FIRST_ROWS, name: str = "small", install: str = "", **facts: Any) -> Entrant:
    """Write an entrant. Args: program (shell, or a whole program that begins with #!), facts (of its entry)."""
    place = folder / name
    place.mkdir()
    stated = {
        "name": name,
        "title": "a test",
        "paper": "none",
        "guarantee": "pure",
        "trust": "central",
        "relation": "add-or-remove",
        **facts,
    }
    text = "".join(
        f"{key} = {str(value).lower() if isinstance(value, bool) else repr(value)}\n" for key, value in stated.items()
    )
    (place / "entry.toml").write_text(text)
    (place / "run").write_text(program if program.startswith("#!") else f"#!/bin/sh\n{program}")
    (place / "run").chmod(0o755)
    if install:
        (place / "install.sh").write_text(install)
    return entrant_of(str(place))


def answered(
    entrant: Entrant, environment: Path, rows: Floats = ROWS, timeout: float = 30.0, **changes: Any
) -> Answer | RunFailure:
    """What a run gives. Args: changes (of the task)."""
    bounds = np.tile([-1.0, 1.0], (rows.shape[1], 1))
    with RowsFile.of(rows, bounds) as file:
        task: dict[str, Any] = {"k": 3, "epsilon": 1.0, "delta": 0.0, "seed": 7, "n": len(rows), **changes}
        return run_entrant(entrant, environment, Task(file=file, **task), timeout)


def failed(outcome: Answer | RunFailure) -> RunFailure:
    """The failure that an outcome is."""
    assert isinstance(outcome, RunFailure), outcome
    return outcome


def answer(outcome: Answer | RunFailure) -> Answer:
    """The answer that an outcome is."""
    assert isinstance(outcome, Answer), outcome
    return outcome
