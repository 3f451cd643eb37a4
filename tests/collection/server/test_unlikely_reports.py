"""Liars whose reports no encoder explains: the server says so and releases nothing, unless it is told to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cloister.collection.client.encoder import PlanEncoder
from cloister.collection.plan.plan import CollectionPlan
from cloister.collection.server.aggregator import decode
from cloister.core.errors import Refused
from cloister.core.randomness import NoiseRng
from cloister.plugins.oracles.local.randomised_response import packed
from cloister.plugins.oracles.local.reports import Reports
from tests.collection.plans import local_plan
from tests.collection.server.collected import of_reports

N, LIARS = 4000, 12
DOUBT = "whatever the rows are: so far off comes by chance in less than one of 1,000,000,000 rounds"


@pytest.fixture(scope="module")
def plan() -> CollectionPlan:
    options = {"components": {"counts": "optimised-unary"}, "options": {"grid.side": 16}}
    return local_plan(2, bounds="-1:1", rows=N, **options)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, plan: CollectionPlan) -> Path:
    """The reports of N people of whom 12 send the largest sets that are taken, or none do."""
    folder, users, g = tmp_path_factory.mktemp("liars"), np.arange(N, dtype=np.uint64), np.random.default_rng(0)
    rows = np.array([[-0.55, -0.55], [0.55, -0.55], [-0.55, 0.55]])[g.integers(0, 3, N)] + g.normal(0, 0.02, (N, 2))
    made = PlanEncoder(plan, noise=NoiseRng.for_tests(1)).encode(rows, users).reports[0]
    (level,) = plan.round().parts[0].channel.asked.levels
    lied = made.answers.copy()
    lied[:LIARS] = packed(np.arange(level.size) < np.full((LIARS, 1), level.most))
    for name, answers in (("honest", made.answers), ("lied", lied)):
        (folder / name).mkdir()
        for number, half in enumerate((slice(0, N // 2), slice(N // 2, N))):
            some = Reports(users[half], answers[half], made.question)
            of_reports(folder / name / f"{number}.reports", plan.round(), plan.hash, [some], users[half])
    return folder


@pytest.mark.parametrize(
    "how", [{}, pytest.param({"engine": "processes", "workers": 2}, marks=pytest.mark.thorough, id="processes")]
)
def test_decode_releases_nothing_of_liars_whose_law_gives_them_away(
    folder: Path, plan: CollectionPlan, how: dict[str, Any]
) -> None:
    with pytest.raises(Refused, match=f"buckets or more at once: .*{DOUBT}.*: nothing was released.*accept-shares"):
        decode(plan, folder / "lied", **how)
    assert decode(plan, folder / "honest", **how).intake.doubts == []


def test_withstanding_liars_does_not_stand_for_accepting_them(folder: Path, plan: CollectionPlan) -> None:
    with pytest.raises(Refused, match=DOUBT):
        decode(plan, folder / "lied", robust=0.01)
    intake = decode(plan, folder / "lied", robust=0.01, accept_shares=True).intake
    assert (intake.withstands, any(DOUBT in said for said in intake.doubts)) == (0.01, True)
