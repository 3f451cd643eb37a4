"""What people who lie do to the centres, by block, and what withstanding them costs: docs/explanation/liars.md.

    python benchmarks/liars.py counts        two columns, a grid of counts: five count oracles
    python benchmarks/liars.py vectors       10 and 100 columns, spread cells: three randomisers; one-byte beside
                                             hadamard-response
    python benchmarks/liars.py tables        the tables, from the file of finished runs

Honest reports are drawn by the real encoders; liars come beside them, so that 1% lie where n / 99 come to n. Their
numbers are given out blindly, so that each answers what her number asks. *Input* liars follow the protocol with a row
of their choice. *Output* liars know the public coins of their numbers, and all of the honest groups, and send without
noise what does the most harm: for counts, what supports the most of the target's cells; for vectors, what is longest
in the direction they want, signed for the cell they want. The target is the point of a hundred drawn ones that is
farthest from all groups.

* invent: all speak for the target's cell (or its four cells: the worse counts), vectors point to it.
* drag: counts as for invent; vectors of each pull one of the groups, drawn for each liar, to the other side.

Cost is cost / n of the honest rows. *placed*: a centre within a quarter of the least distance between the target and a
group.
"""

from __future__ import annotations

import argparse
import json
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import attrs
import numpy as np

from cloister.collection.server.robust import RobustDecoding
from cloister.core.encoding import absorb, encode_rows, merge_summaries
from cloister.core.errors import CloisterError
from cloister.core.questions import OpenedQuestion, Round
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.core.registry.making import drafted
from cloister.core.session import Session
from cloister.core.types import AnyArray, Floats, Ids, Ints
from cloister.lab.papers.mixtures import mixture
from cloister.metrics import nicv
from cloister.plugins.oracles.local.coins import WORDS
from cloister.plugins.oracles.local.counts.adaptive_response import Direct
from cloister.plugins.oracles.local.counts.hadamard_response import Signed
from cloister.plugins.oracles.local.counts.subset_selection import Subset
from cloister.plugins.oracles.local.hadamard_transform import parity
from cloister.plugins.oracles.local.hashing import Hashed
from cloister.plugins.oracles.local.packed_sets import packed
from cloister.plugins.oracles.local.reports import Reports
from cloister.plugins.oracles.local.vectors.codebook import Codebook
from cloister.plugins.oracles.local.vectors.unit_randomiser import lifted, sent
from cloister.run.request import PreparedRun, Request, prepare

K, SHARES, EPSILONS = 8, (0.001, 0.01, 0.05), (0.5, 1.0, 2.0)
COUNTS = ("optimised-local-hashing", "hadamard-response", "subset-selection", "optimised-unary", "adaptive-response")
VECTORS = ("one-byte", "privunit", "duchi")
PIECE = 2**15


@attrs.frozen
class Case:
    """A plan and its people. Args: n, d, eps, block (oracle of counts, or randomiser of vectors), seed, options."""

    n: int
    d: int
    eps: float
    block: str
    seed: int
    options: tuple[tuple[str, Any], ...] = ()

    @property
    def key(self) -> str:
        return json.dumps(attrs.asdict(self), sort_keys=True)

    def prepared(self) -> PreparedRun:
        counts = {"counts": self.block} if self.block in COUNTS else {}
        vectors = {"sums.randomiser": self.block} if self.block in VECTORS else {}
        request = Request(
            k=K,
            method=drafted("one-round", counts, {**vectors, **dict(self.options)}),
            epsilon=self.eps,
            bounds="ball:1",
            rows=self.n,
            seed=self.seed,
            zoom="off",
            scale="none",
        )
        return prepare(request, [str(j) for j in range(self.d)])


@attrs.frozen
class Told:
    """A population whose summaries are there already."""

    summaries: tuple[Any, ...]

    def gather(self, round: Round[Any], rng: NoiseRng) -> tuple[Any, ...]:
        return self.summaries


@attrs.define
class World:
    """The honest people of a case, and the target of the liars."""

    case: Case
    plan: PreparedRun
    key: PublicRng
    round: Round[Any]
    rows: Floats
    centers: Floats
    target: Floats
    honest: tuple[Any, ...]

    @classmethod
    def of(cls, case: Case) -> World:
        plan, key = case.prepared(), PublicRng.from_seed(case.seed)
        (round,) = plan.forecast(key)
        rows, centers = mixture(case.n, K, case.d, 0 if case.d == 2 else 20.0, case.seed)
        g = np.random.default_rng([case.seed, 9])
        drawn = g.normal(size=(100, case.d))
        drawn *= 0.9 * g.uniform(0, 1, (100, 1)) ** (1 / case.d) / np.linalg.norm(drawn, axis=1, keepdims=True)
        if case.d == 2:
            drawn = g.uniform(-0.65, 0.65, (100, 2))
        target = drawn[np.argmax(distances(drawn, centers).min(axis=1))]
        world = cls(case, plan, key, round, rows, centers, target, ())
        world.honest = world.summed(rows, np.arange(case.n, dtype=np.uint64))
        return world

    def summed(self, rows: Floats, users: Ids) -> tuple[Any, ...]:
        """Summaries of people who follow the protocol."""
        noise = NoiseRng.for_tests(self.case.seed)
        total = absorb(self.round, encode_rows(self.round, rows[:1], users[:0], noise)) if not len(users) else None
        for start in range(0, len(users), PIECE):
            some = slice(start, start + PIECE)
            part = absorb(self.round, encode_rows(self.round, rows[some], users[some], noise))
            total = part if total is None else merge_summaries(total, part)
        assert total is not None
        return total

    def liars(self, share: float) -> Ids:
        return np.arange(round(self.case.n * share / (1 - share)), dtype=np.uint64) + np.uint64(self.case.n)

    def found(self, summaries: tuple[Any, ...], share: float = 0.0) -> tuple[float, bool, bool]:
        """Cost of the honest rows (inf if the share cannot be withstood), whether a centre is at the target, and
        whether too few buckets count."""
        reading = RobustDecoding(share, K) if share else None
        session: Session[Any] = Session(self.plan.problem, self.key, Told(summaries), reading=reading)
        try:
            done = self.plan.composed.value.cluster(self.plan.problem, session, self.key.child("method"))
            doubted = reading is not None and any(said.startswith("only") for said in reading.doubts())
        except CloisterError:
            return math.inf, False, False
        near = 0.25 * float(distances(self.target[None], self.centers).min())
        placed = bool(distances(self.target[None], done.centers).min() < near)
        return float(nicv(self.rows, done.centers)), placed, doubted

    def cells(self, part: OpenedQuestion, points: Floats) -> Ints:
        return part.cells.locate(self.plan.problem.domain.snap(points))[:, 0]

    def lies(self, users: Ids, how: str, many: int) -> tuple[Any, ...]:
        """Summaries of liars. Args: how (invent or drag), many (cells that counts speak for)."""
        reports = list[Reports]()
        for part in self.round.parts:
            asked = part.channel.asked
            mine = users if part.user_share is None else users[part.user_share.holds(users)]
            if part.vectors is None:
                around = self.target + 0.06 * np.array(
                    [np.zeros(self.case.d), *np.random.default_rng(1).normal(size=(40, self.case.d))]
                )
                targets = np.array(list(dict.fromkeys(self.cells(part, around).tolist()))[:many])
                answers = supporting(asked.levels[0], mine, targets)
            else:
                answers = self._pulling(part, mine, how)
            reports.append(Reports(mine, answers, asked.stamp))
        return absorb(self.round, tuple(reports))

    def _pulling(self, part: OpenedQuestion, users: Ids, how: str) -> AnyArray:
        asked, g = part.channel.asked, np.random.default_rng(2)
        to = np.broadcast_to(self.target, (len(users), self.case.d))
        cells = np.broadcast_to(self.cells(part, self.target[None]), len(users))
        if how == "drag":
            whom = g.integers(0, K, len(users))
            to, cells = -self.centers[whom], self.cells(part, self.centers)[whom]
        to = to / np.linalg.norm(to, axis=1, keepdims=True)
        signs = asked.signs(cells, users, 0)
        if not isinstance(asked.randomiser, Codebook):
            return np.concatenate(
                [sent((to[s] * signs[s, None]).T * np.sqrt(self.case.d)) for s in pieces(len(users))] or [to[:0]]
            )
        nearest = attrs.evolve(
            asked.randomiser, inside=1, near=WORDS - (2 * asked.randomiser.size - 1), far=1
        )  # the codeword that is nearest to a vector, but once in 2^56 times
        found = list[AnyArray]()
        for s in pieces(len(users)):
            values = np.rint(to[s] * asked.l2).astype(np.int64)
            units = lifted(values, signs[s], asked.l2, np.zeros(len(values), bool))
            words = np.zeros((len(values), 1), np.uint64)
            found.append(nearest.randomise(units, users[s], lambda who, go, w=words: w, asked.seeds[0]))
        return np.concatenate(found)


def pieces(n: int) -> Iterator[slice]:
    return (slice(start, start + PIECE) for start in range(0, n, PIECE))


def supporting(level: Any, users: Ids, targets: Ints) -> AnyArray:
    """Answers (n, width) that support as many of the targets (m,) as one can, and look usual otherwise."""
    n, g = len(users), np.random.default_rng(3)
    if isinstance(level, (Hashed, Signed)):
        if isinstance(level, Hashed):
            values = np.stack([level.hashes.of(users, np.full(n, v)) for v in targets], axis=1)
        else:
            values = np.stack([parity((level.rows(users) & v).astype(np.uint64)) for v in targets], axis=1)
        symbols = level.response.symbols
        votes = np.stack([(values == y).sum(axis=1) for y in range(symbols)], axis=1)
        return votes.argmax(axis=1).astype(level.dtype)[:, None]
    if isinstance(level, Direct):
        return targets[np.arange(n) % len(targets)].astype(level.dtype)[:, None]
    size = level.size + isinstance(level, Subset)
    ranks = g.random((n, size))
    ranks[:, targets] = -1
    usual = level.chosen if isinstance(level, Subset) else round(level.size * level.chances.q + 0.5)
    chosen = np.zeros((n, size), bool)
    np.put_along_axis(chosen, np.argpartition(ranks, usual - 1, axis=1)[:, :usual], True, axis=1)
    return packed(chosen)


def distances(points: Floats, others: Floats) -> Floats:
    return np.linalg.norm(points[:, None] - others[None], axis=2)


def run(case: Case) -> dict[str, Any]:
    """Costs, by what is done: nobody lies, input, output; each read as it is, and withstanding that share."""
    world = World.of(case)
    done: dict[str, Any] = {"best": float(nicv(world.rows, world.centers)), "nobody": world.found(world.honest)}
    for share in SHARES:
        users = world.liars(share)
        done[f"nobody robust {share}"] = world.found(world.honest, share)
        lied = world.summed(np.broadcast_to(world.target, (len(users), case.d)), users)
        whole = merge_summaries(world.honest, lied)
        done[f"input {share}"], done[f"input robust {share}"] = world.found(whole), world.found(whole, share)
        worst, withstood = list[tuple[float, bool, bool]](), list[tuple[float, bool, bool]]()
        for how in ("invent",) if case.d == 2 else ("invent", "drag"):
            for many in (1, 4):
                whole = merge_summaries(world.honest, world.lies(users, how, many))
                worst.append(world.found(whole))
                withstood.append(world.found(whole, share))
        for name, ends in (("output", worst), ("output robust", withstood)):
            costs, placed, doubted = zip(*ends, strict=True)
            done[f"{name} {share}"] = max(costs), any(placed), any(doubted)
    return done


def cases(which: str) -> Iterator[Case]:
    if which == "counts":
        for seed in range(3):
            for eps in EPSILONS:
                yield from (Case(200_000, 2, eps, block, seed) for block in COUNTS)
                yield from (Case(200_000, 2, eps, block, seed, (("grid.side", 8),)) for block in COUNTS[:2])
    else:
        for seed in range(2):
            for d, n in ((10, 300_000), (100, 500_000)):
                yield from (Case(n, d, eps, block, seed) for eps in EPSILONS for block in VECTORS)
            yield from (Case(1_000_000, 10, eps, block, seed) for eps in EPSILONS for block in (VECTORS[0], COUNTS[1]))
            yield from (Case(300_000, 10, eps, COUNTS[1], seed) for eps in EPSILONS)


def table(results: dict[str, dict[str, Any]]) -> None:
    found = dict[tuple[Any, ...], list[dict[str, Any]]]()
    for key, one in results.items():
        case = json.loads(key)
        found.setdefault((case["d"], case["n"], case["eps"], case["block"], str(case["options"])), []).append(one)
    each = [f"{s:.1%}" for s in SHARES]
    for name in ("input", "output", "nobody robust", "output robust"):
        print(f"\n{name}\n\n| d | n | eps | block | nobody lies | {' | '.join(each)} |\n|" + "---|" * (5 + len(each)))
        for (d, n, eps, block, options), ones in sorted(found.items()):
            rows = [ending([one[f"{name} {s}"] for one in ones], name) for s in SHARES]
            nobody = ending([one["nobody"] for one in ones], "nobody")
            print(
                f"| {d} | {n:,} | {eps:g} | {block}{', 8 x 8 cells' * ('side' in options)} | {nobody} | "
                f"{' | '.join(rows)} |"
            )


def ending(ends: list[tuple[float, bool, bool]], name: str) -> str:
    """Mean cost; in how many runs a centre was placed; * for every run with a warning of too few buckets."""
    costs, placed, doubted = zip(*ends, strict=True)
    if not math.isfinite(sum(costs)):
        return "refused"
    return f"{np.mean(costs):.4f}{f' ({sum(placed)}/{len(ends)})' if 'put' in name else ''}{'*' * sum(doubted)}"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=("counts", "vectors", "tables"))
    parser.add_argument("--file", type=Path, default=Path("liars.jsonl"))
    given = parser.parse_args()
    lines = given.file.read_text().splitlines() if given.file.exists() else []
    results = {key: one for line in lines for key, one in json.loads(line).items()}
    for case in [] if given.what == "tables" else cases(given.what):
        if case.key not in results:
            results[case.key] = run(case)
            with given.file.open("a") as file:
                file.write(json.dumps({case.key: results[case.key]}) + "\n")
            print(case.key, flush=True)
    table(results)


if __name__ == "__main__":
    main()
