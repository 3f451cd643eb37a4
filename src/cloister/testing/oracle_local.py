"""Checks of what one person sends: her report alone hides her row.

Her report is absorbed and decoded as if nobody else had answered; whatever the decoder shows is a function of it. The largest
ratio of probabilities among events of that is a lower bound of the report's true epsilon, exact by Clopper and Pearson.
With randomised response this tells epsilon from 1.3 epsilon; exact enumeration, where a report has few values, tells more.
Events are chosen on a few samples and judged on the others. Noise is secret: seeded words would be slower to draw.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations, permutations
from typing import Any

import numpy as np

from cloister.core.lattice import Bound
from cloister.core.questions import Placed
from cloister.core.randomness import NoiseRng
from cloister.core.types import Floats, Ints
from cloister.testing.checks import require
from cloister.testing.happenings import HalfSpace, Happening, Outcome
from cloister.testing.oracle_events import spent
from cloister.testing.probes import Probe, Shape, budget_of, worst_vectors
from cloister.testing.roles import role_of
from cloister.testing.statistics import proportion

PILOT, PEOPLE = 300, 4000
"""Reports per possible row that events are chosen by, and that they are judged on."""

EPSILON = 2.0
"""Of the reports that are judged: with randomised response, ten in a hundred then say the other thing, which is enough of both."""

COMPARISONS = 2048
"""More than the events that are judged."""


def one_report_hides_its_row(oracle: Any) -> None:
    """No event of a person's report is more probable for one row than e^epsilon times what it is for another, 'in no bucket'
    included."""
    for probe, rows in _people(oracle):
        paid = spent(probe.channel.events).epsilon
        seen = [_reports(probe, row) for row in rows]
        for happening in _happenings([some[:PILOT] for some in seen]):
            chances = [proportion(int(happening.holds(some[PILOT:]).sum()), PEOPLE, COMPARISONS) for some in seen]
            for (low, _), (_, high) in permutations(chances, 2):
                require(
                    low <= math.exp(paid) * high,
                    f"{probe.shape}, epsilon {paid:.4g}: {happening.name} has a probability of at least {low:.4g} for one row and at most "
                    f"{high:.4g} for another, so epsilon is at least {math.log(max(low, 1e-300) / high):.4g}",
                )


def _people(oracle: Any) -> Iterator[tuple[Probe, list[Ints | Placed]]]:
    """Channels for one person each, with rows she can have."""
    for sizes in ((3,), (1, 2)):
        ids = [[0] * len(sizes), [size - 1 for size in sizes], [-1] * len(sizes)]
        buckets = [np.array([row], np.int64) for row in ids]
        if role_of(oracle) == "FrequencyOracle":
            yield Probe.of(oracle, Shape(sizes), budget_of("pure", EPSILON), rows=1), list[Ints | Placed](buckets)
            continue
        bound = Bound(1000, 2)
        vectors = [v[None] for v in worst_vectors(bound)] + [np.zeros((1, 2), np.int64)]
        rows = [Placed(b, v) for b in buckets[:2] for v in (*vectors, -vectors[0])]
        yield (
            Probe.of(oracle, Shape(sizes, bound), budget_of("pure", EPSILON), rows=1),
            [*rows, Placed(buckets[2], vectors[0])],
        )


def _reports(probe: Probe, row: Ints | Placed) -> Floats:
    """What many people with this row send, as the decoder shows it: (PILOT + PEOPLE, numbers)."""
    rng = NoiseRng.secret()
    sent = (probe.values(probe.table(probe.summary(row, rng), rng)).ravel() for _ in range(PILOT + PEOPLE))
    return np.stack(list(sent))


def _happenings(pilots: list[Floats]) -> Iterator[Happening]:
    """Single outcomes, if they are few; numbers, and differences along which two rows' reports differ, beyond thresholds."""
    seen = np.concatenate(pilots)
    outcomes, counts = np.unique(seen, axis=0, return_counts=True)
    for outcome in outcomes[np.argsort(-counts)][:32]:
        yield Outcome(f"the outcome {outcome}", outcome)
    means = np.stack([some.mean(axis=0) for some in pilots])
    between = [
        (f"along the way from row {i} to row {j}", means[j] - means[i]) for i, j in combinations(range(len(means)), 2)
    ]
    alone = [(f"number {j}", axis) for j, axis in enumerate(np.eye(seen.shape[1]))]
    for name, direction in (*between, *alone):
        for t in np.unique(np.quantile(seen @ direction, (0.02, 0.1, 0.25, 0.5, 0.75, 0.9, 0.98))):
            yield HalfSpace(f"{name}, at least {t:.4g}", direction, float(t))
            yield HalfSpace(f"{name}, below {t:.4g}", direction, float(t), turned=True)


LOCAL = (one_report_hides_its_row,)
"""For Local oracles with pure privacy."""
