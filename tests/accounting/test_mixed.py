"""Runs of pure and Gaussian questions together: against 60-digit arithmetic, dp-accounting, and the exact laws of the
noise."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st

from cloister.accounting import Spent, epsilon_of_mu
from cloister.accounting.accountant import Accountant
from cloister.accounting.budgeting import joint_problem
from cloister.accounting.ledger.ledger import Ledger
from cloister.accounting.mixed import ATOMS, _thinned, delta_of_mixed, epsilon_of_mixed
from cloister.accounting.privacy_target import PrivacyTarget
from cloister.core.budget import Budget, Event, PrivacyNotion
from cloister.core.clustering import Problem
from cloister.core.domains import Box
from cloister.core.errors import BudgetExceeded
from cloister.core.randomness import PublicRng
from cloister.run.account import Account
from cloister.run.explaining import explain
from cloister.run.fit import fit, source
from cloister.run.request import PreparedRun, Request, prepare
from tests.asking import asking

SEED = PublicRng.from_seed(5)
LAPLACE = {"counts": "discrete-laplace"}


def exact(pures: list[float], mu: float, epsilon: float) -> mpmath.mpf:
    """The sum over all outcomes of the randomised responses, in 60 digits."""
    with mpmath.workdps(60):
        m, total = mpmath.mpf(mu), mpmath.mpf(0)
        for signs in itertools.product((1, -1), repeat=len(pures)):
            chance, loss = mpmath.mpf(1), mpmath.mpf(0)
            for sign, pure in zip(signs, pures, strict=True):
                p = mpmath.mpf(pure)
                chance *= mpmath.exp((1 + sign) * p / 2) / (1 + mpmath.exp(p))
                loss += sign * p
            y = mpmath.mpf(epsilon) - loss
            total += chance * (mpmath.ncdf(m / 2 - y / m) - mpmath.exp(y) * mpmath.ncdf(-m / 2 - y / m))
        return total


@settings(max_examples=100, deadline=None)
@given(st.lists(st.floats(0.001, 3), min_size=1, max_size=4), st.floats(-3, 1), st.floats(0, 4))
@example([0.05, 0.02] * 3, -1.0, 0.1)
def test_delta_is_above_the_exact_one_by_less_than_one_part_in_1e8(
    pures: list[float], log_mu: float, epsilon: float
) -> None:
    mu = 10**log_mu
    want = exact(pures, mu, epsilon)
    if want > 1e-290:
        found = delta_of_mixed(pures, mu, epsilon)
        assert found == 1.0 or 5e-11 < float(mpmath.mpf(found) / want - 1) < 1e-8


@settings(max_examples=50, deadline=None)
@given(st.floats(0.01, 2), st.floats(0.01, 2), st.floats(-12, -2))
def test_epsilon_is_the_least_that_is_proved(pure: float, mu: float, log_delta: float) -> None:
    epsilon = epsilon_of_mixed([pure], mu, 10**log_delta)
    assert exact([pure], mu, epsilon) <= 10**log_delta
    assert epsilon == 0 or exact([pure], mu, epsilon * (1 - 1e-6)) > 10**log_delta * (1 - 1e-8)


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.45, 0.7, 2.0])
def test_pure_mechanisms_without_gaussian_noise_cost_what_their_outcomes_say(epsilon: float) -> None:
    pures = [0.5, 0.3, 0.1]
    want = 0.0
    for signs in itertools.product((1, -1), repeat=3):
        chance = math.prod(1 / (1 + math.exp(-sign * pure)) for sign, pure in zip(signs, pures, strict=True))
        loss = sum(sign * pure for sign, pure in zip(signs, pures, strict=True))
        want += chance * max(0.0, 1 - math.exp(epsilon - loss))
    found = delta_of_mixed(pures, 0.0, epsilon)
    assert want <= found <= max(want * (1 + 1e-8), 1e-305)
    assert want > 0 or epsilon > 0.9


def test_many_values_are_rounded_up_and_by_little() -> None:
    """19 different epsilons have half a million sums: a bound from above, close to what twice as many atoms give."""
    pures = np.linspace(0.01, 0.05, 19).tolist()
    assert 2 ** len(pures) > ATOMS
    found, gaussian = epsilon_of_mixed(pures, 0.2, 1e-6), math.sqrt(0.04 + sum(x * x for x in pures))
    assert found <= epsilon_of_mixed([0.05] * 19, 0.2, 1e-6)
    assert found == pytest.approx(epsilon_of_mu(gaussian, 1e-6), rel=0.02)


def test_losses_move_up_and_by_no_more_than_a_spacing() -> None:
    """What is promised of the rounding: no tail of the losses gets smaller, and each moves by less than a spacing."""
    r = np.random.default_rng(3)
    losses = np.sort(r.normal(0, 1, 5 * ATOMS))
    chances = np.full(len(losses), 1 / len(losses))
    fewer, held = _thinned(losses, chances)
    assert len(fewer) == ATOMS
    assert math.fsum(held) == pytest.approx(1)
    for at in r.normal(0, 1, 50):
        assert held[fewer >= at].sum() >= chances[losses >= at].sum() - 1e-12
    assert 0 < held @ fewer - chances @ losses < (losses[-1] - losses[0]) / (ATOMS - 1)


def event(measure: Any, amount: float, **more: Any) -> Event:
    return Event("test", Budget(measure, amount), **more)


def test_gaussian_noise_that_is_paid_in_rho_is_as_cheap_as_in_mu_squared() -> None:
    facts = {"l0_sensitivity": 2, "sigma": 2.0**20}
    rho, mu = event("zcdp", 0.045, **facts), event("gaussian", 0.09, **facts)
    assert Spent.on([rho]) == Spent.on([mu])
    assert Spent.on([event("zcdp", 0.045)]).rho == 0.045  # nothing is known of its law


def plan(delta: float = 1e-6, **given: Any) -> PreparedRun:
    facts = {"k": 5, "epsilon": 0.5, "delta": delta, "bounds": (-1, 1), "rows": 10_000, "zoom": "off", **given}
    asked = asking(method="grid-means", components={"counts": "discrete-laplace"}, **facts)
    return prepare(asked, ["x", "y"])


@pytest.mark.parametrize("rows_per_user", [None, 3])
def test_the_shares_of_a_mixed_run_grow_until_all_of_epsilon_is_used(rows_per_user: int | None) -> None:
    made = plan(rows_per_user=rows_per_user)
    rounds = [round.events for round in made.forecast(SEED)]
    cost = Accountant(made.total, made.problem.budget).forecast(rounds)
    assert 0.495 < cost.epsilon(1e-6) <= 0.5
    assert made.problem.budget.amount > 2 * made.total.measured({"pure", "gaussian"}).amount


def test_a_share_that_is_scaled_too_far_is_refused() -> None:
    made = plan()
    grown = [
        [
            event
            if math.isfinite(event.pure)
            else Event("more", Budget("zcdp", event.spent.amount * 1.21), event.l0_sensitivity, event.sigma / 1.1)
            for event in round.events
        ]
        for round in made.forecast(SEED)
    ]
    wide = Budget("zcdp", made.problem.budget.amount * 1.21)
    with pytest.raises(BudgetExceeded, match="the run's epsilon"):
        Accountant(made.total, wide).forecast(grown)


def test_rows_that_are_counted_first_ranges_of_k_and_lifetimes_in_rho_keep_to_rho() -> None:
    for made in (plan(rows=None), plan(laws=False), plan(k=(2, 5))):
        rho = made.total.measured({"pure", "gaussian"}).amount
        assert made.budget.amount == made.planned(10_000)[1].budget.amount == rho


def test_only_pure_and_gaussian_questions_are_priced_together() -> None:
    problem = Problem(2, Box((0.0,), (1.0,)), 100, Budget("pure", 0.5))
    for kinds in ({"pure"}, {"gaussian"}, {"pure", "gaussian", "zcdp"}, {"pure", "exact"}):
        currencies = frozenset(PrivacyNotion(kind) for kind in kinds)  # type: ignore[arg-type]
        assert joint_problem(None, currencies, PrivacyTarget(0.5, 1e-6), problem) is None
    assert joint_problem(None, frozenset(map(PrivacyNotion, ("pure", "gaussian"))), PrivacyTarget(0.5), problem) is None


@pytest.mark.parametrize(
    ("epsilon", "delta", "k", "rows", "rho"),
    [(0.5, 1.4e-5, 8, 6500, 173 / 2**12), (1.0, 1e-6, 3, 1000, 137 / 2**10), (4.0, 1e-6, 4, 3000, 101 / 2**6)],
)
def test_budgets_of_mixed_runs_are_the_same_everywhere(
    epsilon: float, delta: float, k: int, rows: int, rho: float
) -> None:
    """They are in plans, which machines of other kinds compare by their hashes."""
    figures = {"k": k, "epsilon": epsilon, "delta": delta, "rows": rows, "bounds": (-1, 1)}
    asked = asking(method="grid-means", components=LAPLACE, **figures)
    assert prepare(asked, ["x", "y"]).problem.budget == Budget("zcdp", rho)


def test_counts_in_laplace_noise_beside_gaussian_sums_have_half_the_variance_and_all_else_is_as_it_was() -> None:
    """At no cost to the frame or the sums: what the price of the whole run leaves goes to the counts."""
    asked = {"k": 8, "epsilon": 0.5, "delta": 1.4e-5, "bounds": (-1, 1), "rows": 6500, "zoom": 0.05}
    mixed, gauss = (
        [q.error for q in explain(asking(method="grid-means", components=parts, **asked), ["x", "y"]).asked]
        for parts in ({"counts": "discrete-laplace"}, {})
    )
    frame, counts, sums = (new / old for new, old in zip(mixed, gauss, strict=True))
    assert max(frame, sums) < 1.05
    assert counts < 0.8


@pytest.mark.parametrize(
    ("composition", "picked"), [("basic", "grid-means (counts=discrete-laplace)"), ("zcdp", "grid-means")]
)
def test_a_lifetime_that_adds_up_rho_keeps_to_noise_that_costs_little_of_it(
    composition: Any, picked: str, tmp_path: Path
) -> None:
    ledger = Ledger.open(tmp_path / "l.ledger", create=True)
    ledger.declare("visits", 1.0, 1e-5, composition)
    account = Account(ledger=tmp_path / "l.ledger", dataset="visits")
    asked = Request(k=5, epsilon=0.3, delta=1e-6, bounds=(-1, 1), rows=10_000, zoom=0.05)
    rows = np.random.default_rng(0).normal(0, 0.2, (2000, 2))
    found = fit(asked, source(rows), account=account)
    assert found.details["auto"]["words"].startswith(f"auto picked {picked}: ")
