"""Whoever replays a round takes the centres that were published with its answers, whatever her own solver finds."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
import pytest

from cloister.collection.plan.transcript import Transcript
from cloister.core.errors import Refused
from cloister.core.randomness import NoiseRng
from cloister.core.record import AGREED, Lookup
from cloister.core.types import Floats
from cloister.plugins.solvers.plus_plus import KMeansPlusPlus
from tests.collection.plans import local_plan
from tests.collection.rounds_fakes import advanced, answered


@pytest.fixture(scope="module", params=["hst-means", "radius-means"])
def published(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Transcript:
    """A plan of several rounds, all of them closed but the last."""
    asked = {"k": 2, "method": request.param, "epsilon": 8.0, "delta": 1e-6, "rows": 100_000, "trust": "local"}
    plan, folder = local_plan(2, **asked), tmp_path_factory.mktemp("settled")
    plan.write(folder / "plan", "")
    np.save(folder / "mine.npy", np.random.default_rng(3).normal(0, 0.3, (400, 2)))
    for number in range(plan.length - 1):
        answered(folder, NoiseRng.for_tests(number))
        advanced(folder)
    return Transcript.read(folder / "plan")


def test_a_machine_whose_solver_ends_elsewhere_derives_the_published_round(
    published: Transcript, monkeypatch: pytest.MonkeyPatch
) -> None:
    own: Any = KMeansPlusPlus.solve

    def elsewhere(self: KMeansPlusPlus, *given: Any) -> Floats:
        return np.asarray(own(self, *given) + 1e-3)

    monkeypatch.setattr(KMeansPlusPlus, "solve", elsewhere)
    assert published.round().digest() == published.record().digests[-1]


@pytest.mark.parametrize("lie", [np.nan, 2.0**21, 2.0**40, -(2.0**62), 1e300, "fewer"])
def test_published_centres_that_no_lattice_holds_are_refused(published: Transcript, lie: Any) -> None:
    def lied(look: Lookup) -> Lookup:
        if look.question != AGREED:
            return look
        return attrs.evolve(look, values=look.values[:-1] if lie == "fewer" else np.full_like(look.values, lie))

    closed = tuple(attrs.evolve(a, lookups=tuple(map(lied, a.lookups))) for a in published.closed)
    with pytest.raises(Refused, match="points on the lattice"):
        attrs.evolve(published, closed=closed).round()
