"""What the page says of the promise, the budget and the clusters, checked figure by figure."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import attrs
import numpy as np
import pytest

from cloister.core.trust import TRUSTS
from cloister.run.result import Result
from cloister.run.statement import Spend
from cloister.showing.profile import profile_of
from cloister.showing.report.budget import lines_of
from cloister.showing.report.clusters import MOST_DOTS, OWN_DOTS, cards_of
from cloister.showing.report.promise import GUESSES, USER, chance, meaning, warnings
from tests.showing.report.pages import STATEMENT, made


@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.0), (0.1, 0.2), (1.0, 1e-6), (4.0, 0.0), (1000.0, 0.2)])
def test_the_stated_chance_is_that_of_the_best_guess_on_the_worst_mechanism(epsilon: float, delta: float) -> None:
    """Of four outcomes two betray the data set (Kairouz, Oh, Viswanath 2015)."""
    share = 1 / (1 + math.exp(-epsilon))
    one = np.array([delta, (1 - delta) * share, (1 - delta) * (1 - share), 0.0])
    best = np.maximum(one, one[::-1]).sum() / 2
    assert chance(epsilon, delta) == pytest.approx(best, rel=1e-12)


def test_the_chance_is_rounded_up_in_words() -> None:
    assert chance(1.0, 1e-6) == pytest.approx(0.73106, abs=1e-5)
    assert "right at most 74 times in 100" in meaning(STATEMENT)[1]
    assert "right at most 99.76 times in 100" in meaning(attrs.evolve(STATEMENT, epsilon=6.0))[1]


def test_a_simulation_does_not_say_that_nobody_saw_the_rows() -> None:
    assert meaning(attrs.evolve(STATEMENT, trust="Local", simulated=True))[0].startswith("Outside a simulation: ")


def test_each_warning_is_there_exactly_where_it_is_due_whatever_others_there_are() -> None:
    """Of 1,000 rows: delta is large above a tenth of a thousandth."""
    for simulated, epsilon, delta, auto in product(
        (False, True), (10.0, 10.01), (0.0, 1e-4, 1.01e-4), (None, {"warning": "mostly noise"})
    ):
        privacy = attrs.evolve(STATEMENT, trust="Local", simulated=simulated, epsilon=epsilon, delta=delta)
        due = {
            "SIMULATED": simulated,
            "WEAK PROMISE": epsilon > 10,
            "δ TOO LARGE": delta > 1e-4,
            "MOSTLY NOISE": auto is not None,
        }
        assert [what for what, _ in warnings(privacy, auto)] == [what for what, is_due in due.items() if is_due]


def test_what_rests_on_the_shuffler_is_said_where_there_is_one() -> None:
    for trust, alone in product(TRUSTS, (None, 3.5)):
        privacy = attrs.evolve(STATEMENT, trust=trust, min_honest_users=1234, epsilon_without_shuffler=alone)
        said, shuffled = " ".join(meaning(privacy)), trust == "Shuffled"
        assert ("at least 1,234 people" in said) == ("Without that" in said) == shuffled
        assert ("epsilon = 3.5" in said) == (shuffled and alone is not None)
        assert all(line in meaning(privacy) for line in privacy.without()) == shuffled


def test_a_promise_for_rows_is_not_told_as_one_for_users_nor_the_other_way_round() -> None:
    for trust, several in product(TRUSTS, (None, 1, 3)):
        said = " ".join(meaning(attrs.evolve(STATEMENT, trust=trust, rows_per_user=several)))
        assert (USER in said) == (several is not None)
        assert (GUESSES[TRUSTS[trust].relation] in said) == (several is None)
        assert ("This assumes one row per person" in said) == (several is None)


def test_without_noise_nothing_is_promised() -> None:
    for change in ({"private": False}, {"seeded": True}):
        (words,) = meaning(attrs.evolve(STATEMENT, **change))
        assert words.startswith("Nobody is protected")


def test_shares_of_the_budget_add_up_in_each_unit_and_like_questions_share_a_line() -> None:
    spends = (
        Spend(0, "question 1 (counts)", "a", "gaussian", 1.0),
        Spend(0, "question 2 (counts)", "a", "gaussian", 1.0),
        Spend(1, "question 1 (sums)", "b", "gaussian", 2.0, delta=1e-7),
        Spend(1, "question 2 (sums)", "c", "pure", 4.0, users=0.25),
        Spend(2, "question 1 (sums)", "c", "pure", 4.0, users=0.75),
        Spend(3, "question 1 (sums)", "e", "exact", math.inf),
    )
    lines = lines_of(spends)
    assert [(line.share, line.amount) for line in lines] == [
        (50.0, "μ² 1 each"),
        (50.0, "μ² 2, δ 1e-07"),
        (25.0, "ε 4 of 25.0% of the people"),
        (75.0, "ε 4 of 75.0% of the people"),
        (None, "unlimited"),
    ]
    assert lines[0].question == "how many rows fall in each bucket (2 questions)"


def cards(result: Result) -> Any:
    """The cards in the order of their centres."""
    return sorted(cards_of(result, profile_of(result)), key=lambda card: card.number)


def test_a_centre_stands_where_it_is_between_the_bounds_with_two_standard_errors() -> None:
    details = {"centers_error": np.full((2, 2), 0.1), "weights_error": np.array([10.0, 10.0])}
    centers, weights = np.array([[0.0, 1.0], [0.5, -1.0]]), np.array([100.0, 300.0])
    first, second = cards(made(2, centers=centers, weights=weights, details=details))
    assert [(dot.at, dot.low, dot.high) for dot in first.dots] == [(50.0, 40.0, 60.0), (100.0, 90.0, 100.0)]
    assert first.dots[0].mean == second.dots[0].mean == pytest.approx(100 * (0.375 + 1) / 2)
    assert (first.share, second.share) == (25.0, 75.0)
    assert first.dots[0].value == "0.00 ± 0.10"


def test_clusters_below_three_standard_errors_are_marked() -> None:
    for size, doubtful in ((29.9, True), (30.1, False), (-3.0, True)):
        weights = np.array([size, 300.0, 300.0])
        assert cards(made(weights=weights, details={"weights_error": np.full(3, 10.0)}))[0].doubtful == doubtful


def test_of_many_columns_a_cluster_shows_those_in_which_it_is_off_the_mean() -> None:
    centers = np.zeros((3, MOST_DOTS + 1))
    centers[0, 2:10] = 0.9
    result = made(MOST_DOTS + 1, centers=centers)
    assert [dot.column for dot in cards(result)[0].dots] == [f"c{j}" for j in range(2, 2 + OWN_DOTS)]
    assert len(cards(made(MOST_DOTS))[0].dots) == MOST_DOTS
