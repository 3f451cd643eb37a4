"""``--robust``: what a share of liars can invent does not count, and what they cannot stays as it is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest
from scipy.stats import binom

from cloister.collection.client.encoder import PlanEncoder
from cloister.collection.plan.plan import CollectionPlan
from cloister.collection.plan.publish import publish
from cloister.collection.plan.transcript import Transcript
from cloister.collection.server.aggregator import advance, decode, result_of
from cloister.collection.server.robust import CHANCE, LimitedCounts, LimitedSums, Withstanding, noise
from cloister.core.buckets import Space
from cloister.core.budget import Budget, Event
from cloister.core.encoding import absorb, encode_rows
from cloister.core.errors import InvalidInput, Refused
from cloister.core.questions import OpenedQuestion
from cloister.core.randomness import NoiseRng
from cloister.core.reports import Gain, ReportFacts
from cloister.noise.channel import LookupTable
from cloister.plugins.oracles.local.reports import Reports
from cloister.run.request import Request
from tests.collection.liars import pulling, supporting
from tests.collection.plan.test_liars import COUNTS
from tests.collection.server.collected import of_reports, written
from tests.in_process import cloister

N, M, K = 20_000, 400, 4
NOISE = NoiseRng.for_tests(0)
GROUPS, TARGET = np.array([[-0.625, -0.625], [0.625, -0.625], [-0.625, 0.625]]), np.array([0.69, 0.69])

EVERYBODY, LIARS = np.arange(N, dtype=np.uint64), np.arange(N, N + M, dtype=np.uint64)


def planned(
    oracle: str = "optimised-local-hashing", epsilon: float = 3.0, k: int = K, **changes: Any
) -> CollectionPlan:
    return publish(
        Request(
            k=k,
            method="one-round",
            epsilon=epsilon,
            bounds="-1:1",
            rows=N + M,
            seed=2,
            components={"counts": oracle},
            **changes,
        ),
        dimension=2,
    )


def rows() -> np.ndarray:
    g = np.random.default_rng(1)
    return GROUPS[g.integers(0, 3, N)] + g.normal(0, 0.06, (N, 2))


def whole(plan: CollectionPlan) -> tuple[Any, Any, Any, int]:
    """The only question; summaries of the honest, and of them and the liars; the bucket that these speak for."""
    (round,) = plan.rounds()
    (part,) = round.parts
    bucket = int(part.cells.locate(plan.domain.snap(TARGET[None]))[0, 0])
    before = part.channel.absorb(encode_rows(round, rows(), EVERYBODY, NOISE)[0])
    return part, before, before.merge(part.channel.absorb(supporting(part, LIARS, bucket))), bucket


@pytest.mark.parametrize("oracle", COUNTS)
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("reports", [30, 1_000, 100_000])
def test_noise_lifts_a_bucket_of_liars_alone_above_the_limit_with_its_chance_at_most(oracle, epsilon, reports):
    """Exactly, by the binomial tail: honest supports that are needed beside those of all the liars."""
    plan = planned(oracle, epsilon)
    ((gain,),) = (part.channel.gains for part in plan.rounds()[0].parts)
    above = noise(gain, reports)
    for lies in (0, reports // 100, reports // 10):
        q, honest = gain.chance, reports - lies
        supports = reports * q + (above + lies * gain.most) / (gain.most + gain.least) - lies
        assert binom.sf(np.floor(supports), honest, q) <= CHANCE
    assert binom.sf(reports * q + 0.5 * above / (gain.most + gain.least), reports, q) > CHANCE or reports < 100


@pytest.mark.parametrize("oracle", COUNTS)
def test_a_bucket_of_liars_alone_reads_as_if_they_had_not_come(oracle):
    plan = planned(oracle)
    part, before, after, bucket = whole(plan)
    at = np.array([bucket])
    honestly, lied = (part.channel.decode(summary, NOISE).at(at)[0] for summary in (before, after))
    (table,) = Withstanding(M / (N + M), K)(plan.rounds()[0], (after,), (part.channel.decode(after, NOISE),))
    assert lied > honestly + 0.9 * M
    assert table.at(at)[0] == pytest.approx(honestly)


@pytest.mark.parametrize("oracle", COUNTS)
def test_buckets_that_liars_cannot_have_invented_read_as_they_are(oracle):
    plan = planned(oracle)
    part, _, after, _ = whole(plan)
    plain, every = part.channel.decode(after, NOISE), np.arange(part.cells.space.sizes[0])
    (table,) = Withstanding(0.01, K)(plan.rounds()[0], (after,), (plain,))
    (gain,), values = part.channel.gains, plain.at(every)
    harm = 0.01 * (N + M) * gain.most
    above = values > harm + noise(gain, N + M)
    assert 3 < above.sum() < len(every) / 2
    assert np.array_equal(table.at(every)[above], values[above])
    assert np.allclose(table.at(every)[~above], values[~above] - harm)
    assert np.array_equal(table.standard_error(every), plain.standard_error(every))


def saved(folder: Path, plan: CollectionPlan) -> Path:
    """A folder of everybody's reports, the liars' among them."""
    round = plan.round()
    honest = PlanEncoder(plan, noise=NoiseRng.for_tests(5)).encode(rows(), EVERYBODY).reports[0]
    (part,) = round.parts
    bucket = int(part.cells.locate(plan.domain.snap(TARGET[None]))[0, 0])
    lies = supporting(part, LIARS, bucket)
    both = Reports(
        np.concatenate([honest.users, lies.users]), np.concatenate([honest.answers, lies.answers]), honest.question
    )
    folder.mkdir()
    of_reports(folder / "part.reports", round, plan.hash, [both], both.users)
    return folder


def away(centers: np.ndarray) -> float:
    return float(np.linalg.norm(centers - TARGET, axis=1).min())


def test_liars_place_a_centre_where_they_like_and_not_where_they_are_withstood(tmp_path: Path):
    """2% of liars; robust, the fourth centre lies in one of the three groups."""
    plan = planned()
    lied = saved(tmp_path / "lied", plan)
    assert away(decode(plan, lied).result.centers) < 0.3
    done = decode(plan, lied, robust=0.02)
    assert away(done.result.centers) > 0.5
    near = np.linalg.norm(done.result.centers[:, None] - GROUPS[None], axis=2)
    assert near.min(axis=1).max() < 0.3
    assert near.min(axis=0).max() < 0.2
    assert "read as if 0.02 of the reports lied: what these can invent is left out" in done.intake.lines()
    assert done.result.details["reports"]["withstands"] == 0.02
    assert done.intake.doubts == []


def test_too_few_buckets_for_the_centres_are_doubted(tmp_path: Path):
    """Each group lies around the corner of four cells: twelve count."""
    plan = planned(k=14)
    done = decode(plan, saved(tmp_path / "lied", plan), robust=0.02)
    (doubt,) = done.intake.doubts
    assert doubt.startswith("only 12 buckets hold more people than 0.02 of liars can invent, and there are 14 centres")
    assert done.result.details["reports"]["doubts"] == [doubt]


def test_where_nobody_stands_out_nothing_is_released(tmp_path: Path):
    plan = planned()
    with pytest.raises(Refused, match=r"no bucket holds more people than 0\.11 of liars can invent: nothing was rel"):
        decode(plan, saved(tmp_path / "lied", plan), robust=0.11)


@pytest.mark.parametrize("share", [0.0, -0.1, 1.0, float("nan")])
def test_a_share_is_between_none_and_all(share):
    with pytest.raises(InvalidInput, match="give one above 0 and below 1"):
        Withstanding(share, K)


def test_a_share_that_can_invent_a_whole_group_is_refused_before_a_report_is_read(tmp_path: Path):
    with pytest.raises(InvalidInput, match="as much as one of 4 equal groups: 'optimised-local-hashing' withst"):
        decode(planned(epsilon=0.5), tmp_path / "nowhere", robust=0.1)


def test_what_nothing_bounds_withstands_no_share(tmp_path: Path):
    plan = publish(
        Request(k=K, method="one-round", epsilon=1.0, delta=1e-6, bounds="ball:1", rows=N, seed=2, trust="shuffled"),
        dimension=5,
    )
    with pytest.raises(InvalidInput, match="nothing bounds what one liar can do to 'split-and-mix-counts'"):
        decode(plan, tmp_path / "nowhere", robust=0.01)


def test_sums_are_as_long_as_people_and_noise_can_make_them_and_shorter_ones_as_they_are():
    """Counts of 100, 5 and -3 people (none of them above a limit that is 0), vectors of norm at most 2, half of the
    users asked for sums, noise of 1 in 4 coordinates: limits 100 + 6, 5 + 6, and 2 + 6 for one person at least."""
    gain = Gain(1.0, 1.0, 1.0, 1)
    counts = LimitedCounts(LookupTable(lambda ids, level: np.array([100.0, 5.0, -3.0])[ids], [0.0]), [0.0], [0.0])
    given = np.array([[90.0, 30.0, 0.0, 0.0], [0.0, 40.0, 0.0, 0.0], [0.0, 0.0, 9.0, 0.0]])
    table = LimitedSums(LookupTable(lambda ids, level: given[ids], [1.0]), counts, counts, 2.0, 0.5)
    found = table.at(np.arange(3))
    assert np.array_equal(found[0], given[0])
    assert found[1] == pytest.approx([0.0, 11.0, 0.0, 0.0])
    assert found[2] == pytest.approx([0.0, 0.0, 8.0, 0.0])
    assert np.array_equal(table.standard_error(np.arange(3)), np.ones(3))
    assert noise(attrs.evolve(gain, factor=3.0), 100) == pytest.approx(3 * noise(gain, 100))


def looked_up(*values: float) -> LookupTable:
    return LookupTable(lambda ids, level: np.array(values)[ids], [0.0])


def test_what_liars_and_noise_can_make_is_no_more_than_that_and_does_not_count():
    """b = 30 and b + B = 50: a bucket of 50 may be theirs to the last, one of 50.5 holds somebody."""
    counts = LimitedCounts(looked_up(20.0, 50.0, 50.5, 300.0), [30.0], [20.0])
    assert counts.at(np.arange(4)).tolist() == [-10.0, 20.0, 50.5, 300.0]
    assert counts.above == {(0, 2), (0, 3)}


def test_buckets_that_may_be_liars_count_for_no_centre():
    """Two buckets hold more than liars can invent, two do not; there are three centres, and it is said."""
    counts = LimitedCounts(looked_up(300.0, 400.0, 49.0, 31.0), [30.0], [20.0])
    counts.at(np.arange(4))
    assert [doubt.split(" hold")[0] for doubt in reading_of(counts, k=3).doubts()] == ["only 2 buckets"]
    assert reading_of(counts, k=2).doubts() == []
    nobody = LimitedCounts(looked_up(49.0, 50.0), [30.0], [20.0])
    nobody.at(np.arange(2))
    with pytest.raises(Refused, match="no bucket holds more people"):
        reading_of(nobody, k=2).doubts()


def reading_of(counts: LimitedCounts, k: int) -> Withstanding:
    """A reading that looked at these counts alone."""
    reading = Withstanding(0.1, k)
    reading._counted.append(counts)
    return reading


def test_sums_are_limited_by_people_without_the_liars_among_them():
    """40 reports of which 30 may be lies are 10 people: a sum of 10 bounds of 2, no noise; none pulls more than 40."""
    plain = looked_up(40.0, 300.0)
    counts = LimitedCounts(plain, [30.0], [20.0])
    sums = LookupTable(lambda ids, level: np.array([[60.0, 0.0], [0.0, 500.0]])[ids], [0.0])
    table = LimitedSums(sums, counts, plain, 2.0, 1.0)
    assert table.at(np.arange(2)).tolist() == [[20.0, 0.0], [0.0, 500.0]]
    assert not table.pulled


@pytest.mark.parametrize(("share", "taken"), [(0.125, False), (0.1249, True)])
def test_a_share_that_can_invent_just_a_whole_group_is_refused(share, taken):
    """Of a report that adds two people, for four groups: an eighth of the reports are a quarter of the people."""
    event = Event("two-for-one", Budget("pure", 1.0), 1)
    channel = Bounded((Gain(2.0, 1.0, 1.0, 1),), (event,))
    round = attrs.evolve(planned().rounds()[0], parts=(OpenedQuestion(Everybody(), None, None, channel),))
    if taken:
        Withstanding(share, 4).check(round)
    else:
        with pytest.raises(InvalidInput, match="as much as one of 4 equal groups"):
            Withstanding(share, 4).check(round)


@attrs.frozen
class Everybody:
    """One bucket."""

    space = Space((1,))

    def locate(self, rows: Any) -> Any:
        return np.zeros((len(rows), 1), np.int64)


@attrs.frozen
class Bounded(ReportFacts):
    """A channel that says what a liar can do, and nothing else."""

    gains: tuple[Gain, ...]
    events: tuple[Event, ...]

    def reported(self, summary: Any) -> tuple[int, ...]:
        return (0,)


@pytest.mark.parametrize("lies", [0, 2_000])
def test_sums_that_somebody_pulls_are_said_to_be(lies):
    """30,000 people in three groups, whose sums nobody doubts; 2,000 liars who pull that of a bucket
    with nobody in it, 3 bounds each, are seen."""
    plan = publish(
        Request(
            k=3,
            method="one-round",
            epsilon=4.0,
            bounds="ball:1",
            rows=30_000 + lies,
            seed=2,
            options={"partitions": "1"},
        ),
        dimension=4,
    )
    (round,), users = plan.rounds(), np.arange(30_000, dtype=np.uint64)
    summaries = absorb(round, encode_rows(round, 0.9 * np.eye(4)[:3][np.arange(30_000) % 3], users, NOISE))
    at = next(j for j, part in enumerate(round.parts) if part.vectors is not None)
    part, to = round.parts[at], np.array([-0.6, -0.5, -0.4, -0.48]) / np.linalg.norm([0.6, 0.5, 0.4, 0.48])
    bucket = int(part.cells.locate(plan.domain.snap(to[None]))[0, 0])
    liars = np.arange(30_000, 30_000 + lies, dtype=np.uint64)
    both = list(summaries)
    if lies:
        both[at] = summaries[at].merge(part.channel.absorb(pulling(part, liars, bucket, to)))
    reading = Withstanding(0.001, 3)
    tables = [part.channel.decode(summary, NOISE) for part, summary in zip(round.parts, both, strict=True)]
    every, read = np.arange(part.cells.space.sizes[0]), reading(round, both, tables)
    read[next(j for j, one in enumerate(round.parts) if one.cells is part.cells)].at(every)
    found = read[at].at(every)
    pulled = [doubt for doubt in reading.doubts() if "longer than their people and noise" in doubt]
    assert [doubt.split(" buckets")[0] for doubt in pulled] == (["the sums of 1"] if lies else [])
    if lies:
        assert np.linalg.norm(found[bucket]) < 0.5 * np.linalg.norm(tables[at].at(every)[bucket])


def test_rounds_publish_what_was_read(tmp_path: Path):
    """So that everybody's replay of the rounds is the server's, whatever the server withstood."""
    plan = publish(
        Request(
            k=3,
            method="fastlloyd",
            epsilon=4.0,
            bounds="-1:1",
            rows=4_000,
            seed=2,
            options={"rounds": "2"},
            components={"counts": "optimised-local-hashing", "sums": "hadamard-vector"},
        ),
        dimension=2,
    )
    plan.write(tmp_path / "plan", "")
    for index in range(2):
        standing = Transcript.read(tmp_path / "plan")
        encoder = PlanEncoder(standing, noise=NoiseRng.for_tests(3))
        done = encoder.encode(rows()[:4_000], np.arange(4_000))
        advanced = advance(tmp_path / "plan", written(tmp_path / f"{index}.reports", done), robust=0.02)
    assert advanced.result is not None
    again = result_of(Transcript.read(tmp_path / "plan"))
    assert np.array_equal(again.centers, advanced.result.centers)
    assert [one.reports["withstands"] for one in Transcript.read(tmp_path / "plan").closed] == [0.02, 0.02]


def test_the_command_says_what_it_left_out(tmp_path: Path):
    plan = planned()
    plan.write(tmp_path / "plan", "")
    saved(tmp_path / "reports", plan)
    done = cloister("decode", "plan", "reports", "--robust", "0.02", "--json", folder=tmp_path)
    assert done.returncode == 0
    assert "read as if 0.02 of the reports lied" in done.stderr
    assert away(np.array(json.loads(done.stdout)["centers"])) > 0.5
    refused = cloister("decode", "plan", "reports", "--robust", "0.5", folder=tmp_path)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "as much as one of 4 equal groups" in refused.stderr
