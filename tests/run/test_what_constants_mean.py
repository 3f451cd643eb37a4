"""Constants of profiles, of estimated figures and of what ``auto`` says, by what they do to figures made by hand."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
import pytest

from cloister.run.choosing import Candidate, Choice
from cloister.run.fit import fit, source
from cloister.run.request import Request
from cloister.run.result import Result
from cloister.showing.figures import FilledBoxes, Spheres, estimated, model_of
from cloister.showing.profile import profile_of


@pytest.fixture(scope="module")
def plain() -> Result:
    rows = np.random.default_rng(0).normal([[0.2, 0.5]], 0.1, (500, 2))
    request = Request(k=2, method="hst-means", epsilon=1.0, delta=1e-6, bounds=(-1, 1), rows=500, seed=1, zoom="off")
    return fit(request, source(rows))


def made(of: Result, centers: Any, weights: Any, details: Any = None, columns: Any = None, **problem: Any) -> Result:
    places = np.array(centers, float)
    d = places.shape[1]
    names = columns or tuple("abcdefgh"[:d])
    return attrs.evolve(
        of,
        centers=places,
        weights=np.array(weights, float),
        details=details or {},
        columns=names,
        problem={**of.problem, "bounds": {"lower": [-1.0] * d, "upper": [1.0] * d}, **problem},
    )


# profiles


def test_a_column_sets_a_centre_apart_from_three_quarters_of_the_spread_on(plain: Result) -> None:
    """Of weights 1 and 2 the lighter centre is sqrt 2 spreads off the mean, the heavier 0.71; of equal ones both are
    one. Of 9 and 16 they are 4/3 and exactly 3/4."""
    heavy = profile_of(made(plain, [[0.0], [1.0]], [1, 2])).clusters
    assert [c.apart for c in heavy] == [("a low",), ()]
    assert [c.apart for c in profile_of(made(plain, [[0.0], [1.0]], [1, 1])).clusters] == [("a low",), ("a high",)]
    edge = profile_of(made(plain, [[0.0], [1.0]], [9, 15.9])).clusters
    assert [c.apart for c in edge] == [("a low",), ("a high",)]
    assert profile_of(made(plain, [[0.0], [1.0]], [9, 16.1])).clusters[1].apart == ()


def test_it_must_be_off_by_two_standard_errors(plain: Result) -> None:
    for error, said in ((0.249, ("a low",)), (0.251, ())):
        found = made(plain, [[0.0], [1.0]], [1, 1], {"centers_error": [[error], [error]]})
        assert profile_of(found).clusters[0].apart == said


def test_no_more_than_three_columns_are_named_the_clearest_first(plain: Result) -> None:
    found = made(plain, [[0, 0, 0, 0, 0.0], [1, 1, 1, 1, 1], [2, 3, 4, 5, 6]], [1, 1, 1])
    assert len(profile_of(found).clusters[0].apart) == 3
    assert profile_of(found).clusters[2].apart == ("e high", "d high", "c high")


def test_a_share_is_of_the_sizes_above_zero(plain: Result) -> None:
    shares = [c.share for c in profile_of(made(plain, [[0.0], [1.0], [2.0]], [30, 10, -5])).clusters]
    assert shares == [0.75, 0.25, 0.0]
    assert [c.share for c in profile_of(made(plain, [[0.0], [1.0]], [-3, -5])).clusters] == [None, None]


def test_a_category_is_mostly_above_a_half_and_is_shown_from_half_a_hundredth_on(plain: Result) -> None:
    columns = ("ward=A", "ward=B", "ward=C")
    centers = [[0.51, 0.486, 0.004], [0.49, 0.504, 0.006], [0.2, 0.2, 0.6]]
    found = made(plain, centers, [1, 1, 1], columns=columns, categories={"ward": ["A", "B", "C"]})
    clusters = profile_of(found).clusters
    assert clusters[0].mixtures == {"ward": "A 51%, B 49%"}
    assert clusters[1].mixtures == {"ward": "B 50%, A 49%, C 1%"}
    assert "ward mostly A" in clusters[0].apart
    assert not any("mostly" in text and "A" in text for text in clusters[1].apart)


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


def test_boxes_that_noise_may_have_filled_get_no_points() -> None:
    """From two and a half standard errors on."""
    centers = ((0.0, 0.0), (10.0, 0.0), (30.0, 0.0))
    for weight, share in ((24.9, 0.0), (25.1, 0.2)):
        points = boxes([50, 50, weight], [10, 10, 10], centers).points(300)
        assert (points[:, 0] > 20).mean() == pytest.approx(share, abs=0.01)


def test_boxes_too_wide_to_tell_distances_are_not_estimated_from(plain: Result) -> None:
    """A variance of twice the cost: 2 (2.5 - v) = v, at v = 5/3, a side of sqrt 10."""
    for side, told in ((3.1, True), (3.2, False)):
        model = boxes([50, 50, 0], [1, 1, 1], side=side)
        details = {"cells": model.boxes, "cell_weights": model.weights, "cell_errors": model.errors}
        found = made(plain, [[0.0, 0.0], [10.0, 0.0]], [50, 50], details)
        assert (model_of(found) is not None) == told
        assert model_of(attrs.evolve(found, details={**details, "projection": 1})) is None
        assert model_of(attrs.evolve(found, details={**details, "cell_weights": [0, 0, -1]})) is None


def test_what_the_models_do_not_know_is_in_their_errors() -> None:
    """Alone, and times a box's variance over the cost, added as squares."""
    coarse = 0.06 / 2.44
    score, cost = boxes([50, 50, 0], [1, 1, 1]).doubts(2)
    assert score == pytest.approx(np.hypot(0.025, 0.06 * coarse))
    assert cost == pytest.approx(2.44 * np.hypot(0.08, 0.25 * coarse))
    wide = boxes([50, 50, 0], [1, 1, 1], side=3.8)
    assert wide.doubts(2)[0] == pytest.approx(np.hypot(0.025, 0.06 * 1.5))
    around = spheres([5.0, 40, 40, 0])
    assert around.doubts(2) == (0.03, pytest.approx(0.05 * around.cost(2)))


def spheres(counts: Any) -> Spheres:
    return Spheres(
        np.array([1.0, 2.0, 4.0, 8.0]),
        np.array(counts, float),
        np.full(4, 10.0),
        np.array([40.0, 40.0]),
        np.full(2, 5.0),
        np.zeros((2, 2)),
    )


def test_distances_count_up_to_the_farthest_bin_of_three_standard_errors() -> None:
    assert spheres([40, 40, 29.9, 5]).last == 1
    assert spheres([40, 40, 30.1, 5]).last == 2
    assert spheres([1, 1, 1, 1]).last == 3  # none shows
    assert spheres([40, 40, 29.9, 5]).shown.tolist() == [40, 40, 0, 0]


def test_the_error_of_a_figure_has_its_doubt_and_what_noise_adds_on_average() -> None:
    """A figure that is 1, and 3 with any noise: nothing spreads, and the mean is off by 2."""

    class Fake:
        def again(self, g: Any) -> Fake:
            return Fake()

    first: Any = Fake()
    value, error = estimated(first, lambda m: 1.0 if m is first else 3.0, 1.5)
    assert (value, error) == (1.0, 2.5)


# auto


def test_what_auto_says_names_the_next_best_and_warns_from_an_error_of_one_on() -> None:
    others = (Candidate("b", 0.5), Candidate("a", 0.25), Candidate("c", None, "it cannot"))
    choice = Choice("auto", "a", others)
    assert choice.error == 0.25
    assert choice.words == "auto picked a: predicted error 0.25 of a single centre's cost; next: b 0.5"
    assert choice.note.startswith(choice.words)
    assert choice.warning == ""
    for error, warned in ((0.999, False), (1.0, True), (3.0, True)):
        alone = Choice("auto", "a", (Candidate("a", error), Candidate("c", None, "it cannot")))
        assert alone.words.endswith("of a single centre's cost")
        assert bool(alone.warning) == warned
        assert alone.as_dict()["warning"] == alone.warning
