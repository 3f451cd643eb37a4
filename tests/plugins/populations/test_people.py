"""How many people rows in files are, wherever they are counted, and that a Shuffled round of too few of them stops."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cloister.core.errors import Refused
from cloister.plugins.populations.files import Files
from cloister.rows.workers.engine import Engine
from cloister.run.fit import fit
from cloister.run.request import Request
from tests.rows.workers.engine_rows import NAMES

SPLIT = {"counts": "split-and-mix-counts", "sums": "split-and-mix"}


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["serial", *NAMES])
def test_files_of_too_few_people_are_refused_whatever_reads_them(
    name: str, shared: dict[str, Engine], tmp_path: Path
) -> None:
    some = np.random.default_rng(0).normal(0, 0.3, (1000, 2))
    some[:100, 1] = np.nan
    paths = [tmp_path / f"{i}.npy" for i in range(3)]
    for path, part in zip(paths, np.array_split(some, 3), strict=True):
        np.save(path, part)

    def population() -> Any:
        return Files(paths, "*", missing="drop", engine=shared[name])

    def asked(planned: int) -> Request:
        return Request(
            k=2,
            method="one-round",
            epsilon=1.0,
            delta=1e-6,
            bounds="ball:1",
            rows=planned,
            components=SPLIT,
            seed=1,
            options={"grid_up_to": 0, "tree.cells": 2},
        )

    with pytest.raises(Refused, match="there are 900 people, and the guarantee needs at least 909"):
        fit(asked(1010), population())
    assert fit(asked(1000), population()).privacy.min_honest_users == 900
    assert population().people == 900, "without a check"
