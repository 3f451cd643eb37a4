"""Described groups: counted under every trust model, by columns of the clustering and by others."""

from __future__ import annotations

from functools import partial
from typing import Any

import attrs
import numpy as np
import pandas as pd
import pytest

from cloister import KMeans
from cloister.accounting.ledger.ledger import Ledger
from cloister.core.errors import CloisterError, InvalidInput
from cloister.core.randomness import PublicRng
from cloister.core.session import forecast
from cloister.plugins.methods.described import Answered
from cloister.run.account import Account
from cloister.run.explaining import explain
from cloister.run.fit import fit, parties, source
from cloister.run.layers.histograms import DescribedColumn, Descriptions, descriptions_of
from cloister.run.request import PreparedRun, Request, prepare
from cloister.run.result import Result
from cloister.run.warnings import before
from tests.alarms import Alarm
from tests.showing.report import pages

COLUMNS = ["age", "weight"]
BOUNDS = {"age": (0, 120), "weight": (20, 200), "stay": (0, 32)}
WARDS = {"ward": ["A", "B", "C"]}
DESCRIBED = ["ward", "stay", "smoker", "age"]


def table(n: int) -> pd.DataFrame:
    """Three groups, which a ward, a stay and smoking tell apart more or less; some wards are not listed, and some stays
    beyond their bounds."""
    g = np.random.default_rng(0)
    groups = g.choice(3, n, p=[0.5, 0.3, 0.2])
    rows = np.array([[30, 60], [60, 90], [85, 140]])[groups] + g.normal(size=(n, 2)) * 4
    ward = np.array(list("ABCZ"))[np.where(g.random(n) < 0.7, groups, g.integers(0, 4, n))]
    stay, smoker = g.gamma(2, 2 + 2 * groups), g.random(n) < np.array([0.1, 0.5, 0.3])[groups]
    return pd.DataFrame({"age": rows[:, 0], "weight": rows[:, 1], "ward": ward, "stay": stay, "smoker": smoker})


TABLE = table(6000)


request = partial(Request, k=3, epsilon=1.0, delta=1e-6, rows=6000, bounds=BOUNDS, seed=1, describe=DESCRIBED)


def rows(some: Any = TABLE, described: Any = DESCRIBED, **more: Any) -> Any:
    return source(some, columns=COLUMNS, **{"bounds": BOUNDS, "categories": WARDS, "described": described, **more})


def run(**given: Any) -> Result:
    return fit(request(**given), rows())


def planned(population: Any = None, **given: Any) -> PreparedRun:
    return prepare(request(**given), (), chosen_columns=(population or rows()).selection)


def told(result: Result) -> Descriptions:
    found = descriptions_of(result)
    assert found is not None
    return found


def counted(result: Result, some: pd.DataFrame = TABLE) -> dict[str, np.ndarray]:
    """Exact counts of the rows by the nearest centre, as anybody would count them."""
    units = np.ones(2) if result.units is None else result.units
    near = (((some[COLUMNS].to_numpy()[:, None] - result.centers) / units) ** 2).sum(axis=2).argmin(axis=1)
    codes = {
        "ward": (4, some["ward"].map({"A": 0, "B": 1, "C": 2, "Z": 3}).to_numpy()),
        "stay": (16, np.minimum(some["stay"].to_numpy() // 2, 15).astype(int)),
        "smoker": (2, np.where(some["smoker"], 0, 1)),
    }
    return {name: np.bincount(near * m + code, minlength=3 * m).reshape(3, m) for name, (m, code) in codes.items()}


def test_centres_see_nothing_of_what_is_described_beside_them() -> None:
    """The same noise and the same budget lead to the same centres, whatever the other columns hold."""
    other = TABLE.assign(ward="A", stay=0.0, smoker=True)
    found = [fit(request(method="lloyd", not_private=True), rows(some)).centers for some in (TABLE, other)]
    assert np.array_equal(*found)
    assert run().columns == ("age", "weight")
    assert any("what each group's rows hold in ward, stay, smoker, age" in note for note in run().privacy.notes)


@pytest.mark.parametrize("scale", ["none", "bounds"])
def test_without_noise_the_counts_are_those_of_the_rows(scale: str) -> None:
    """Groups are those that labels would have, in the run's own units; rows beyond bounds are in the last part, and
    values that are not listed are counted together."""
    result = run(method="lloyd", not_private=True, zoom="off", scale=scale)
    ward, stay, smoker, age = told(result).columns
    assert [ward.name, stay.name, smoker.name, age.name] == DESCRIBED
    assert (ward.labels, smoker.labels) == (("A", "B", "C", "other"), ("true", "false"))
    for column in (ward, stay, smoker):
        assert np.array_equal(np.rint(column.counts), counted(result)[column.name]), column.name


@pytest.mark.alarm(1e-9)
@pytest.mark.parametrize("trust", ["central", "aggregated", "local"])
def test_shares_are_those_of_the_rows_but_for_stated_errors(trust: str, alarm: Alarm) -> None:
    """Every share within the errors that so many normal figures may have, and nine of ten within two. No count is
    negative, and all columns of a group add up to its size."""
    some, more = TABLE, dict[str, Any]()
    if trust == "local":
        some, more = table(200_000), {"epsilon": 4.0, "delta": 0.0, "rows": 200_000, "method": "one-round"}
    population = rows(some)
    if trust == "aggregated":
        population, more = parties({str(i): rows(some[i::3]) for i in range(3)}), {"parties": 3}
    result = fit(request(trust=trust, **more), population)
    found, off = told(result), list[Any]()
    for column in found.columns[:3]:
        exact = counted(result, some)[column.name]
        off.extend(np.ravel((column.shares - exact / exact.sum(axis=1, keepdims=True)) / column.errors))
        assert (column.counts >= 0).all()
        assert np.allclose(column.counts.sum(axis=1), found.sizes)
    alarm.near(off, 0, 1, of=len(off))
    assert (np.abs(off) < 2).mean() > 0.8
    assert found.telling(2)[0][0].name in {"ward", "age"}


def counted_with(counts: list[Any], errors: list[Any]) -> Descriptions:
    """What is told of two groups in columns of these noisy counts and standard errors, (2, m) each."""
    named = {f"c{j}": [str(v) for v in range(len(each[0]) - 1)] for j, each in enumerate(counts)}
    details = {"columns": range(len(counts)), "edges": [[]] * len(counts), "counts": counts, "errors": errors}
    return told(pages.made(1, 2, problem={"described": named}, details={"described": details}))


COUNTS = [[[700.0, 200, 100], [100, 350, 30]], [[690.0, 330], [190, 300]]]
ERRORS = [[[5.0, 10, 20], [30, 8, 4]], [[12.0, 25], [9, 40]]]


def test_sizes_are_the_mean_of_what_columns_add_up_to_each_weighted_by_its_precision() -> None:
    found = counted_with(COUNTS, ERRORS)
    variances = np.array([np.square(each).sum(axis=1) for each in ERRORS])
    sums = np.array([np.sum(each, axis=1) for each in COUNTS])
    assert found.size_errors == pytest.approx((1 / variances).sum(axis=0) ** -0.5)
    assert found.sizes == pytest.approx((sums / variances).sum(axis=0) / (1 / variances).sum(axis=0))


def test_errors_of_shares_are_those_of_counts_and_sizes_carried_through_the_adding_up() -> None:
    """To first order, by moving each count and the size a little: counts add up to the size, and are divided by it."""
    found = counted_with(COUNTS, ERRORS)
    for column, counts, errors in zip(found.columns, COUNTS, ERRORS, strict=True):
        noisy, own = np.array(counts), np.square(errors)
        groups = zip(noisy, own, found.sizes, found.size_errors**2, column.shares, column.errors, strict=True)
        every = noisy.sum(axis=0), own.sum(axis=0), found.sizes.sum(), (found.size_errors**2).sum()
        for values, variances, size, size_variance, shares, stated in (
            *groups,
            (*every, column.whole, column.whole_errors),
        ):
            m = len(values)

            def share(x: Any, m: int = m) -> Any:
                return (x[:m] + (x[m] - x[:m].sum()) / m) / x[m]

            at, step = np.array([*values, size]), 1e-3
            assert share(at) == pytest.approx(shares)
            slopes = np.array([(share(at + step * e) - share(at - step * e)) / (2 * step) for e in np.eye(m + 1)])
            assert stated == pytest.approx(np.sqrt(np.array([*variances, size_variance]) @ slopes**2), rel=1e-5)


def test_the_error_of_a_difference_from_all_rows_knows_that_a_group_is_a_part_of_them() -> None:
    """All rows' share is the mean of the groups', weighted by sizes: of 100, 300 and 600 rows."""
    parts, errors = np.array([0.1, 0.3, 0.6]), np.array([[0.05, 0.02], [0.03, 0.04], [0.01, 0.015]])
    counts = 1000 * parts[:, None] * [[0.5, 0.5], [0.2, 0.8], [0.9, 0.1]]
    whole = np.sqrt(parts**2 @ errors**2)
    column = DescribedColumn("c", ("a", "b"), None, counts, counts / counts.sum(1, keepdims=True), errors,
                             counts.sum(axis=0) / 1000, whole)  # fmt: skip
    for group in range(3):
        away = np.eye(3)[group] - parts
        assert column.above_errors[group] == pytest.approx(np.sqrt(away**2 @ errors**2))


def test_two_answers_are_put_together_each_weighted_by_its_precision() -> None:
    one = Answered((np.array([[100.0, 40.0]]), np.array([[10.0]])), (np.array([[4.0, 100.0]]), np.array([[9.0]])))
    two = Answered((np.array([[110.0, 20.0]]), np.array([[40.0]])), (np.array([[16.0, 25.0]]), np.array([[1.0]])))
    for both in (one.beside(two), two.beside(one)):
        assert [each.tolist() for each in both.counts] == [[[102.0, 24.0]], [[37.0]]]
        assert [each.tolist() for each in both.variances] == [[[pytest.approx(3.2), 20.0]], [[pytest.approx(0.9)]]]


def many() -> tuple[Request, Any]:
    """More columns than are described: three that tell groups apart, and twelve that do not."""
    g = np.random.default_rng(5)
    noise = {f"n{j}": g.uniform(0, 10, len(TABLE)) for j in range(12)}
    names, bounds = [*noise, "ward", "stay", "smoker"], BOUNDS | dict.fromkeys(noise, (0, 10))
    return request(bounds=bounds, describe=names), rows(TABLE.assign(**noise), names, bounds=bounds)


def test_of_many_columns_the_telling_ones_are_chosen_and_counted_twice() -> None:
    """Two rounds, whose buckets are as many whatever is chosen; of the chosen both answers are put together."""
    asked, population = many()
    result = fit(asked, population)
    columns = told(result).columns
    assert len(columns) == 8
    assert {"ward", "stay", "smoker"} <= {column.name for column in columns}
    plan = prepare(asked, (), chosen_columns=population.selection)
    assert plan.price.endswith("Of these columns the 8 that tell the groups apart best are released.")
    assert "that tell" not in planned().price
    first, second = forecast(plan.composed.value, plan.problem, PublicRng.from_seed(1))[-2:]
    assert [len(part.cells.space.sizes) for part in (*first.parts, *second.parts)] == [15, 8]
    assert set(second.parts[0].cells.space.sizes) == {48}
    one, two = (part.channel.events[0].spent.amount for part in (*first.parts, *second.parts))
    assert one == pytest.approx(two / 2)
    errors = result.details["described"]["errors"][0][0][0]
    assert errors == pytest.approx((15 / one * 8 / two / (15 / one + 8 / two)) ** 0.5, 0.01)


def test_a_description_costs_its_share_and_is_said_beforehand() -> None:
    plan = planned(describe_share=0.2)
    budget = plan.problem.budget
    (*others, last) = forecast(plan.composed.value, plan.problem, PublicRng.from_seed(1))
    spent = sum(event.spent.amount for event in last.events)
    assert spent == pytest.approx(0.2 * budget.amount)
    assert spent + sum(e.spent.amount for r in others for e in r.events) <= budget.amount * (1 + 1e-9)
    said = "Description: 20.0% of the budget counts what each group's rows hold in ward, stay, smoker, age"
    assert said in plan.price
    error = plan.composed.value.error(plan.problem)
    assert error == pytest.approx(((4 if budget.measure == "gaussian" else 2) / spent) ** 0.5, rel=0.01)
    assert "round" in explain(request(), (), rows().selection).text
    plain = prepare(request(describe=()), (), chosen_columns=rows().selection.clustered)
    assert planned().choice.error > plain.choice.error


def test_a_description_that_says_little_is_warned_of() -> None:
    little, much = (" ".join(map(str, before(planned(epsilon=epsilon)))) for epsilon in (0.02, 1.0))
    assert "counts of the description have a standard error of" in little
    assert "description" not in much


def test_the_columns_that_were_chosen_stay_chosen_where_a_run_goes_on(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sums of floats may differ in the last bit on another machine, and with them which of two columns tells more."""
    asked, population = many()
    account = Account(ledger=ledger.path, dataset="mine")
    first = fit(asked, population, account=account)
    monkeypatch.setattr(Answered, "most_telling", lambda self: list(range(8)))
    again = fit(asked, population, account=attrs.evolve(account, resume=ledger.runs()[-1].id))
    assert first.details["described"]["columns"] != list(range(8))
    assert again.details["described"] == first.details["described"]


def test_python_takes_one_name_and_positions_of_an_array() -> None:
    model = partial(KMeans, 3, epsilon=1.0, delta=1e-6, rows=6000)
    named = model(columns=COLUMNS, bounds=BOUNDS, describe="stay").fit(TABLE)
    placed = model(bounds=(0, 200), describe=[1]).fit(TABLE[COLUMNS].to_numpy())
    for fitted, name in ((named, "stay"), (placed, "1")):
        assert [column.name for column in told(fitted.result_).columns] == [name]


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"bounds": "ball:100"}, "a ball bounds the clustered columns alone"),
        ({"bounds": {**BOUNDS, "stay": "unknown"}}, "'stay' is described only, and its range is not known"),
        ({"bounds": {"age": (0, 1), "weight": (0, 1)}}, "no bounds for column stay, which groups"),
        ({"method": "sphere-packing"}, "cannot describe its groups"),
        ({"trust": "shuffled"}, r"\(Shuffled trust\) has no oracle for such counts"),
    ],
)
def test_what_cannot_be_described_is_refused_with_the_reason(given: dict[str, Any], why: str) -> None:
    population = rows(described=["stay"], categories=None, bounds=given.get("bounds", BOUNDS))
    with pytest.raises(InvalidInput, match=why):
        planned(population, **given, describe=["stay"])


def test_what_is_clustered_within_a_ball_can_be_described() -> None:
    ball: dict[str, Any] = {"bounds": "ball:100"}
    assert planned(rows(described=["age"], categories=None, **ball), **ball, describe=["age"]).price


def test_damaged_descriptions_are_said_to_be() -> None:
    result = run()
    for broken in ({"columns": [7]}, {"counts": [[1.0]]}, {"errors": "x"}):
        details = result.details | {"described": result.details["described"] | broken}
        with pytest.raises(CloisterError, match="description of its groups is damaged"):
            descriptions_of(attrs.evolve(result, details=details))
    assert descriptions_of(attrs.evolve(result, details={})) is None
