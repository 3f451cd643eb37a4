"""``--robust``: what a share of liars can invent does not count, and what they cannot stays as it is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest
from scipy.stats import binom

from cloister.collection.plan.plan import CollectionPlan
from cloister.collection.server.aggregator import decode
from cloister.collection.server.robust import CHANCE, LimitedCounts, LimitedSums, RobustDecoding, noise
from cloister.collection.wire.answers import layout_of
from cloister.collection.wire.batches import form_of
from cloister.core.budget import Budget, Event
from cloister.core.encoding import absorb, encode_rows
from cloister.core.errors import InvalidInput, Refused
from cloister.core.questions import OpenedQuestion
from cloister.core.randomness import NoiseRng
from cloister.core.reports import Gain, ReportFacts
from cloister.noise.channel import LookupTable
from tests.collection.liars import pulling, supporting
from tests.collection.plan.test_liars import COUNTS
from tests.collection.plans import local_plan
from tests.in_process import cloister

N, M, K = 20_000, 400, 4
NOISE = NoiseRng.for_tests(0)
GROUPS, TARGET = np.array([[-0.625, -0.625], [0.625, -0.625], [-0.625, 0.625]]), np.array([0.69, 0.69])
EVERYBODY, LIARS = np.arange(N, dtype=np.uint64), np.arange(N, N + M, dtype=np.uint64)


def planned(oracle: str = "optimised-local-hashing", epsilon: float = 3.0) -> CollectionPlan:
    return local_plan(2, k=K, epsilon=epsilon, bounds="-1:1", rows=N + M, seed=2, components={"counts": oracle})


def reported(plan: CollectionPlan) -> tuple[OpenedQuestion, int, Any, Any]:
    """The only question, the bucket that liars speak for, and reports of the honest and of the liars."""
    g = np.random.default_rng(1)
    rows = GROUPS[g.integers(0, 3, N)] + g.normal(0, 0.06, (N, 2))
    (part,) = plan.round().parts
    bucket = int(part.cells.locate(plan.domain.snap(TARGET[None]))[0, 0])
    return part, bucket, encode_rows(plan.round(), rows, EVERYBODY, NOISE)[0], supporting(part, LIARS, bucket)


@pytest.mark.parametrize("oracle", COUNTS)
@pytest.mark.parametrize("epsilon", [0.5, 3.0])
def test_noise_lifts_a_bucket_of_liars_alone_above_the_limit_with_its_chance_at_most(oracle, epsilon):
    """Exactly, by the binomial tail: honest supports that are needed beside those of all the liars."""
    (part,) = planned(oracle, epsilon).round().parts
    (gain,) = part.channel.gains
    for reports in (30, 1_000, 100_000):
        q, above = gain.chance, noise(gain, reports)
        for lies in (0, reports // 100, reports // 10):
            supports = reports * q + (above + lies * gain.most) / (gain.most + gain.least) - lies
            assert binom.sf(np.floor(supports), reports - lies, q) <= CHANCE
        assert binom.sf(reports * q + 0.5 * above / (gain.most + gain.least), reports, q) > CHANCE or reports < 100


@pytest.mark.parametrize("oracle", COUNTS)
def test_a_bucket_of_liars_alone_reads_as_if_they_had_not_come_and_others_as_they_are(oracle):
    """Others: those that liars cannot have invented."""
    plan = planned(oracle)
    part, bucket, honest, lies = reported(plan)
    before = part.channel.absorb(honest)
    after = before.merge(part.channel.absorb(lies))
    every, plain = np.arange(part.cells.space.sizes[0]), part.channel.decode(after, NOISE)
    honestly = part.channel.decode(before, NOISE).at(every)
    values, (gain,) = plain.at(every), part.channel.gains
    (table,) = RobustDecoding(M / (N + M), K)(plan.round(), (after,), (plain,))
    assert values[bucket] > honestly[bucket] + 0.9 * M
    assert table.at(every)[bucket] == pytest.approx(honestly[bucket])
    (table,) = RobustDecoding(0.01, K)(plan.round(), (after,), (plain,))
    harm = 0.01 * (N + M) * gain.most
    above = values > harm + noise(gain, N + M)
    assert 3 < above.sum() < len(every) / 2
    assert np.array_equal(table.at(every)[above], values[above])
    assert np.allclose(table.at(every)[~above], values[~above] - harm)


def test_liars_place_a_centre_where_they_like_and_not_where_they_are_withstood(tmp_path: Path):
    """2% of liars; robust, the fourth centre lies in one of the three groups."""
    plan = planned()
    plan.write(tmp_path / "plan", "")
    _, _, honest, lies = reported(plan)
    both = attrs.evolve(
        honest,
        users=np.concatenate([honest.users, lies.users]),
        answers=np.concatenate([honest.answers, lies.answers]),
    )
    layout = layout_of(plan.round())
    answers = layout.empty(N + M)
    layout.put(answers, 0, np.arange(N + M), layout.bodies[0].kind.body.pack(both.columns()))
    form = form_of(plan.hash, plan.round())
    (tmp_path / "lied.reports").write_bytes(b"".join(form.batches(both.users, answers)))
    plain = decode(plan, tmp_path / "lied.reports").result.centers
    assert np.linalg.norm(plain - TARGET, axis=1).min() < 0.3
    done = cloister("decode", "plan", "lied.reports", "--robust", "0.02", "--json", folder=tmp_path)
    assert "assumed 0.02 of the reports malicious, and left out what they can fabricate" in done.stderr
    found = json.loads(done.stdout)
    centers, reports = np.array(found["centers"]), found["details"]["reports"]
    assert np.linalg.norm(centers - TARGET, axis=1).min() > 0.5
    near = np.linalg.norm(centers[:, None] - GROUPS[None], axis=2)
    assert near.min(axis=1).max() < 0.3
    assert near.min(axis=0).max() < 0.2
    assert (reports["withstands"], "doubts" in reports) == (0.02, True)  # three buckets are sure, of four centres


def test_a_share_that_can_invent_a_whole_group_is_refused_before_a_report_is_read(tmp_path: Path):
    """And any share, where nothing bounds what a liar can do."""
    with pytest.raises(InvalidInput, match="as much as one of 4 equal groups: 'optimised-local-hashing' withst"):
        decode(planned(epsilon=0.5), tmp_path / "nowhere", robust=0.1)
    with pytest.raises(InvalidInput, match="the influence of one report on 'split-and-mix-counts' is unbounded"):
        decode(local_plan(5, trust="shuffled", delta=1e-6), tmp_path / "nowhere", robust=0.01)


def looked_up(*values: float) -> LookupTable:
    return LookupTable(lambda ids, level: np.array(values)[ids], [0.0])


def read(k: int, *values: float) -> tuple[LimitedCounts, list[float], RobustDecoding]:
    """Counts of which liars can invent 30 (b) and noise 20 (B), as they are read, and a reading of these alone."""
    counts, reading = LimitedCounts(looked_up(*values), [30.0], [20.0]), RobustDecoding(0.1, k)
    reading._counted.append(counts)
    return counts, counts.at(np.arange(len(values))).tolist(), reading


def test_what_liars_and_noise_can_make_is_no_more_than_that_and_does_not_count():
    """A bucket of 50 may be theirs to the last, one of 50.5 holds somebody."""
    counts, found, _ = read(3, 20.0, 50.0, 50.5, 300.0)
    assert found == [-10.0, 20.0, 50.5, 300.0]
    assert counts.above == {(0, 2), (0, 3)}


def test_buckets_that_may_be_liars_count_for_no_centre():
    """Two buckets hold more than liars can invent, two do not; there are three centres, and it is said."""
    for k, said in (
        (3, ["only 2 buckets hold more people than 0.1 of the reports can fabricate, for 3 centres"]),
        (2, []),
    ):
        assert [doubt.split(": ")[0] for doubt in read(k, 300.0, 400.0, 49.0, 31.0)[2].doubts()] == said
    with pytest.raises(
        Refused, match=r"no bucket holds more people than 0\.1 of the reports can fabricate: nothing was rel"
    ):
        read(2, 49.0, 50.0)[2].doubts()


def test_sums_are_limited_by_people_without_the_liars_among_them():
    """40 reports of which 30 may be lies are 10 people: a sum of 10 bounds of 2, no noise. What is longer than all
    reports and chance can make it was pulled, and it is said."""
    sums = LookupTable(lambda ids, level: np.array([[60.0, 0.0], [0.0, 500.0], [0.0, 1000.0]])[ids], [0.0])
    counts, _, reading = read(2, 40.0, 300.0, 300.0)
    table = LimitedSums(sums, counts, looked_up(40.0, 300.0, 300.0), 2.0, 1.0)
    assert table.at(np.arange(2)).tolist() == [[20.0, 0.0], [0.0, 500.0]]
    assert not table.pulled
    assert table.at(np.arange(3))[2].tolist() == [0.0, 600.0]
    reading._summed.append(table)
    (doubt,) = reading.doubts()
    assert doubt.startswith("the sums of 1 buckets are longer than their people and noise can make them")


def test_sums_that_somebody_pulls_are_said_to_be_and_limited_by_the_round_s_counts():
    """30,000 people in three groups, whose sums nobody doubts; 2,000 liars who pull that of a bucket with nobody in it,
    3 bounds each, are seen."""
    plan = local_plan(4, epsilon=4.0, rows=32_000, seed=2, options={"partitions": "1"})
    round, users = plan.round(), np.arange(32_000, dtype=np.uint64)
    honest = absorb(round, encode_rows(round, 0.9 * np.eye(4)[users[:30_000] % 3], users[:30_000], NOISE))
    (at,) = (j for j, part in enumerate(round.parts) if part.vectors is not None)
    part, to = round.parts[at], np.full(4, -0.5)
    bucket, every = int(part.cells.locate(plan.domain.snap(to[None]))[0, 0]), np.arange(part.cells.space.sizes[0])
    lies = part.channel.absorb(pulling(part, users[30_000:], bucket, to))
    for summary, said in ((honest[at], []), (honest[at].merge(lies), ["the sums of 1 buckets are longer"])):
        summaries, reading = [*honest[:at], summary, *honest[at + 1 :]], RobustDecoding(0.001, 3)
        tables = [one.channel.decode(sent, NOISE) for one, sent in zip(round.parts, summaries, strict=True)]
        found = [table.at(every) for table in reading(round, summaries, tables)]
        assert [doubt.split(" than")[0] for doubt in reading.doubts() if "longer" in doubt] == said
    assert np.linalg.norm(found[at][bucket]) < 0.5 * np.linalg.norm(tables[at].at(every)[bucket])


@attrs.frozen
class Bounded(ReportFacts):
    """A channel that says what a liar can do, and nothing else."""

    gains: tuple[Gain, ...]
    events: tuple[Event, ...]


def test_a_share_that_can_invent_just_a_whole_group_is_refused():
    """Of a report that adds two people, for four groups: an eighth of the reports are a quarter of the people."""
    channel = Bounded((Gain(2.0, 1.0, 1.0, 1),), (Event("two-for-one", Budget("pure", 1.0), 1),))
    round = planned().round()
    (part,) = round.parts
    round = attrs.evolve(round, parts=(attrs.evolve(part, channel=channel),))
    RobustDecoding(0.1249, 4).check(round)
    with pytest.raises(InvalidInput, match="as much as one of 4 equal groups"):
        RobustDecoding(0.125, 4).check(round)
