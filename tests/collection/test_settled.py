"""Whoever replays a round takes the centres that were published with its answers, whatever her own solver finds."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest

from cloister.collection.client.encode_files import RowTable, collect
from cloister.collection.client.encoder import PlanEncoder
from cloister.collection.plan.publish import publish, words
from cloister.collection.plan.transcript import RoundAnswers, Transcript
from cloister.collection.server.aggregator import advance
from cloister.core.errors import Refused
from cloister.core.randomness import NoiseRng
from cloister.core.record import SETTLED, Lookup
from cloister.core.types import Floats
from cloister.plugins.solvers.plus_plus import KMeansPlusPlus
from cloister.run.request import Request

PEOPLE = 400


@pytest.fixture(scope="module", params=["hst-means", "radius-means"])
def published(request: pytest.FixtureRequest) -> Iterator[Transcript]:
    """A plan of several rounds, all of them closed but the last."""
    asked = Request(
        k=2, method=request.param, epsilon=8.0, delta=1e-6, bounds="ball:1", rows=100_000, seed=1, trust="local"
    )
    plan = publish(asked, dimension=2)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        plan.write(folder / "plan", words(plan, plan.rounds()))
        np.save(folder / "rows.npy", np.random.default_rng(3).normal(0, 0.3, (PEOPLE, 2)))
        transcript = Transcript(plan)
        while transcript.index + 1 < plan.length:
            encoder = PlanEncoder(transcript, noise=NoiseRng.for_tests(transcript.index))
            collect(encoder, RowTable(encoder, [str(folder / "rows.npy")]), folder / "reports", None)
            advance(folder / "plan", folder / "reports")
            transcript = Transcript.read(folder / "plan")
        yield transcript


def moved(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine whose solver ends a little elsewhere."""
    own: Any = KMeansPlusPlus.solve

    def solve(self: KMeansPlusPlus, *given: Any) -> Floats:
        return np.asarray(own(self, *given) + 1e-3)

    monkeypatch.setattr(KMeansPlusPlus, "solve", solve)


def test_a_machine_whose_solver_ends_elsewhere_derives_the_published_round(
    published: Transcript, monkeypatch: pytest.MonkeyPatch
) -> None:
    moved(monkeypatch)
    assert published.round().digest() == published.record().digests[-1]


def test_without_the_published_centres_it_derives_another_one(
    published: Transcript, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = attrs.evolve(published, closed=tuple(without(answers) for answers in published.closed))
    assert bare.round().digest() == published.record().digests[-1]
    moved(monkeypatch)
    with pytest.raises(Refused, match="not the one that was opened before"):
        bare.round()


def without(answers: RoundAnswers) -> RoundAnswers:
    return attrs.evolve(answers, lookups=tuple(look for look in answers.lookups if look.question != SETTLED))


@pytest.mark.parametrize("lie", [np.nan, 2.0**21, 2.0**40, -(2.0**62), 1e300, "fewer"])
def test_published_centres_that_no_lattice_holds_are_refused(published: Transcript, lie: Any) -> None:
    def lied(look: Lookup) -> Lookup:
        if look.question != SETTLED:
            return look
        return attrs.evolve(look, values=look.values[:-1] if lie == "fewer" else np.full_like(look.values, lie))

    closed = tuple(attrs.evolve(a, lookups=tuple(map(lied, a.lookups))) for a in published.closed)
    with pytest.raises(Refused, match="points on the lattice"):
        attrs.evolve(published, closed=closed).round()
