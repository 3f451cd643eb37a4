"""Constants of profiles, of estimated figures and of what ``auto`` says, by what they do to figures made by hand."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
import pytest

from cloister.core.capabilities import TYPICAL, TYPICAL_MEDIAN, loss_upper_bound, relative_loss
from cloister.run.method_selection import Candidate, MethodSelection
from cloister.run.result import Result
from cloister.showing.profile import ClusterProfile, profile_of
from cloister.showing.quality import FilledBoxes, estimate, model_of
from tests.showing.report import pages


def made(centers: Any, weights: Any, details: Any = None, columns: Any = None, **problem: Any) -> Result:
    places = np.array(centers, float)
    k, d = places.shape
    of = pages.made(d, k)
    return attrs.evolve(
        of,
        centers=places,
        weights=np.array(weights, float),
        details=details or {},
        columns=columns or tuple("abcdefgh"[:d]),
        problem={**of.problem, **problem},
    )


def apart(*result: Any) -> list[tuple[str, ...]]:
    return [cluster.apart for cluster in profile_of(made(*result)).clusters]


# profiles

BOTH = [("a low",), ("a high",)]


@pytest.mark.parametrize(
    ("weights", "said"),
    [([1, 2], [("a low",), ()]), ([1, 1], BOTH), ([9, 15.9], BOTH), ([9, 16.1], [("a low",), ()])],
)
def test_a_column_sets_a_centre_apart_from_three_quarters_of_the_spread_on(weights: Any, said: Any) -> None:
    """Of weights 1 and 2 the lighter centre is sqrt 2 spreads off the mean, the heavier 0.71; of equal ones both are
    one. Of 9 and 16 they are 4/3 and exactly 3/4."""
    assert apart([[0.0], [1.0]], weights) == said


def test_it_must_be_off_by_two_standard_errors_of_its_own_and_of_the_mean_of_all_centres() -> None:
    """Half a unit off the mean, which has half the variance of a centre: 0.5 = 2 sqrt(1.5) 0.2041."""
    for error, said in ((0.204, ("a low",)), (0.2042, ())):
        assert apart([[0.0], [1.0]], [1, 1], {"centers_error": [[error], [error]]})[0] == said


WARDS = {"ward": ["A", "B", "C"]}
IN_WARDS = ("ward=A", "ward=B", "ward=C")


def of_wards(centers: Any, weights: Any, errors: Any = None) -> list[tuple[str, ...]]:
    details = {} if errors is None else {"centers_error": np.broadcast_to(errors, np.shape(centers))}
    return [c.apart for c in profile_of(made(centers, weights, details, IN_WARDS, categories=WARDS)).clusters]


def test_of_a_category_one_value_sets_a_cluster_apart_the_one_that_it_has() -> None:
    """The rest lacks what others have, which follows; where no value is frequent, the rarest is named."""
    centers = [[0.98, 0.01, 0.01], [0.01, 0.98, 0.01], [0.45, 0.45, 0.1]]
    first, second, third = of_wards(centers, [1, 1, 0.1])
    assert (first, second) == (("ward mostly A",), ("ward mostly B",))
    assert third == ("ward often C",)
    assert of_wards([[0.5, 0.0, 0.0], [0.5, 0.4, 0.0]], [1, 1])[0] == ("ward rarely B",)


@pytest.mark.parametrize("seed", range(40))
def test_no_two_values_of_a_category_and_nothing_within_two_stated_errors_is_ever_named(seed: int) -> None:
    g = np.random.default_rng(seed)
    k, columns = int(g.integers(2, 7)), (*IN_WARDS, "sex=f", "sex=m", "age")
    shares = np.hstack([g.dirichlet([0.4] * 3, k), g.dirichlet([0.5] * 2, k), g.uniform(0, 1, (k, 1))])
    errors, weights = g.exponential(0.15, shares.shape), g.uniform(10, 100, k)
    known = {"centers_error": errors, "weights_error": g.exponential(5, k)}
    categories = {**WARDS, "sex": ["f", "m"]}
    found = profile_of(made(shares, weights, known, columns, categories=categories))
    away = shares - np.average(shares, axis=0, weights=weights)
    for i, cluster in enumerate(found.clusters):
        named = [text.split()[0] for text in cluster.apart]
        assert len(named) == len(set(named))
        for text in cluster.apart:
            column, how, *value = text.split()
            j = columns.index("=".join([column, *value]))
            assert abs(away[i, j]) > 2 * errors[i, j]
            assert (away[i, j] > 0) == (how in ("high", "mostly", "often")) or how == "mostly"


def test_mostly_is_said_of_a_share_that_is_above_a_half_by_two_standard_errors() -> None:
    for error, how in ((0.049, "mostly"), (0.051, "often")):
        assert of_wards([[0.6, 0.2, 0.2], [0.0, 0.5, 0.5]], [1, 1], [[error, 1.0, 1.0]])[0] == (f"ward {how} A",)


def test_no_more_than_three_columns_are_named_the_clearest_first() -> None:
    first, _, last = apart([[0, 0, 0, 0, 0.0], [1, 1, 1, 1, 1], [2, 3, 4, 5, 6]], [1, 1, 1])
    assert len(first) == 3
    assert last == ("e high", "d high", "c high")


def test_a_share_is_of_the_sizes_above_zero() -> None:
    for weights, shares in (([30, 10, -5], [0.75, 0.25, 0.0]), ([-3, -5, 0], [None, None, None])):
        clusters = profile_of(made([[0.0], [1.0], [2.0]], weights)).clusters
        assert [cluster.share for cluster in clusters] == shares


def test_a_category_is_mostly_above_a_half_and_is_shown_from_half_a_hundredth_on() -> None:
    """Shares are of all rows of a group, as its centre says; noise lifts no sum above them."""

    def found(*centers: list[float]) -> tuple[ClusterProfile, ...]:
        wards = {"ward": ["A", "B", "C"]}
        columns = ("ward=A", "ward=B", "ward=C")
        return profile_of(made(centers, [1] * len(centers), None, columns, categories=wards)).clusters

    first, second, _ = found([0.51, 0.486, 0.004], [0.49, 0.504, 0.006], [0.2, 0.2, 0.6])
    assert first.mixtures == {"ward": "A 51%, B 48.6%"}
    assert second.mixtures == {"ward": "B 50.4%, A 49%, C 0.6%"}
    assert "ward mostly A" in first.apart
    assert not any("mostly" in text and "A" in text for text in second.apart)
    lifted, empty = found([0.9, 0.3, -0.1], [0.0, 0.0, -0.1])
    assert lifted.categories == {"ward": {"A": pytest.approx(0.75), "B": pytest.approx(0.25), "C": 0.0}}
    assert empty.categories == {}


# figures


def boxes(weights: Any, errors: Any, centers: Any = ((0.0, 0.0), (10.0, 0.0)), side: float = 0.6) -> FilledBoxes:
    """Boxes around (2, 0) of centre 0, (11, 0) of centre 1, and (30, 0) far from both."""
    middles = np.array([[2.0, 0.0], [11.0, 0.0], [30.0, 0.0]])
    corners = np.stack([middles - side / 2, middles + side / 2], axis=1)
    return FilledBoxes(corners, np.array(weights, float), np.array(errors, float), np.array(centers))


def test_a_boxs_variance_is_taken_off_but_for_fifteen_hundredths() -> None:
    """Squared distances 4 and 1: 2.5 on average; two sides of 0.6 have a variance of 0.06."""
    assert boxes([50, 50, 0], [1, 1, 1]).square == pytest.approx(2.5 - 0.06)
    assert boxes([50, 50, 0], [1, 1, 1], side=3.8).square == pytest.approx(0.15 * 2.5)


def test_boxes_too_wide_to_tell_distances_are_not_estimated_from() -> None:
    """A variance of twice the cost: 2 (2.5 - v) = v, at v = 5/3, a side of sqrt 10."""
    for side, told in ((3.1, True), (3.2, False)):
        model = boxes([50, 50, 0], [1, 1, 1], side=side)
        details = {"cells": model.boxes, "cell_weights": model.weights, "cell_errors": model.errors}
        found = made([[0.0, 0.0], [10.0, 0.0]], [50, 50], details)
        assert (model_of(found) is not None) == told
        assert model_of(attrs.evolve(found, details={**details, "projection": 1})) is None
        assert model_of(attrs.evolve(found, details={**details, "cell_weights": [0, 0, -1]})) is None


def test_the_error_of_a_figure_has_its_doubt_and_what_noise_adds_on_average() -> None:
    """A figure that is 1, and 3 with any noise: nothing spreads, and the mean is off by 2."""

    class Fake:
        def resampled(self, g: Any) -> Fake:
            return Fake()

    first: Any = Fake()
    value, error = estimate(first, lambda m: 1.0 if m is first else 3.0, 1.5)
    assert (value, error) == (1.0, 2.5)


# auto


def test_what_is_lost_of_a_single_centre_s_cost_is_below_all_of_it_and_at_most_four_times_its_odds() -> None:
    assert (relative_loss(0.0), relative_loss(TYPICAL)) == (0.0, 0.5)
    assert relative_loss(1e18) <= 1
    assert relative_loss(TYPICAL_MEDIAN / 4, "k-median") == pytest.approx(1 / 3)  # of distances, half of theirs
    assert [loss_upper_bound(part) for part in (0.0, 0.5, 1.0)] == [0.0, 0.8, 1.0]


def test_what_auto_says_names_the_next_best_and_warns_from_v_of_one_on() -> None:
    others = (Candidate("b", 0.5), Candidate("a", 0.25), Candidate("c", None, "it cannot"))
    choice = MethodSelection("auto", "a", others)
    assert choice.error == 0.25
    most = "at most 0.57 in nine data sets of ten"  # odds of 1 to 3 and of 4 to 3
    assert choice.words == f"auto picked a: predicted error 0.25 of a single centre's cost ({most}); next: b 0.5"
    assert choice.warning == ""
    for error, warned in ((relative_loss(0.999), False), (relative_loss(1.0), True), (relative_loss(3.0), True)):
        alone = MethodSelection("auto", "a", (Candidate("a", error), Candidate("c", None, "it cannot")))
        assert alone.words.endswith("in nine data sets of ten)")
        assert bool(alone.warning) == warned
