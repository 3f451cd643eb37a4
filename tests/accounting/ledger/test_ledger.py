"""The ledger in one process: lifetimes, reservations, journals, errors."""

from __future__ import annotations

import math
import os
import secrets
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cloister.accounting import Cost, Ledger, Lifetime, PrivacyTarget, Run, rho_of
from cloister.accounting.ledger.database import About
from cloister.core.budget import Budget, Event, Measure
from cloister.core.errors import BudgetExceeded, CloisterError, Damaged, InvalidInput, Refused, UnknownName
from cloister.core.fingerprints import Fingerprinter, fingerprint_of, option_fingerprints, subkey
from cloister.core.record import Lookup
from tests.accounting.ledger.books import PURE, edit, look, reserve, resumed
from tests.core.core_fakes import same


def spent(book: Ledger) -> Cost:
    (status,) = book.status()
    return status.spent


@pytest.fixture
def in_rho(tmp_path: Path) -> Ledger:
    book = Ledger.open(tmp_path / "ledger", create=True)
    book.declare("people", 1.0, 1e-6, "zcdp")
    return book


def test_a_new_ledger_is_its_owners_and_one_that_was_opened_to_a_group_stays_so(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        book = Ledger.open(tmp_path / "book.db", create=True)
    finally:
        os.umask(before)
    assert book.path.stat().st_mode & 0o777 == 0o600
    book.path.chmod(0o660)
    book.declare("people", 1.0)
    again = Ledger.open(str(book.path), create=True)
    reserve(book)
    assert (again, len(again.runs())) == (book, 1)
    assert book.path.stat().st_mode & 0o777 == 0o660


# lifetimes


def test_runs_are_admitted_until_the_epsilons_add_up(ledger: Ledger) -> None:
    for _ in range(4):
        reserve(ledger)
    with pytest.raises(BudgetExceeded) as error:
        reserve(ledger)
    assert "data set 'people' has epsilon 0, delta 1e-06 left, epsilon 0.25" in str(error.value)
    assert error.value.remaining == "epsilon 0, delta 1e-06"


def test_ten_tenths_are_one_whatever_floating_point_says(ledger: Ledger) -> None:
    for _ in range(10):
        reserve(ledger, PrivacyTarget(0.1))
    with pytest.raises(BudgetExceeded):
        reserve(ledger, PrivacyTarget(1e-6))


def test_deltas_add_up_too_and_pure_runs_cost_none(ledger: Ledger) -> None:
    reserve(ledger, PrivacyTarget(0.1, 9e-7))
    with pytest.raises(BudgetExceeded, match="delta 1e-07 left"):
        reserve(ledger, PrivacyTarget(0.1, 2e-7))
    reserve(ledger, PrivacyTarget(0.1, 2e-7), ["pure"])
    assert spent(ledger).delta == 9e-7


def test_a_ledger_that_has_no_delta_says_that_delta_is_what_is_missing(tmp_path: Path) -> None:
    book = Ledger.open(tmp_path / "pure.db", create=True)
    book.declare("people", 1.0)
    with pytest.raises(BudgetExceeded, match=r"Delta is what is missing: the data set was declared without any"):
        reserve(book, PrivacyTarget(0.25, 1e-6))
    reserve(book, PrivacyTarget(0.25))
    with pytest.raises(BudgetExceeded) as error:
        reserve(book, PrivacyTarget(1.0))
    assert "Delta" not in str(error.value)
    with pytest.raises(InvalidInput, match="delta is what is missing"):
        book.declare("others", 1.0, composition="zcdp")


def test_a_ledger_whose_delta_is_spent_says_so(ledger: Ledger) -> None:
    reserve(ledger, PrivacyTarget(0.1, 9e-7))
    with pytest.raises(BudgetExceeded, match="Delta is what is missing: ask for a smaller"):
        reserve(ledger, PrivacyTarget(0.1, 2e-7))


def test_a_pure_run_pays_for_the_delta_of_its_thresholds_and_gets_back_what_they_did_not_spend(ledger: Ledger) -> None:
    total = PrivacyTarget(0.25, 6e-7)
    run = reserve(ledger, total, ["pure"], uses_delta=True)
    with pytest.raises(BudgetExceeded, match="delta 4e-07 left"):
        reserve(ledger, total, ["pure"], uses_delta=True)
    run.finish([Event("thresholded", Budget("pure", 0.25), delta=5e-7)])
    assert (spent(ledger).epsilon, spent(ledger).delta) == (0.25, 5e-7)


def test_a_lifetime_in_zcdp_admits_what_its_rho_pays_for(in_rho: Ledger) -> None:
    small = PrivacyTarget(0.25, 1e-7)
    runs = int(rho_of(1.0, 1e-6) / (small.measured(["gaussian"]).amount / 2))
    assert runs > 4  # more than basic composition allows
    for _ in range(runs):
        reserve(in_rho, small)
    with pytest.raises(BudgetExceeded, match=r"has rho \S+ \(alone: epsilon \S+ at delta 1e-06\) left, rho"):
        reserve(in_rho, small)


def test_a_finished_run_counts_for_ever(ledger: Ledger) -> None:
    """What it spent is never free again, whichever run is asked for next."""
    run = reserve(ledger, PrivacyTarget(0.75))
    run.finish([Event("a", Budget("pure", 0.75))])
    with pytest.raises(BudgetExceeded, match=r"epsilon 0\.25, delta 1e-06 left, epsilon 0\.5"):
        reserve(ledger, PrivacyTarget(0.5))
    reserve(ledger, PrivacyTarget(0.25))


def test_finished_runs_count_in_rho_too(in_rho: Ledger) -> None:
    total = PrivacyTarget(1.0, 1e-6)
    budget = total.measured(["zcdp"])
    part = budget.split(3, 1)[0]
    in_rho.reserve("people", total, part, "plan", b"").finish([Event("a", part)])
    with pytest.raises(BudgetExceeded, match="left, rho"):
        in_rho.reserve("people", total, budget.over(2), "plan", b"")
    in_rho.reserve("people", total, budget.over(4), "plan", b"")


def test_a_lifetime_in_zcdp_admits_no_run_with_a_delta_of_its_own(in_rho: Ledger) -> None:
    """All of the lifetime's delta pays for the conversion from rho: thresholds would spend it twice."""
    measures: tuple[Sequence[Measure], ...] = ["pure"], ["pure", "gaussian"]
    for found in measures:
        with pytest.raises(Refused, match="leaves no delta for thresholds: leave out --describe-words"):
            reserve(in_rho, PrivacyTarget(0.1, 1e-7), found, uses_delta=True)
    assert in_rho.runs() == ()


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
        ledger.reserve("people", PrivacyTarget(0.1), Budget("exact", math.inf), "plan", b"")


def test_a_lifetime_cannot_be_changed_but_may_be_repeated(ledger: Ledger) -> None:
    ledger.declare("people", 1.0, 1e-6)
    for change in [(2.0, 1e-6, "basic"), (1.0, 1e-5, "basic"), (1.0, 1e-6, "zcdp")]:
        with pytest.raises(Refused, match=r"declared with epsilon 1.0, delta 1e-06, composition basic"):
            ledger.declare("people", *change)  # type: ignore[arg-type]


# a run's end


def test_a_reservation_stays_spent_until_the_run_ends_and_then_the_rest_returns(ledger: Ledger) -> None:
    run = reserve(ledger)
    run.open_round(0, "digest")
    assert ledger.status()[0].left == "epsilon 0.75, delta 1e-06"
    with pytest.raises(InvalidInput, match="events of all of them"):
        run.finish([])
    run.finish([Event("a", Budget("pure", 0.125))])
    assert ledger.status()[0].left == "epsilon 0.875, delta 1e-06"


@pytest.mark.parametrize(
    ("total", "events", "epsilon"),
    [(PURE, None, 0.25), (PURE, [], 0.0), (PrivacyTarget(0.5, 1e-7), [Event("a", Budget("gaussian", 1.0))], 0.5)],
    ids=["no word of its events", "no events", "more than it reserved"],
)
def test_a_run_that_ends_without_its_events_keeps_everything_spent(
    ledger: Ledger, total: PrivacyTarget, events: Any, epsilon: float
) -> None:
    """And one that asked nothing returns everything; more than was reserved is never spent."""
    reserve(ledger, total).finish(events)
    assert spent(ledger).epsilon == epsilon


def test_a_gaussian_run_returns_epsilon_at_its_own_delta_and_keeps_the_delta(ledger: Ledger) -> None:
    total = PrivacyTarget(0.5, 1e-7)
    half = total.measured(["gaussian"]).over(2)
    reserve(ledger, total).finish([Event("a", half, 3, 2.0**20)])
    assert 0.3 < spent(ledger).epsilon < 0.4
    assert (spent(ledger).delta, spent(ledger).rho) == (1e-7, half.amount / 2)


def test_pure_noise_that_was_paid_in_rho_is_recorded_with_its_own_epsilon_and_without_delta(ledger: Ledger) -> None:
    """Before, this run of 0.22 kept all of epsilon 1 and delta 1e-6."""
    total = PrivacyTarget(1.0, 1e-6)
    budget = total.measured(["pure", "gaussian"])
    run = reserve(ledger, total, ["pure", "gaussian"])
    assert spent(ledger) == Cost(1.0, 1e-6, budget.amount)
    run.finish([Event("laplace", budget, 3, pure=budget.epsilon)])
    assert budget.epsilon < 0.23
    assert spent(ledger) == Cost(budget.epsilon, 0.0, budget.amount)


def test_a_run_that_ends_returns_delta_only_if_its_epsilon_holds_without_it(ledger: Ledger) -> None:
    """Forty pure events add up to 1.4, beyond what was reserved: in rho they cost less, and that needs the delta."""
    total = PrivacyTarget(1.0, 1e-6)
    each = total.measured(["pure", "gaussian"]).over(40)
    run = reserve(ledger, total, ["pure", "gaussian"])
    run.finish([Event("laplace", each, 3, pure=each.epsilon)] * 40)
    assert 40 * each.epsilon > 1.3
    assert (spent(ledger).epsilon, spent(ledger).delta) == (pytest.approx(1.0), 1e-6)


def test_a_finished_run_can_neither_go_on_nor_be_resumed_but_is_replayed_as_it_was(ledger: Ledger) -> None:
    run = reserve(ledger)
    assert ledger.replay(run.id, "people", "plan") is None
    run.open_round(0, "first")
    run.write(look())
    run.close_round(0)
    run.finish([Event("a", Budget("pure", 0.125))])
    before, again = ledger.status(), ledger.replay(run.id, "people", "plan")
    assert again is not None
    assert (again.seed, again.record.digests, again.record.closed) == (b"public seed", ["first"], 1)
    assert same(again.record.lookups, [look()])
    for late in (
        lambda: run.open_round(0, "digest"),
        run.finish,
        lambda: resumed(ledger, run),
        lambda: again.write(look()),
    ):
        with pytest.raises(Refused, match="finished"):
            late()
    assert ledger.status() == before


# journals


@pytest.mark.parametrize(("shape", "error"), [((4,), False), ((3, 2), True), ((0,), True), ((0, 3), False)])
def test_values_come_back_bit_for_bit(ledger: Ledger, shape: tuple[int, ...], error: bool) -> None:
    """A NaN with its payload, and -0, too."""
    g, odd = np.random.default_rng(0), np.array([0x7FF00000000000A5, 1 << 63], np.uint64)
    words = g.integers(0, 2**64, shape, dtype=np.uint64)
    words.flat[:2] = odd[: words.size]
    given = Lookup(0, 3, 7, error, g.integers(0, 2**62, shape[0]), words.view(np.float64))
    run = reserve(ledger)
    run.open_round(0, "digest")
    run.write(given)
    (back,) = resumed(ledger, run).record.lookups
    assert same([back], [given])
    assert (back.values.dtype, back.ids.dtype) == (np.float64, np.int64)
    assert back.values.flags.writeable


def test_an_open_round_may_be_opened_again_with_the_same_digest_only(ledger: Ledger) -> None:
    run = reserve(ledger)
    run.open_round(0, "first")
    run.open_round(0, "first")
    for index, digest, told in (
        (0, "other", "opened as first, now it is other"),
        (2, "third", "1 rounds were opened"),
        (-1, "negative", "opened before it"),
    ):
        with pytest.raises(Refused, match=told):
            run.open_round(index, digest)
    assert ledger.runs()[0].rounds == 1
    run.close_round(0)
    run.open_round(1, "second")
    again = resumed(ledger, run)
    assert (again.id, again.dataset, again.seed) == (run.id, "people", b"public seed")
    assert (again.record.digests, again.record.closed) == (["first", "second"], 1)


def test_nothing_is_written_for_a_round_that_was_never_opened(ledger: Ledger) -> None:
    run = reserve(ledger)
    for entry in (lambda: run.write(look()), lambda: run.close_round(0)):
        with pytest.raises(Refused, match="never opened"):
            entry()
    with pytest.raises(InvalidInput, match=r"\(3,\) and \(2,\)"):
        run.write(Lookup(0, 0, 0, False, np.arange(3), np.zeros(2)))


ENTRIES: dict[str, Callable[[Run], None]] = {
    "open": lambda run: run.open_round(1, "second"),
    "open again": lambda run: run.open_round(0, "first"),
    "write": lambda run: run.write(look()),
    "close": lambda run: run.close_round(0),
    "finish": lambda run: run.finish(),
}


@pytest.mark.parametrize("entry", ENTRIES)
def test_a_process_that_was_replaced_can_write_nothing_more(ledger: Ledger, entry: str) -> None:
    old = reserve(ledger)
    old.open_round(0, "first")
    new = resumed(ledger, old)
    with pytest.raises(Refused, match="resumed by another process"):
        ENTRIES[entry](old)
    (found,) = ledger.runs()
    assert (found.rounds, found.lookups, found.state) == (1, 0, "open")
    ENTRIES[entry](new)


def test_resuming_and_replaying_need_the_same_data_set_and_plan_and_a_run_that_exists(ledger: Ledger) -> None:
    """Otherwise one data set's budget would pay for another one's rows."""
    ledger.declare("others", 0.25)
    run, done = reserve(ledger), reserve(ledger)
    done.finish()
    for again, known in ((ledger.resume, run), (ledger.replay, done)):
        with pytest.raises(Refused, match="not 'others'"):
            again(known.id, "others", "plan")
        with pytest.raises(Refused, match="this plan is other"):
            again(known.id, "people", "other")
        with pytest.raises(UnknownName, match="no run 'nobody'"):
            again("nobody", "people", "plan")
    run.open_round(0, "still mine")


# rows


def rows(**marks: bytes) -> Fingerprinter:
    """Marks that depend on the key, as a population's do."""
    return lambda key: {what: fingerprint_of(key, [value.hex()]) for what, value in marks.items()}


PAPER = rows(sizes=b"1", times=b"2")
MOVED = rows(sizes=b"1", times=b"3")


def compared(book: Ledger, run: Run, marks: Fingerprinter | None, same_rows: bool = False) -> Run:
    """The run, gone on with by whoever has these rows."""
    return book.resume(run.id, "people", "plan", marks, same_rows)


def test_a_run_goes_on_with_the_rows_that_it_began_with_only(ledger: Ledger) -> None:
    run = reserve(ledger, marks=PAPER)
    held = compared(ledger, run, PAPER)
    with pytest.raises(Refused, match=r"other rows, or they have moved: times differ.*--same-rows"):
        compared(ledger, run, MOVED)
    held.open_round(0, "still mine")
    with pytest.raises(Refused, match="number, sizes, times differ"):
        compared(ledger, run, rows(number=b"4"))


@pytest.mark.parametrize("same_rows", [False, True])
def test_a_run_that_finishes_while_rows_are_fingerprinted_is_not_taken_over(ledger: Ledger, same_rows: bool) -> None:
    run = reserve(ledger, marks=PAPER)

    def slow(key: bytes) -> Mapping[str, bytes]:
        run.finish()
        return PAPER(key)

    with pytest.raises(Refused, match=f"run {run.id} is finished"):
        compared(ledger, run, slow, same_rows)
    assert [found.state for found in ledger.runs()] == ["done"]


def test_whoever_says_that_rows_are_the_same_goes_on_and_is_not_asked_again(ledger: Ledger) -> None:
    run = reserve(ledger, marks=PAPER)
    compared(ledger, run, MOVED, same_rows=True)
    compared(ledger, run, MOVED)
    with pytest.raises(Refused, match="times differ"):
        compared(ledger, run, PAPER)


@pytest.mark.parametrize(("before", "after"), [(PAPER, rows()), (rows(), PAPER), (PAPER, None), (None, None)])
def test_rows_that_nobody_can_compare_need_somebody_who_says_that_they_are_the_same(
    ledger: Ledger, before: Fingerprinter | None, after: Fingerprinter | None
) -> None:
    run = reserve(ledger, marks=before)
    with pytest.raises(Refused, match=r"nobody can tell .*--same-rows"):
        compared(ledger, run, after)
    run.open_round(0, "still mine")
    compared(ledger, run, after, same_rows=True)
    if before is PAPER and after is None:
        with pytest.raises(Refused, match="times differ"):
            compared(ledger, run, MOVED)


def read(encoding: str, **said: Sequence[str]) -> Fingerprinter:
    """Args: said (by an option that there was not yet when runs began)."""
    later = {f"--{option}": values for option, values in said.items()}
    return lambda key: PAPER(key) | option_fingerprints({"--encoding": [encoding], **later})


def test_what_is_read_otherwise_is_refused_whoever_vouches_for_the_rows(ledger: Ledger) -> None:
    run = reserve(ledger, marks=read("utf-8"))
    for same_rows in (False, True):
        with pytest.raises(Refused, match="read its rows with other options: --encoding differ"):
            ledger.resume(run.id, "people", "other plan", read("latin-1"), same_rows)
        with pytest.raises(Refused, match="read its rows with other options: --comment differ"):
            compared(ledger, run, read("utf-8", comment=["#"]), same_rows)
        compared(ledger, run, read("utf-8", comment=[]), same_rows)
    key_of(ledger).unlink()
    with pytest.raises(Refused, match="--encoding differ"):
        compared(ledger, run, read("latin-1"), same_rows=True)
    with pytest.raises(Refused, match="sizes, times differ"):
        compared(ledger, run, read("utf-8"))
    compared(ledger, run, PAPER, same_rows=True)
    compared(ledger, run, PAPER)


BESIDE = ("", ".key", ".count")


def key_of(book: Ledger) -> Path:
    return book.path.with_name(f"{book.path.name}.key")


@pytest.mark.parametrize("size", [0, 1, 31, 33])
def test_a_key_that_was_cut_short_is_not_used(ledger: Ledger, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever guesses a short key learns from marks whether two runs had the same rows."""
    first, key = reserve(ledger, marks=PAPER), key_of(ledger)
    old = key.read_bytes()
    fresh = bytes(byte ^ 255 for byte in old)  # unlike the old key in every byte, which random bytes are not
    key.write_bytes((2 * old)[:size])
    monkeypatch.setattr(secrets, "token_bytes", lambda size: fresh[:size])
    with pytest.raises(Refused, match="sizes, times differ"):
        compared(ledger, first, PAPER)
    reserve(ledger, marks=PAPER)
    assert key.read_bytes() == fresh


def test_two_runs_that_read_their_rows_at_once_do_not_both_take_what_is_left(ledger: Ledger) -> None:
    """Each is admitted before its rows are read, and again after: meanwhile the other one may have begun."""

    def meanwhile(key: bytes) -> dict[str, bytes]:
        reserve(ledger, PrivacyTarget(1.0))
        return PAPER(key)

    with pytest.raises(BudgetExceeded):
        reserve(ledger, marks=meanwhile)
    assert spent(ledger).epsilon == 1.0


def test_marks_tell_nothing_without_the_key_beside_the_ledger(ledger: Ledger) -> None:
    """Equal rows have other marks in each run; the key is not in the ledger, and its owner's alone."""
    first, second, key = reserve(ledger, marks=PAPER), reserve(ledger, marks=PAPER), key_of(ledger)
    with closing(sqlite3.connect(ledger.path)) as db:
        found = dict(db.execute("select run, digest from marks where what = 'sizes'"))
    assert found[first.id] != found[second.id]
    assert key.stat().st_mode & 0o777 == 0o600
    secret = key.read_bytes()
    assert len(secret) == 32
    assert secret not in ledger.path.read_bytes()
    assert found[first.id] == fingerprint_of(subkey(secret, first.id), [b"1".hex()])
    assert {file.name for file in ledger.path.parent.iterdir()} == {f"{ledger.path.name}{end}" for end in BESIDE}


def test_a_run_that_is_refused_makes_no_key_and_reads_no_row(ledger: Ledger) -> None:
    def unread(key: bytes) -> dict[str, bytes]:
        raise AssertionError("rows were read")

    reserve(ledger, PrivacyTarget(1.0))
    for dataset, error in (("people", BudgetExceeded), ("nobody", UnknownName)):
        with pytest.raises(error):
            ledger.reserve(dataset, PURE, PURE.measured(["pure"]), "plan", b"", unread)
    assert {file.name for file in ledger.path.parent.iterdir()} == {ledger.path.name, f"{ledger.path.name}.count"}


# files


def another_database(book: Ledger) -> None:
    book.path.unlink()
    edit(book, "create table things (x)")


def overwritten(book: Ledger) -> None:
    data = book.path.read_bytes()
    book.path.write_bytes(data[:4196] + bytes(len(data) - 4196))


HARMS: dict[str, Callable[[Ledger], Any]] = {
    "garbage": lambda book: book.path.write_bytes(bytes(range(256)) * 40),
    "another database": another_database,
    "empty": lambda book: book.path.write_bytes(b""),
    "cut off": lambda book: book.path.write_bytes(book.path.read_bytes()[:8192]),
    "overwritten": overwritten,
}


@pytest.mark.parametrize("harm", HARMS)
def test_a_file_that_is_no_sound_ledger_is_damaged_and_one_that_is_none_is_never_written_to(
    ledger: Ledger, harm: str
) -> None:
    reserve(ledger)
    HARMS[harm](ledger)
    before = ledger.path.read_bytes()
    with pytest.raises(Damaged, match="restore a backup"):
        Ledger.open(ledger.path)
    if harm in ("garbage", "another database"):
        with pytest.raises(Damaged):
            Ledger.open(ledger.path, create=True)
        with pytest.raises(Damaged):
            reserve(ledger)
        assert ledger.path.read_bytes() == before


def test_a_look_whose_bytes_do_not_fit_its_shape_is_damaged(ledger: Ledger) -> None:
    run = reserve(ledger)
    run.open_round(0, "first")
    run.write(look())
    edit(ledger, "update looks set shape = '3'")
    with pytest.raises(Damaged, match="do not fit its shape"):
        resumed(ledger, run)
    run.close_round(0)


def test_a_read_only_ledger_is_one_clear_error_and_can_still_be_read(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, connect = reserve(ledger), sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda name, **rest: connect(name.replace("mode=rw", "mode=ro"), **rest))
    with pytest.raises(CloisterError, match="read-only: make the file and its folder writable"):
        run.open_round(0, "first")
    assert len(ledger.runs()) == 1


def test_a_full_disk_is_one_clear_error_and_the_run_goes_on_when_there_is_room(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, connect = reserve(ledger), sqlite3.connect
    run.open_round(0, "first")

    def full(name: str, **rest: Any) -> sqlite3.Connection:
        """With no room for a page more than the file has."""
        db = connect(name, **rest)
        db.execute("pragma max_page_count = 1")
        return db

    with monkeypatch.context() as patch:
        patch.setattr(sqlite3, "connect", full)
        with pytest.raises(CloisterError, match="the disk is full: make room, then go on"):
            run.write(Lookup(0, 0, 0, False, np.zeros(2**16, np.int64), np.zeros(2**16)))
    run.write(look())
    assert same(resumed(ledger, run).record.lookups, [look()])


def test_a_note_is_one_line_of_at_most_200_printable_characters() -> None:
    for text in ("", "x" * 200, "Grüße: 5 €"):
        assert About(note=text).note == text
    for wrong in ("x" * 201, "two\nlines", "a bell \a", 3, None, ["x"]):
        with pytest.raises(InvalidInput, match=r"the note is .*: give one line of at most 200 printable characters"):
            About(note=wrong)  # type: ignore[arg-type]


def test_what_is_left_is_never_less_than_nothing_and_nothing_is_0() -> None:
    total = PrivacyTarget(1.0, 1e-6)
    basic, zcdp = (Lifetime("mine", total, how) for how in ("basic", "zcdp"))
    for spent in (Cost(1.0, 1e-6), Cost(1 + 1e-10, 1e-6 * (1 + 1e-10))):
        assert basic.left(spent) == "epsilon 0, delta 0"
    assert basic.left(Cost(0.75, 4e-7)) == "epsilon 0.25, delta 6e-07"
    for rho in (zcdp.rho, zcdp.rho * (1 + 1e-10)):
        assert zcdp.left(Cost(rho=rho)) == "rho 0 (alone: epsilon 0 at delta 1e-06)"


def test_a_declaration_keeps_the_owner_and_the_note_that_a_later_one_does_not_give(tmp_path: Path) -> None:
    ledger = Ledger.open(tmp_path / "own.db", create=True)
    for given, kept in (
        ({}, ("", "")),
        ({"owner": "ada", "note": "ward 7"}, ("ada", "ward 7")),
        ({"note": "ward 8"}, ("ada", "ward 8")),
        ({"owner": "bob"}, ("bob", "ward 8")),
        ({}, ("bob", "ward 8")),
    ):
        ledger.declare("people", 2.0, 1e-6, **given)
        (status,) = ledger.status()
        assert (status.owner, status.note) == kept
