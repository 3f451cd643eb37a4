"""What a plan says of people who lie, against people who lie as well as they can."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cloister.collection.plan.liars import SHARES, harm
from cloister.collection.plan.plan import CollectionPlan
from cloister.collection.plan.publish import words
from cloister.core.encoding import encode_rows
from cloister.core.questions import OpenedQuestion
from cloister.core.randomness import NoiseRng
from tests.alarms import Alarm
from tests.collection.liars import asked, pulling, supporting
from tests.collection.plans import local_plan
from tests.in_process import cloister

N, M, K = 20_000, 2_000, 4
"""People; liars besides; centres; standard deviations of chance, exceeded once in 1e9 times."""
COUNTS = ("optimised-local-hashing", "hadamard-response", "subset-selection", "optimised-unary", "adaptive-response")
NOISE = NoiseRng.for_tests(0)
EVERYBODY, LIARS = np.arange(N, dtype=np.uint64), np.arange(N, N + M, dtype=np.uint64)


def planned(d: int, epsilon: float = 1.0, components: Any = None, **changes: Any) -> CollectionPlan:
    given = {"k": K, "bounds": "ball:2", "rows": N + M, "seed": 3, "components": components or {}}
    return local_plan(d, epsilon=epsilon, **given, **changes)


def looked(part: OpenedQuestion, summary: Any, bucket: int) -> Any:
    return part.channel.decode(summary, NOISE).at(np.array([bucket]))[0] / part.fraction


@pytest.mark.parametrize(
    ("d", "oracle", "epsilon"),
    [*((2, oracle, epsilon) for oracle in COUNTS for epsilon in (0.5, 2.0)), (6, "optimised-local-hashing", 1.0)],
)
def test_liars_invent_as_many_people_as_the_plan_says_and_no_more(d, oracle, epsilon):
    """Their part of the count is exact, whatever the honest say; of two columns everybody is asked, of six few are: as
    many as the plan says, but for the chance that more of the liars are."""
    plan = planned(d, epsilon, {"counts": oracle})
    (round,) = plan.rounds()
    said, at = harm(plan, [round]), next(j for j, part in enumerate(round.parts) if part.vectors is None)
    part, honest = round.parts[at], encode_rows(round, np.zeros((N, d)), EVERYBODY, NOISE)[at]
    before = part.channel.absorb(honest)
    after = before.merge(part.channel.absorb(supporting(part, LIARS, 5)))
    invented = looked(part, after, 5) - looked(part, before, 5)
    assert invented == pytest.approx(len(asked(part, LIARS)) / part.fraction * said.invented)
    assert said.chosen == pytest.approx(max(1 / part.fraction for part in round.parts))


def test_how_far_liars_move_a_centre_does_not_depend_on_the_units_of_columns():
    """In a frame of its own a plan's vectors are in the frame's units, whatever the bounds are, or are not known."""
    parts = {"counts": "optimised-local-hashing", "sums": "hadamard-vector"}
    given: dict[str, Any] = {"method": "su-lloyd", "components": parts, "options": {"rounds": 1}, "rows": N}
    plans = [local_plan(2, bounds=bounds, **given) for bounds in ((-1, 1), [(-100, 100), (-1, 1)])]
    moved = [harm(plan, plan.rounds()).moved for plan in plans]
    assert moved[0] == pytest.approx(moved[1], rel=1e-6)
    assert moved[0] > 0


def test_a_plan_expects_less_of_the_budget_that_is_left_beside_zoom():
    given: dict[str, Any] = {"epsilon": 4.0, "rows": N}
    plans = [local_plan(2, bounds="unknown", zoom=share, **given) for share in (0.1, 0.4)]
    alone, little, much = (plan.outlook.error for plan in (local_plan(2, bounds=(-1, 1), **given), *plans))
    assert alone < little < much / 2


@pytest.mark.alarm(1e-8)
@pytest.mark.parametrize("randomiser", ["one-byte", "privunit", "duchi"])
def test_liars_move_a_centre_as_far_as_the_plan_says(randomiser, alarm: Alarm):
    """One of K equal groups, by the liars' part of its sum over its people; the rest is chance: of the numbers that are
    asked, and of a codeword's length in one direction, less than its ``usual``."""
    plan = planned(6, options={"sums.randomiser": randomiser})
    (round,) = plan.rounds()
    said = harm(plan, [round])
    part = next(part for part in round.parts if part.vectors is not None)
    to = np.ones(6) / math.sqrt(6)
    pulled = looked(part, part.channel.absorb(pulling(part, LIARS, 5, to)), 5)
    moved = float(pulled @ to) / ((N + M) / K) / 2  # in radii
    wanted = said.moved * M / (N + M)
    chance = math.sqrt(2 / part.fraction / M)
    assert chance < 0.06
    alarm.near(moved / wanted, 1, chance)


def test_it_is_said_in_words_and_as_data_and_is_no_part_of_the_plan(tmp_path: Path):
    command = "plan -k 8 --epsilon 1 --rows 1000000 --bounds ball:1 --dimension 10 --out plan --json"
    made = cloister(*command.split(), folder=tmp_path)
    said = json.loads(made.stdout)["liars"]
    assert [one["share"] for one in said["shares"]] == list(SHARES)
    assert said["shares"][1]["invented"] == pytest.approx(0.01 * said["a report counts for"])
    assert said["withstood below"] == pytest.approx(1 / (8 * said["a report counts for"]))
    assert "liars" not in json.loads((tmp_path / "plan" / "plan.json").read_text())
    text = (tmp_path / "plan" / "README.txt").read_text()
    for part in (
        "If 1 in 1,000 lies, a group of 0.33% of the people can be invented and the centre of one of 8",
        "equal groups moved anywhere.",
        "decode --robust withstands less than 3.76% of liars",
        "a liar who chooses hers counts up to",
    ):
        assert part in text


def test_what_nothing_bounds_is_said_so_and_sets_of_buckets_to_be_many_groups_at_once():
    plan = planned(6, trust="shuffled", delta=1e-6)
    text = words(plan, plan.rounds())
    assert "The influence of one liar on 'split-and-mix-counts' is unbounded." in text
    assert "can be invented" not in text
    subsets = planned(2, components={"counts": "subset-selection"})
    assert "can name 69 buckets at once, and so invent that many groups." in words(subsets, subsets.rounds())
    assert harm(plan, plan.rounds()).breakdown_share(K) is None
