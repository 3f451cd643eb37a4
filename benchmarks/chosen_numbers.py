"""What 1% of liars do who choose their user numbers by what these are asked, and whether the server sees it:
docs/explanation/numbers.md.

    python benchmarks/chosen_numbers.py

Honest people have numbers that were given out at random, and answer as their rows are. Liars say without noise that
they are in cells that they share out among them; in turn with numbers at random, and with numbers that are all asked
for counts. The server's test is left out of the way for the cost, and asked for what it would have said.
"""

from __future__ import annotations

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from cloister.collection.client.encoder import PlanEncoder
from cloister.collection.plan.plan import CollectionPlan
from cloister.collection.plan.publish import publish
from cloister.collection.server.aggregator import decode
from cloister.collection.wire.answers import layout_of
from cloister.collection.wire.batches import form_of
from cloister.core.types import Bools, Floats, Ids
from cloister.lab.papers.mixtures import mixture
from cloister.metrics import nicv
from cloister.run.request import Request

D, K, R, LIARS = 10, 8, 100.0, 0.01
CASES = ((10_000, 4.0), (100_000, 1.0), (100_000, 4.0))
"""People, epsilon."""
CELLS = (1, 2, 4, 8)
"""Over how many cells liars are shared out: the worst counts."""


def planned(people: int, epsilon: float, seed: int) -> CollectionPlan:
    request = Request(k=K, method="one-round", epsilon=epsilon, bounds="ball:1", rows=4 * people, seed=seed)
    return publish(request, dimension=D)


def counted(encoder: PlanEncoder, users: Ids) -> Bools:
    """Whose numbers (n,) are asked for counts."""
    asked = layout_of(encoder.round).asked_masks(users)
    found: Bools = np.logical_or.reduce(
        [who for who, p in zip(asked, encoder.round.parts, strict=True) if p.vectors is None]
    )
    return found


def with_lies(encoder: PlanEncoder, rows: Floats, users: Ids, liars: Ids, cells: int) -> Iterator[Any]:
    """Everybody's reports: to questions for counts, liars say what speaks for their cells."""
    made = encoder.encode(rows, users)
    for part, report in zip(encoder.round.parts, made.reports, strict=True):
        where = np.flatnonzero(np.isin(report.users, liars))
        if part.vectors is None and len(where):
            (level,) = part.channel.asked.levels
            ids = np.random.default_rng(5).permutation(part.cells.space.sizes[0])[:cells]
            mine = ids[np.arange(len(where)) % cells].astype(np.int64)
            report.answers[where, 0] = level.hashes.of(report.users[where], mine)
        yield report


def cost(
    plan: CollectionPlan, encoder: PlanEncoder, rows: Floats, users: Ids, liars: Ids, cells: int
) -> tuple[float, list[str]]:
    """Cost of the honest rows, and what the server doubts."""
    honest = ~np.isin(users, liars)
    reports = tuple(with_lies(encoder, rows, users, liars, cells))
    with tempfile.TemporaryDirectory() as folder:
        path, layout, them = Path(folder) / "part.reports", layout_of(encoder.round), np.sort(users)
        answers = layout.empty(len(them))
        for j, report in enumerate(reports):
            packed = layout.bodies[j].kind.body.pack(report.columns())
            layout.put(answers, j, np.searchsorted(them, report.users), packed)
        path.write_bytes(b"".join(form_of(plan.hash, encoder.round).batches(them, answers)))
        done = decode(plan, path, accept_shares=True)
    return nicv(rows[honest], done.result.centers), done.intake.doubts


def numbered(encoder: PlanEncoder, people: int, chosen: bool, g: np.random.Generator) -> tuple[Ids, Ids]:
    """Numbers of all people, and of the liars among them."""
    numbers, few = g.permutation(encoder.plan.rows).astype(np.uint64), int(people * LIARS)
    honest, free = numbers[few:people], np.concatenate([numbers[:few], numbers[people:]])
    liars = (free[counted(encoder, free)] if chosen else free)[:few]
    return np.concatenate([liars, honest]), liars


def main() -> None:
    print(
        "| people | eps | share asked for counts | cost, all honest | liars, numbers at random | liars, numbers all "
        "asked for counts | the server |"
    )
    print("|---|---|---|---|---|---|---|")
    for people, epsilon in CASES:
        found = list[list[float]]()
        seen, shares = 0, list[float]()
        for seed in range(5):
            plan, g = planned(people, epsilon, seed), np.random.default_rng(seed)
            encoder, rows = PlanEncoder(plan), mixture(people, K, D, R, seed)[0]
            shares.append(sum(p.fraction for p in encoder.round.parts if p.vectors is None))
            costs = list[float]()
            for chosen in (None, False, True):
                users, liars = numbered(encoder, people, bool(chosen), g)
                lies = [(liars[:0], 1)] if chosen is None else [(liars, cells) for cells in CELLS]
                ends = [cost(plan, encoder, rows, users, *lie) for lie in lies]
                costs.append(max(end for end, _ in ends))
                seen += bool(chosen) and all(doubted for _, doubted in ends)
                if not chosen:
                    assert not any(doubted for _, doubted in ends)
            found.append(costs)
        mean, spread = np.mean(found, axis=0), np.std(found, axis=0)
        ends = " | ".join(f"{m:.4f} +- {s:.4f}" for m, s in zip(mean, spread, strict=True))
        print(f"| {people:,} | {epsilon:g} | {np.mean(shares):.1%} | {ends} | refuses {seen} of 5 |", flush=True)


if __name__ == "__main__":
    main()
