"""The ledger in one process: lifetimes, reservations, journals, errors."""

from __future__ import annotations

import math
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from cloister.accounting import Cost, Ledger, Lifetime, Run, Total, delta_of_rho, rho_of
from cloister.accounting.ledger import database
from cloister.core.budget import Budget, Event, Measure
from cloister.core.errors import BudgetExceeded, CloisterError, Damaged, InvalidInput, Refused, UnknownName
from cloister.core.record import Journal, Lookup, Marking, inside, mark_of, marks_of_options

PURE = Total(0.25)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    book = Ledger.open(tmp_path / "a ledger? #1.db", create=True)
    book.declare("people", 1.0, 1e-6)
    return book


def reserve(
    book: Ledger,
    total: Total = PURE,
    *,
    dataset: str = "people",
    plan: str = "plan",
    measures: tuple[Measure, ...] = (),
) -> Run:
    found: tuple[Measure, ...] = measures or ("gaussian" if total.delta else "pure",)
    return book.reserve(dataset, total, total.measured(found), plan, b"public seed")


def look(values: Any, round: int = 0) -> Lookup:
    array = np.asarray(values, np.float64)
    return Lookup(round, 2, 1, False, np.arange(len(array), dtype=np.int64), array)


def test_a_new_ledger_is_its_owners_and_one_that_was_opened_to_a_group_stays_so(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        book = Ledger.open(tmp_path / "book.db", create=True)
    finally:
        os.umask(before)
    assert book.path.stat().st_mode & 0o777 == 0o600
    book.path.chmod(0o660)
    book.declare("people", 1.0)
    reserve(Ledger.open(book.path, create=True))
    assert book.path.stat().st_mode & 0o777 == 0o660


# lifetimes


def test_runs_are_admitted_until_the_epsilons_add_up(ledger: Ledger) -> None:
    for _ in range(4):
        reserve(ledger)
    with pytest.raises(
        BudgetExceeded, match=r"data set 'people' has epsilon 0, delta 1e-06 left, epsilon 0.25"
    ) as error:
        reserve(ledger)
    assert error.value.left == "epsilon 0, delta 1e-06"


def test_ten_tenths_are_one_whatever_floating_point_says(ledger: Ledger) -> None:
    for _ in range(10):
        reserve(ledger, Total(0.1))
    with pytest.raises(BudgetExceeded):
        reserve(ledger, Total(1e-6))


def test_deltas_add_up_too_and_pure_runs_cost_none(ledger: Ledger) -> None:
    reserve(ledger, Total(0.1, 9e-7))
    with pytest.raises(BudgetExceeded, match="delta 1e-07 left"):
        reserve(ledger, Total(0.1, 2e-7))
    ledger.reserve("people", Total(0.1, 2e-7), Budget("pure", 0.1), "plan", b"")
    (status,) = ledger.status()
    assert status.spent.delta == 9e-7


def test_a_lifetime_in_zcdp_admits_what_its_rho_pays_for(tmp_path: Path) -> None:
    book = Ledger.open(tmp_path / "ledger", create=True)
    book.declare("people", 1.0, 1e-6, "zcdp")
    small = Total(0.1, 1e-7)
    mu2 = small.measured(["gaussian"]).amount
    for _ in range(int(rho_of(1.0, 1e-6) / (mu2 / 2))):
        reserve(book, small)
    with pytest.raises(BudgetExceeded, match=r"has rho \S+ \(alone: epsilon \S+ at delta 1e-06\) left, rho"):
        reserve(book, small)
    assert len(book.runs()) > 10  # more than basic composition allows


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.floats(0.001, 0.6), st.sampled_from(["pure", "gaussian", "zcdp"])), max_size=20))
def test_what_a_filter_admits_is_always_within_the_lifetime(asked: list[tuple[float, Any]]) -> None:
    total = Total(1.0, 1e-6)
    for composition in ("basic", "zcdp"):
        life = Lifetime("people", total, composition)
        admitted: list[Cost] = []
        for epsilon, measure in asked:
            one = Total(epsilon, 1e-7)
            cost = Cost.reserved(one, one.measured([measure]))
            try:
                life.admit(Cost.summed(admitted), cost)
            except BudgetExceeded:
                continue
            admitted.append(cost)
        spent = Cost.summed(admitted)
        if composition == "basic":
            assert spent.epsilon <= 1.0 + 1e-8
            assert spent.delta <= 1e-6 * (1 + 1e-8)
        else:
            assert delta_of_rho(spent.rho, 1.0) <= 1e-6 * (1 + 1e-6)


def test_a_finished_run_counts_for_ever(ledger: Ledger) -> None:
    """What it spent is never free again, whichever run is asked for next."""
    run = reserve(ledger, Total(0.75))
    run.finish([Event("a", Budget("pure", 0.75))])
    with pytest.raises(BudgetExceeded, match=r"epsilon 0\.25, delta 1e-06 left, epsilon 0\.5"):
        reserve(ledger, Total(0.5))
    reserve(ledger, Total(0.25))


def test_finished_runs_count_in_rho_too(tmp_path: Path) -> None:
    book = Ledger.open(tmp_path / "ledger", create=True)
    book.declare("people", 1.0, 1e-6, "zcdp")
    total = Total(1.0, 1e-6)
    budget = Budget("zcdp", total.measured(["zcdp"]).amount)
    book.reserve("people", total, budget.split(3, 1)[0], "plan", b"").finish([Event("a", budget.split(3, 1)[0])])
    with pytest.raises(BudgetExceeded, match="left, rho"):
        book.reserve("people", total, budget.over(2), "plan", b"")
    book.reserve("people", total, budget.over(4), "plan", b"")


def test_a_lifetime_in_zcdp_admits_no_run_with_a_delta_of_its_own(tmp_path: Path) -> None:
    """All of the lifetime's delta pays for the conversion from rho: thresholds would spend it twice."""
    book = Ledger.open(tmp_path / "ledger", create=True)
    book.declare("people", 1.0, 1e-6, "zcdp")
    for measures in (["pure"], ["pure", "gaussian"]):
        with pytest.raises(Refused, match="no delta left for thresholds"):
            book.reserve("people", Total(0.1, 1e-7), Total(0.1, 1e-7).measured(measures, uses_delta=True), "plan", b"")
    assert book.runs() == ()


def test_nobody_can_write_between_the_sum_of_a_reservation_and_its_entry(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise two processes would each find the budget that is left, and both take it."""
    admit, tried = Lifetime.admit, list[bool]()

    def interrupted(self: Lifetime, before: Cost, asked: Cost) -> None:
        other = sqlite3.connect(ledger.path, timeout=0, isolation_level=None)
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            other.execute("begin immediate")
        other.close()
        tried.append(True)
        admit(self, before, asked)

    monkeypatch.setattr(Lifetime, "admit", interrupted)
    reserve(ledger)
    assert tried == [True]


def test_an_exact_run_is_never_admitted(ledger: Ledger) -> None:
    with pytest.raises(InvalidInput, match="no privacy"):
        ledger.reserve("people", Total(0.1), Budget("exact", math.inf), "plan", b"")


def test_a_lifetime_cannot_be_changed_but_may_be_repeated(ledger: Ledger) -> None:
    ledger.declare("people", 1.0, 1e-6)
    for change in [(2.0, 1e-6, "basic"), (1.0, 1e-5, "basic"), (1.0, 1e-6, "zcdp")]:
        with pytest.raises(Refused, match=r"declared with epsilon 1.0, delta 1e-06, composition basic"):
            ledger.declare("people", *change)  # type: ignore[arg-type]


def test_wrong_declarations_are_refused(ledger: Ledger) -> None:
    with pytest.raises(InvalidInput, match="epsilon"):
        ledger.declare("others", math.nan)
    with pytest.raises(InvalidInput, match="delta > 0"):
        ledger.declare("others", 1.0, 0.0, "zcdp")
    with pytest.raises(InvalidInput, match="'basic' or 'zcdp'"):
        ledger.declare("others", 1.0, 1e-6, "rdp")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="name"):
        ledger.declare("", 1.0)


def test_an_undeclared_data_set_is_unknown_and_near_names_are_offered(ledger: Ledger) -> None:
    with pytest.raises(UnknownName, match="no data set 'poeple': did you mean people"):
        reserve(ledger, dataset="poeple")
    with pytest.raises(UnknownName, match="data set"):
        ledger.runs("poeple")


# a run's end


def test_a_reservation_stays_spent_until_the_run_ends_and_then_the_rest_returns(ledger: Ledger) -> None:
    run = reserve(ledger)
    run.open_round(0, "digest")
    assert ledger.status()[0].left == "epsilon 0.75, delta 1e-06"
    run.finish([Event("a", Budget("pure", 0.125))])
    assert ledger.status()[0].left == "epsilon 0.875, delta 1e-06"


def test_a_run_that_ends_without_its_events_keeps_everything_spent(ledger: Ledger) -> None:
    reserve(ledger).finish()
    assert ledger.status()[0].spent.epsilon == 0.25


def test_a_run_that_opened_rounds_cannot_claim_to_have_spent_nothing(ledger: Ledger) -> None:
    run = reserve(ledger)
    run.open_round(0, "digest")
    with pytest.raises(InvalidInput, match="events of all of them"):
        run.finish([])


def test_a_run_that_asked_nothing_returns_everything(ledger: Ledger) -> None:
    reserve(ledger).finish([])
    assert ledger.status()[0].spent == Cost(0.0, 0.0, 0.0)


def test_a_run_never_ends_with_more_spent_than_reserved(ledger: Ledger) -> None:
    run = reserve(ledger, Total(0.5, 1e-7))
    run.finish([Event("a", Budget("gaussian", 1.0))])
    assert ledger.status()[0].spent.epsilon == 0.5


def test_a_gaussian_run_returns_epsilon_at_its_own_delta_and_keeps_the_delta(ledger: Ledger) -> None:
    total = Total(0.5, 1e-7)
    run = reserve(ledger, total)
    half = total.measured(["gaussian"]).over(2)
    run.finish([Event("a", half, 3, 2.0**20)])
    spent = ledger.status()[0].spent
    assert 0.3 < spent.epsilon < 0.4
    assert (spent.delta, spent.rho) == (1e-7, half.amount / 2)


def test_pure_noise_that_was_paid_in_rho_is_recorded_with_its_own_epsilon_and_without_delta(ledger: Ledger) -> None:
    """Before, this run of 0.22 kept all of epsilon 1 and delta 1e-6."""
    total = Total(1.0, 1e-6)
    budget = total.measured(["pure", "gaussian"])
    run = reserve(ledger, total, measures=("pure", "gaussian"))
    assert ledger.status()[0].spent == Cost(1.0, 1e-6, budget.amount)
    run.finish([Event("laplace", budget, 3, pure=budget.epsilon)])
    assert budget.epsilon < 0.23
    assert ledger.status()[0].spent == Cost(budget.epsilon, 0.0, budget.amount)


def test_a_run_that_ends_returns_delta_only_if_its_epsilon_holds_without_it(ledger: Ledger) -> None:
    """Forty pure events add up to 1.4, beyond what was reserved: in rho they cost less, and that needs the delta."""
    total = Total(1.0, 1e-6)
    budget = total.measured(["pure", "gaussian"])
    each = budget.over(40)
    run = reserve(ledger, total, measures=("pure", "gaussian"))
    run.finish([Event("laplace", each, 3, pure=each.epsilon)] * 40)
    (spent,) = (status.spent for status in ledger.status())
    assert 40 * each.epsilon > 1.3
    assert spent.epsilon == pytest.approx(1.0)
    assert spent.delta == 1e-6


def test_a_finished_run_can_neither_go_on_nor_be_resumed(ledger: Ledger) -> None:
    run = reserve(ledger)
    run.finish()
    with pytest.raises(Refused, match="finished"):
        run.open_round(0, "digest")
    with pytest.raises(Refused, match="finished"):
        run.finish()
    with pytest.raises(Refused, match="finished"):
        ledger.resume(run.id, "people", "plan", same_rows=True)


# journals


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 5), st.integers(0, 3), st.randoms(use_true_random=False), st.booleans())
def test_values_come_back_bit_for_bit(tmp_path_factory: Any, rows: int, width: int, rng: Any, error: bool) -> None:
    book = Ledger.open(tmp_path_factory.mktemp("bits") / "ledger", create=True)
    book.declare("people", 1.0)
    shape = (rows, width) if width else (rows,)
    bits = np.array([rng.getrandbits(64) for _ in range(rows * max(width, 1))], np.uint64)  # NaNs with payload too
    values = bits.view(np.float64).reshape(shape)
    ids = np.array([rng.getrandbits(62) for _ in range(rows)], np.int64)
    run = reserve(book)
    run.open_round(0, "digest")
    run.write(Lookup(0, 3, 7, error, ids, values))
    (back,) = book.resume(run.id, "people", "plan", same_rows=True).record.lookups
    assert (back.round, back.question, back.level, back.error) == (0, 3, 7, error)
    assert (back.values.shape, back.values.dtype, back.ids.dtype) == (shape, np.float64, np.int64)
    assert back.values.tobytes() == values.tobytes()
    assert back.ids.tobytes() == ids.tobytes()
    assert back.values.flags.writeable


def test_a_resumed_run_has_the_record_the_seed_and_the_data_set_of_the_first(ledger: Ledger) -> None:
    run: Run = reserve(ledger)
    journal: Journal = run
    journal.open_round(0, "first")
    journal.write(look([1.0, 2.0]))
    journal.close_round(0)
    journal.write(look([-0.0]))
    journal.open_round(1, "second")
    again = ledger.resume(run.id, "people", "plan", same_rows=True)
    assert (again.id, again.dataset, again.seed) == (run.id, "people", b"public seed")
    assert (again.record.digests, again.record.closed) == (["first", "second"], 1)
    assert [x.values.tolist() for x in again.record.lookups] == [[1.0, 2.0], [-0.0]]
    assert run.record.digests == []


def test_an_open_round_may_be_opened_again_with_the_same_digest_only(ledger: Ledger) -> None:
    run = reserve(ledger)
    run.open_round(0, "first")
    run.open_round(0, "first")
    with pytest.raises(Refused, match="opened as first, now it is other"):
        run.open_round(0, "other")
    with pytest.raises(Refused, match="1 rounds were opened"):
        run.open_round(2, "third")
    with pytest.raises(Refused, match="opened before"):
        run.open_round(-1, "negative")
    assert ledger.runs()[0].rounds == 1


def test_nothing_is_written_for_a_round_that_was_never_opened(ledger: Ledger) -> None:
    run = reserve(ledger)
    with pytest.raises(Refused, match="never opened"):
        run.write(look([1.0]))
    with pytest.raises(Refused, match="never opened"):
        run.close_round(0)
    with pytest.raises(InvalidInput, match=r"\(3,\) and \(2,\)"):
        run.write(Lookup(0, 0, 0, False, np.arange(3), np.zeros(2)))


ENTRIES: list[Callable[[Run], None]] = [
    lambda run: run.open_round(1, "second"),
    lambda run: run.open_round(0, "first"),
    lambda run: run.write(look([1.0])),
    lambda run: run.close_round(0),
    lambda run: run.finish(),
]


@pytest.mark.parametrize("entry", ENTRIES)
def test_a_process_that_was_replaced_can_write_nothing_more(ledger: Ledger, entry: Callable[[Run], None]) -> None:
    old = reserve(ledger)
    old.open_round(0, "first")
    new = ledger.resume(old.id, "people", "plan", same_rows=True)
    with pytest.raises(Refused, match="resumed by another process"):
        entry(old)
    assert (ledger.runs()[0].rounds, ledger.runs()[0].lookups, ledger.runs()[0].state) == (1, 0, "open")
    entry(new)


def test_resuming_needs_the_same_data_set_and_plan_and_a_run_that_exists(ledger: Ledger) -> None:
    """Otherwise one data set's budget would pay for another one's rows."""
    ledger.declare("others", 0.25)
    run = reserve(ledger)
    with pytest.raises(Refused, match="is on data set 'people', not 'others'"):
        ledger.resume(run.id, "others", "plan")
    with pytest.raises(Refused, match="reserved for plan plan, this plan is other"):
        ledger.resume(run.id, "people", "other")
    run.open_round(0, "still mine")
    with pytest.raises(UnknownName, match="no run 'nobody'"):
        ledger.resume("nobody", "people", "plan")


def test_an_owner_does_not_show_in_a_run(ledger: Ledger) -> None:
    assert "owner" not in repr(reserve(ledger))


def test_runs_tell_what_happened(ledger: Ledger) -> None:
    first, second = reserve(ledger), reserve(ledger, plan="other")
    first.open_round(0, "digest")
    first.write(look([1.0]))
    first.finish()
    ledger.declare("others", 0.25)
    reserve(ledger, dataset="others")
    assert [(s.dataset, s.left) for s in ledger.status()] == [
        ("others", "epsilon 0, delta 0"),
        ("people", "epsilon 0.5, delta 1e-06"),
    ]
    one, two = ledger.runs("people")
    assert (one.id, one.state, one.plan, one.rounds, one.lookups) == (first.id, "done", "plan", 1, 1)
    assert (two.id, two.state, two.plan, two.finished) == (second.id, "open", "other", None)
    assert one.started.endswith("Z")
    assert one.finished is not None
    assert (one.measure, one.cost) == ("pure", Cost(0.25, 0.0, 0.25**2 / 2))


# rows


def rows(**marks: bytes) -> Marking:
    """Marks that depend on the key, as a population's do."""
    return lambda key: {what: mark_of(key, [value.hex()]) for what, value in marks.items()}


PAPER = {"sizes": b"1", "times": b"2"}


def begun(book: Ledger, **marks: bytes) -> Run:
    return book.reserve("people", PURE, PURE.measured(["pure"]), "plan", b"public seed", rows(**marks))


def test_a_run_goes_on_with_the_rows_that_it_began_with_only(ledger: Ledger) -> None:
    run = begun(ledger, **PAPER)
    held = ledger.resume(run.id, "people", "plan", rows(**PAPER))
    moved = rows(**{**PAPER, "times": b"3"})
    with pytest.raises(Refused, match=r"other rows, or they have moved: times differ.*--same-rows"):
        ledger.resume(run.id, "people", "plan", moved)
    held.open_round(0, "still mine")
    with pytest.raises(Refused, match="number, sizes, times differ"):
        ledger.resume(run.id, "people", "plan", rows(number=b"4"))


def test_whoever_says_that_rows_are_the_same_goes_on_and_is_not_asked_again(ledger: Ledger) -> None:
    run, moved = begun(ledger, **PAPER), rows(sizes=b"1", times=b"3")
    ledger.resume(run.id, "people", "plan", moved, same_rows=True)
    ledger.resume(run.id, "people", "plan", moved)
    with pytest.raises(Refused, match="times differ"):
        ledger.resume(run.id, "people", "plan", rows(**PAPER))


@pytest.mark.parametrize(("before", "after"), [(PAPER, {}), ({}, PAPER)])
def test_rows_that_nobody_can_compare_need_somebody_who_says_that_they_are_the_same(
    ledger: Ledger, before: dict[str, bytes], after: dict[str, bytes]
) -> None:
    run = begun(ledger, **before)
    with pytest.raises(Refused, match=r"nobody can tell .*--same-rows"):
        ledger.resume(run.id, "people", "plan", rows(**after))
    ledger.resume(run.id, "people", "plan", rows(**after), same_rows=True)


def test_a_run_whose_caller_gives_no_marks_goes_on_only_where_somebody_says_that_rows_are_the_same(
    ledger: Ledger,
) -> None:
    for run in (begun(ledger, **PAPER), reserve(ledger)):
        with pytest.raises(Refused, match=r"nobody can tell .*--same-rows"):
            ledger.resume(run.id, "people", "plan")
        run.open_round(0, "still mine")
        ledger.resume(run.id, "people", "plan", same_rows=True)
    run = begun(ledger, **PAPER)
    ledger.resume(run.id, "people", "plan", same_rows=True)
    with pytest.raises(Refused, match="times differ"):
        ledger.resume(run.id, "people", "plan", rows(**PAPER | {"times": b"9"}))


def read(encoding: str, **marks: bytes) -> Marking:
    return lambda key: {**rows(**marks)(key), **marks_of_options({"--encoding": [encoding]})}


def test_what_is_read_otherwise_is_refused_whoever_vouches_for_the_rows(ledger: Ledger) -> None:
    run = ledger.reserve("people", PURE, PURE.measured(["pure"]), "plan", b"public seed", read("utf-8", **PAPER))
    for same_rows in (False, True):
        with pytest.raises(Refused, match="read its rows otherwise: --encoding differ"):
            ledger.resume(run.id, "people", "other plan", read("latin-1", **PAPER), same_rows)
    ledger.path.with_name(f"{ledger.path.name}.key").unlink()
    with pytest.raises(Refused, match="--encoding differ"):
        ledger.resume(run.id, "people", "plan", read("latin-1", **PAPER), same_rows=True)
    with pytest.raises(Refused, match="sizes, times differ"):
        ledger.resume(run.id, "people", "plan", read("utf-8", **PAPER))
    ledger.resume(run.id, "people", "plan", rows(**PAPER), same_rows=True)


@pytest.mark.parametrize("same_rows", [False, True])
def test_a_run_of_before_there_was_an_option_goes_on_without_it_and_not_with_it(
    ledger: Ledger, same_rows: bool
) -> None:
    run = ledger.reserve("people", PURE, PURE.measured(["pure"]), "plan", b"public seed", read("utf-8", **PAPER))

    def later(comment: list[str]) -> Marking:
        return lambda key: read("utf-8", **PAPER)(key) | marks_of_options({"--comment": comment})

    with pytest.raises(Refused, match="read its rows otherwise: --comment differ"):
        ledger.resume(run.id, "people", "plan", later(["#"]), same_rows)
    ledger.resume(run.id, "people", "plan", later([]), same_rows)


@pytest.mark.parametrize("size", [0, 1, 16, 31, 33])
def test_a_key_that_was_cut_short_is_not_used(ledger: Ledger, size: int) -> None:
    """Whoever guesses a short key learns from marks whether two runs had the same rows."""
    key = ledger.path.with_name(f"{ledger.path.name}.key")
    first = begun(ledger, **PAPER)
    cut = (2 * key.read_bytes())[:size]
    key.write_bytes(cut)
    with pytest.raises(Refused, match="sizes, times differ"):
        ledger.resume(first.id, "people", "plan", rows(**PAPER))
    begun(ledger, **PAPER)
    assert len(key.read_bytes()) == 32
    assert not size or not key.read_bytes().startswith(cut[:32])


def test_two_runs_that_read_their_rows_at_once_do_not_both_take_what_is_left(ledger: Ledger) -> None:
    """Each is admitted before its rows are read, and again after: meanwhile the other one may have begun."""

    def meanwhile(key: bytes) -> dict[str, bytes]:
        reserve(ledger, Total(1.0))
        return rows(**PAPER)(key)

    with pytest.raises(BudgetExceeded):
        ledger.reserve("people", PURE, PURE.measured(["pure"]), "plan", b"", meanwhile)
    (status,) = ledger.status()
    assert status.spent.epsilon == 1.0


def test_marks_tell_nothing_without_the_key_beside_the_ledger(ledger: Ledger) -> None:
    """Equal rows have other marks in each run; the key is not in the ledger, and its owner's alone."""
    first, second = begun(ledger, **PAPER), begun(ledger, **PAPER)
    key = ledger.path.with_name(f"{ledger.path.name}.key")
    db = sqlite3.connect(ledger.path)
    found = dict(db.execute("select run, digest from marks where what = 'sizes'"))
    db.close()
    assert found[first.id] != found[second.id]
    assert key.stat().st_mode & 0o777 == 0o600
    secret = key.read_bytes()
    assert len(secret) == 32
    assert secret not in ledger.path.read_bytes()
    assert found[first.id] == mark_of(inside(secret, first.id), [b"1".hex()])
    assert {file.name for file in ledger.path.parent.iterdir()} == {ledger.path.name, key.name}


def test_a_run_that_is_refused_makes_no_key_and_reads_no_row(ledger: Ledger) -> None:
    def unread(key: bytes) -> dict[str, bytes]:
        raise AssertionError("rows were read")

    reserve(ledger, Total(1.0))
    for dataset, error in (("people", BudgetExceeded), ("nobody", UnknownName)):
        with pytest.raises(error):
            ledger.reserve(dataset, PURE, PURE.measured(["pure"]), "plan", b"", unread)
    assert [file.name for file in ledger.path.parent.iterdir()] == [ledger.path.name]


def test_a_ledger_without_its_key_asks(ledger: Ledger) -> None:
    run = begun(ledger, **PAPER)
    ledger.path.with_name(f"{ledger.path.name}.key").unlink()
    with pytest.raises(Refused, match="sizes, times differ"):
        ledger.resume(run.id, "people", "plan", rows(**PAPER))
    ledger.resume(run.id, "people", "plan", rows(**PAPER), same_rows=True)
    ledger.resume(run.id, "people", "plan", rows(**PAPER))


# finished runs, again


def test_a_finished_run_is_replayed_as_it_was_and_cannot_write(ledger: Ledger) -> None:
    run = reserve(ledger)
    assert ledger.replay(run.id, "people", "plan") is None
    run.open_round(0, "first")
    run.write(look([1.0, 2.0]))
    run.close_round(0)
    run.finish([Event("a", Budget("pure", 0.125))])
    before = ledger.status()
    again = ledger.replay(run.id, "people", "plan")
    assert again is not None
    assert (again.seed, again.record.digests, again.record.closed) == (b"public seed", ["first"], 1)
    assert [x.values.tolist() for x in again.record.lookups] == [[1.0, 2.0]]
    with pytest.raises(Refused, match="finished"):
        again.write(look([3.0]))
    assert ledger.status() == before


def test_a_replay_needs_the_same_plan_and_data_set(ledger: Ledger) -> None:
    ledger.declare("others", 1.0)
    run = reserve(ledger)
    run.finish()
    with pytest.raises(Refused, match="this plan is other"):
        ledger.replay(run.id, "people", "other")
    with pytest.raises(Refused, match="not 'others'"):
        ledger.replay(run.id, "others", "plan")
    with pytest.raises(UnknownName, match="no run 'nobody'"):
        ledger.replay("nobody", "people", "plan")


# files


def test_a_missing_ledger_is_not_made_by_accident(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="no ledger at"):
        Ledger.open(tmp_path / "ledger")
    with pytest.raises(InvalidInput, match="no ledger at"):
        Ledger(tmp_path / "ledger").status()
    assert not (tmp_path / "ledger").exists()


def test_a_folder_that_is_not_there_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(CloisterError, match="cannot be opened"):
        Ledger.open(tmp_path / "nowhere" / "ledger", create=True)


def test_creating_a_ledger_again_keeps_what_is_in_it(ledger: Ledger) -> None:
    reserve(ledger)
    assert len(Ledger.open(ledger.path, create=True).runs()) == 1
    assert Ledger.open(str(ledger.path)) == ledger


def garbage(path: Path) -> None:
    path.write_bytes(bytes(range(256)) * 40)


def empty(path: Path) -> None:
    path.write_bytes(b"")


def another_database(path: Path) -> None:
    path.unlink()
    edit(path, "create table things (x)")


def another_version(path: Path) -> None:
    edit(path, "pragma user_version = 2")


def cut_off(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:8192])


def overwritten(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[4096 + 100 :] = bytes(len(data) - 4196)
    path.write_bytes(bytes(data))


def edit(path: Path, statement: str) -> None:
    db = sqlite3.connect(path)
    with db:
        db.execute(statement)
    db.close()


@pytest.mark.parametrize("harm", [garbage, empty, another_database, another_version, cut_off, overwritten])
def test_a_file_that_is_no_sound_ledger_is_damaged(ledger: Ledger, harm: Callable[[Path], None]) -> None:
    reserve(ledger)
    harm(ledger.path)
    with pytest.raises(Damaged, match="use that one, not a backup" if harm is another_version else "restore a backup"):
        Ledger.open(ledger.path)


@pytest.mark.parametrize("harm", [garbage, another_database, another_version])
def test_a_file_that_is_no_ledger_is_never_written_to(ledger: Ledger, harm: Callable[[Path], None]) -> None:
    harm(ledger.path)
    before = ledger.path.read_bytes()
    with pytest.raises(Damaged):
        Ledger.open(ledger.path, create=True)
    with pytest.raises(Damaged):
        reserve(ledger)
    assert ledger.path.read_bytes() == before


def test_a_look_whose_bytes_do_not_fit_its_shape_is_damaged(ledger: Ledger) -> None:
    run = reserve(ledger)
    run.open_round(0, "first")
    run.write(look([1.0, 2.0]))
    edit(ledger.path, "update looks set shape = '3'")
    with pytest.raises(Damaged, match="do not fit its shape"):
        ledger.resume(run.id, "people", "plan", same_rows=True)
    run.close_round(0)


def test_a_ledger_that_others_hold_is_one_clear_error(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "LEDGER", attrs.evolve(database.LEDGER, patience=0.05))
    db = sqlite3.connect(ledger.path, isolation_level=None)
    db.execute("begin exclusive")
    for action in (lambda: reserve(ledger), ledger.status):
        with pytest.raises(CloisterError, match=r"other processes held it for more than 0\.05 s: try again"):
            action()
    db.execute("rollback")
    db.close()
    reserve(ledger)


def test_a_read_only_ledger_is_one_clear_error_and_can_still_be_read(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, connect = reserve(ledger), sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda name, **rest: connect(name.replace("mode=rw", "mode=ro"), **rest))
    with pytest.raises(CloisterError, match="read-only: make the file and its folder writable"):
        run.open_round(0, "first")
    assert len(ledger.runs()) == 1
