"""``cloister explain``: what a run would do, from public figures alone, what an error takes, and how often a lifetime
pays for it."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest

from cloister.accounting.composition import Spent
from cloister.accounting.ledger.ledger import Ledger
from cloister.core.errors import BudgetExceeded, InvalidInput, Refused
from cloister.core.randomness import PublicRng
from cloister.core.session import RecordedTable
from cloister.rows.files.npy import Npy
from cloister.rows.keywords import Texts
from cloister.rows.selection import Selection
from cloister.run.account import Account
from cloister.run.explaining import explain
from cloister.run.fit import fit, source
from cloister.run.lifetime import lasting
from cloister.run.request import Request, prepare
from cloister.run.required_budget import MOST_EPSILON, STEPS, needs
from cloister.run.result import Result
from tests.asking import asking
from tests.in_process import cloister, ran, refused

ROWS = np.random.default_rng(0).normal(0, 0.3, (3000, 2))
BASE = "-k 3 --epsilon 1 --delta 1e-6 --bounds=-1:1 --rows 3000"
COLUMNS = ["x", "y"]


request = partial(asking, k=3, epsilon=1.0, delta=1e-6, bounds=(-1, 1), rows=3000, seed=1)


@pytest.mark.parametrize(
    ("asked", "delta"),
    [
        ({"method": "su-lloyd"}, 0.0),
        ({"method": "fastlloyd"}, 1e-6),
        ({"method": "su-lloyd", "components": {"counts": "thresholded"}}, 1e-6),
        ({"method": "one-round", "trust": "local"}, 0.0),
        ({"method": "one-round", "trust": "local", "components": {"sums": "ldp-average"}}, 1e-6),
        ({"method": "one-round", "trust": "shuffled"}, 1e-6),
    ],
)
def test_what_is_promised_is_what_the_noise_needs(asked: dict[str, Any], delta: float) -> None:
    plan = prepare(request(**asked), "abcde")
    assert plan.total.delta == delta
    if plan.composed.trust != "Shuffled":
        spent = Spent.on(event for round in plan.forecast(PublicRng.from_seed(1)) for event in round.events)
        assert spent.epsilon(delta) <= 1.0 + 1e-9
        assert (spent.epsilon(0.0) <= 1.0 + 1e-9) == (not delta)


def test_one_number_of_centres_is_said_as_such_and_a_range_with_the_one_that_is_planned_for() -> None:
    one, many = (explain(request(k=k), COLUMNS).text for k in (3, (2, 5)))
    assert "3 centres" in one
    assert "planned for" not in one
    assert "2 to 5 centres (planned for 5; what is released decides)" in many


@pytest.mark.parametrize(
    ("method", "trust"),
    [
        ("auto", "central"),
        ("auto", "local"),
        ("hst-median", "central"),
        ("one-round", "shuffled"),
        ("fastlloyd", "aggregated"),
    ],
)
def test_the_schedule_is_that_of_the_run(method: str, trust: str) -> None:
    asked = request(method=method, trust=trust, parties=3)
    told = explain(asked, COLUMNS).asked
    rounds = prepare(asked, COLUMNS).forecast(PublicRng.from_seed(1))
    assert [(a.round, a.mechanism, a.kind) for a in told] == [
        (round.index + 1, event.mechanism, "sums" if part.vectors else "counts")
        for round in rounds
        for part, event in zip(round.parts, round.events, strict=True)
    ]
    if trust == "central":
        assert sum(a.share for a in told if a.share is not None) == pytest.approx(1.0, rel=1e-9)


def test_noise_is_what_the_tables_of_a_run_state(monkeypatch: pytest.MonkeyPatch) -> None:
    """In rows for counts, in the caller's units for sums, of all users where a share of them is asked."""
    seen = dict[tuple[int, int], float]()
    looked = RecordedTable.at

    def at(self: Any, ids: Any, level: int = 0) -> Any:
        seen[self._at] = float(self.standard_error(ids[:1], level)[0])
        return looked(self, ids, level)

    monkeypatch.setattr(RecordedTable, "at", at)
    for asked in (request(method="fastlloyd"), request(method="one-round", trust="local", bounds=(-1, 3))):
        seen.clear()
        fit(asked, source(np.zeros((3000, 5))))
        told = [a.error for a in explain(asked, "abcde").asked]
        assert told == pytest.approx([seen[key] for key in sorted(seen)], rel=1e-2)


def test_noise_of_sums_in_a_frame_does_not_depend_on_the_callers_units() -> None:
    narrow, wide = (
        [asked.error for asked in explain(request(bounds=bounds), COLUMNS).asked if asked.framed]
        for bounds in ("0:1,0:10", "0:1024,0:10240")
    )
    assert narrow
    assert narrow == pytest.approx(wide)


def test_candidates_errors_and_the_reason_are_in_words_and_in_json() -> None:
    told = explain(request(), COLUMNS)
    choice = told.plan.choice
    assert choice is not None
    assert told.text.startswith(f"auto picked {choice.picked}: predicted error ")
    assert "No row was read" in told.text
    assert all(candidate.name in told.text for candidate in choice.candidates)
    facts = json.loads(json.dumps(told.as_dict()))
    assert facts["auto"]["picked"] == facts["method"]["name"]
    assert facts["error"] == pytest.approx(choice.error)
    assert "WARNING" in explain(request(epsilon=0.001, rows=100), "abcdefghij").text


# on the command line


class Exploded(Exception):
    """Somebody read rows."""


@pytest.fixture
def rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file whose rows explode when they are read. Its header does not."""
    np.save(tmp_path / "rows.npy", ROWS)

    def explode(*_: Any) -> Any:
        raise Exploded

    for name in ("check", "gather"):
        monkeypatch.setattr(f"cloister.plugins.populations.files.Files.{name}", explode)
    monkeypatch.setattr(Npy, "pieces", explode)
    return tmp_path


def test_explaining_reads_no_row(rows: Path) -> None:
    commands = "explain rows.npy", "explain --dimension 2", "explain --columns x,y", "fit rows.npy --dry-run"
    found = [json.loads(ran(f"{command} {BASE} --json", rows).stdout) for command in commands]
    assert [facts.pop("columns") for facts in found] == [["0", "1"], ["0", "1"], ["x", "y"], ["0", "1"]]
    told, *others = found
    assert all(facts == told for facts in others)
    assert told["schedule"]
    with pytest.raises(Exploded):
        cloister("fit", "rows.npy", *BASE.split(), folder=rows)


def test_a_dry_run_spends_nothing(tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", ROWS)
    ran("ledger declare budget.db mine --epsilon 2 --delta 1e-5", tmp_path)
    done = ran(f"fit rows.npy {BASE} --ledger budget.db --dataset mine --dry-run --out r.json", tmp_path)
    assert "nothing was spent" in done.stdout
    assert not (tmp_path / "r.json").exists()
    (mine,) = json.loads(ran("ledger show budget.db --json", tmp_path).stdout)
    assert mine["runs"] == []


def test_explain_reads_a_config_file_by_either_name_of_an_option(tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", ROWS)
    base = 'k = 3\nepsilon = 1\ndelta = 1e-6\nbounds = "-1:1"\nmethod = "fastlloyd"\n'
    (tmp_path / "flags.toml").write_text(f"{base}rows = 3000\n[set]\nrounds = 4\n")
    (tmp_path / "python.toml").write_text(f"{base}public_rows = 3000\n[options]\nrounds = 4\n")
    (tmp_path / "twice.toml").write_text(f"{base}rows = 3000\npublic_rows = 2000\n")
    told = [ran(f"explain rows.npy --config {name}.toml", tmp_path) for name in ("flags", "python")]
    assert told[0].stdout == told[1].stdout
    assert "4 rounds" in told[0].stdout
    assert "twice" in refused("explain rows.npy --config twice.toml", tmp_path)


def test_without_a_number_of_rows_it_says_what_one_would_change() -> None:
    told = explain(request(rows=None), COLUMNS)
    assert "1% of the budget counts the rows first" in told.text
    numbers, _, errors = zip(*told.by_rows, strict=True)
    assert numbers == (100, 10_000, 1_000_000)
    assert errors[0] > errors[1] > errors[2]
    assert explain(request(), COLUMNS).by_rows == []


def test_candidates_that_cannot_run_are_named_with_the_reason_by_a_run_and_a_plan_too(tmp_path: Path) -> None:
    """Else a method that an installation lacks, or that takes fewer columns, is passed over without a word."""
    np.save(tmp_path / "wide.npy", np.random.default_rng(0).uniform(-1, 1, (500, 12)))
    unable, words = "Candidates that cannot run here: ", "-k 2 --epsilon 1 --rows 500 --bounds=-1:1"
    why = "no Central oracles fit 'grid-means': a grid is for at most 6 columns, not 12: use 'hst-means'"
    assert f"{unable}grid-means: {why}" in ran(f"fit wide.npy {words} --verbose --out r.json", tmp_path).stdout
    candidates = Result.load(tmp_path / "r.json").details["auto"]["candidates"]
    assert [c["why"] for c in candidates if c["name"] == "grid-means"] == [why]
    local = f"plan {words} --dimension 12 --method auto --trust local --out"
    planned = ran(f"{local} plan", tmp_path).stdout
    assert "auto picked " in planned
    for text in (planned, (tmp_path / "plan" / "README.txt").read_text()):
        assert unable in text
    as_json = json.loads(ran(f"{local} plan-2 --json", tmp_path).stdout)
    assert [c["name"] for c in as_json["auto"]["candidates"] if c["error"] is None]
    assert "auto" not in json.loads((tmp_path / "plan-2" / "plan.json").read_text())


# from an error to a budget

fifteen = partial(request, k=15, rows=5000)


@pytest.mark.parametrize("asked", [fifteen(), fifteen(trust="local", epsilon=4.0, method="one-round", delta=0.0)])
def test_what_is_said_to_be_enough_is_and_less_is_not(asked: Request) -> None:
    """By forecasts of their own; two digits, and a hundredth, are how far above the least it may be."""
    found = needs(asked, COLUMNS, 0.005)
    for name, enough in (("epsilon", found.epsilon), ("rows", found.rows)):
        assert enough is not None
        least = getattr(enough, name)
        lacking = type(least)(least / (1.11 * STEPS))
        for given, reached in ((least, True), (lacking, False)):
            error = prepare(attrs.evolve(asked, **{name: given}), COLUMNS).error
            assert error is not None
            assert (error <= 0.005) == reached


def test_the_table_is_of_forecasts_and_falls_along_rows_and_epsilon() -> None:
    found = needs(fifteen(), COLUMNS, 0.01)
    errors = np.array([each.error for each in found.table], np.float64).reshape(6, 3)
    assert (np.diff(errors, axis=0) < 0).all()
    assert (np.diff(errors, axis=1) < 0).all()
    own = next(each for each in found.table if (each.rows, each.epsilon) == (5000, 1.0))
    assert own == found.asked
    assert own.error == prepare(fifteen(), COLUMNS).error


def test_a_forecast_that_no_method_can_make_says_of_what_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def few(asked: Request, *given: Any, **others: Any) -> Any:
        if asked.epsilon == 0.1:
            raise InvalidInput("no method runs with so little")
        return prepare(asked, *given, **others)

    monkeypatch.setattr("cloister.run.required_budget.prepare", few)
    found = needs(fifteen(), COLUMNS, 0.01)
    assert [each.rows for each in found.table] == [1250, 5000, 20_000] * 6
    assert [each.epsilon for each in found.table if each.error is None] == [0.1] * 3


def test_what_no_budget_or_number_reaches_is_said() -> None:
    found = needs(fifteen(rows=100, k=40), COLUMNS, 1e-15)
    assert (found.epsilon, found.rows) == (None, None)
    assert f"takes no epsilon up to {MOST_EPSILON:g} with 100 rows" in found.text
    assert "it takes no number up to 2,000,000,000 rows" in found.text
    assert "is then lost" not in found.text


def test_no_budget_is_enough_beside_a_larger_one_of_the_table_that_is_not() -> None:
    """Predictions jump where zoom begins to pay: here between 0.09 and 0.1."""
    jumping = request(k=6, delta=1e-7, rows=20_000)
    found = needs(jumping, "abcd", 0.01)
    small = prepare(attrs.evolve(jumping, epsilon=0.09), "abcd").error
    assert small is not None
    assert small < 0.01
    assert found.epsilon is not None
    assert found.epsilon.epsilon > max(
        each.epsilon for each in found.table if each.rows == 20_000 and (each.error or 1.0) > 0.01
    )


def test_explain_gives_the_warnings_of_the_run() -> None:
    """Whatever the method, and where a budget is looked for, too."""
    asked = request(method="hst-means", epsilon=20.0, delta=0.01, rows=300)
    told, sought = explain(asked, COLUMNS), needs(asked, COLUMNS, 0.01)
    assert [text.partition(" ")[0] for text in told.warnings] == ["epsilon", "delta"]
    assert told.as_dict()["warnings"] == told.warnings == list(sought.warnings)
    for text in told.warnings:
        assert f"\nWARNING: {text}.\n" in told.text
        assert f"\nWARNING: {text}.\n" in sought.text


@pytest.mark.parametrize(
    ("asked", "error", "why"),
    [
        (fifteen(), 0.0, "error is 0.0: give a part of a single centre's"),
        (fifteen(rows=None), 0.01, "no public number of rows"),
        (fifteen(method="nearest-centers"), 0.01, "'nearest-centers' predicts no error"),
    ],
)
def test_what_cannot_be_forecast_is_refused(asked: Request, error: float, why: str) -> None:
    with pytest.raises(InvalidInput, match=why):
        needs(asked, COLUMNS, error)


def test_the_command_prints_a_table_json_and_a_picture_and_reads_no_row(tmp_path: Path) -> None:
    words = "explain --columns x,y -k 15 --delta 1e-6 --bounds=-1:1 --rows 5000"
    done = ran(f"{words} --error 0.001 --picture p.svg", tmp_path).stdout
    assert "A predicted error of at most 0.001 of a single centre's cost takes epsilon = 0." in done
    assert "with epsilon = 1 it takes" in done
    assert "picture saved to p.svg" in done
    drawn = (tmp_path / "p.svg").read_text()
    assert all(text in drawn for text in ("1,250 rows", "5,000 rows", "20,000 rows", "target error 0.001"))
    told = json.loads(ran(f"{words} --epsilon 0.5 --error 0.001 --json", tmp_path).stdout)
    assert (told["error"], told["asked"]["epsilon"], len(told["table"])) == (0.001, 0.5, 18)
    assert told["epsilon"]["error"] <= 0.001
    for more, why in (("--epsilon 1 --picture p.svg", "give --error too"), ("--error 1 --picture p.txt", "pictures")):
        assert why in refused(f"{words} {more}", tmp_path)


# how many runs a lifetime holds

OFTEN: dict[str, Any] = {"k": 2, "epsilon": 0.2, "delta": 1e-7, "rows": 5000}
PLAN = prepare(request(**OFTEN, method="fastlloyd"), COLUMNS)


@pytest.mark.parametrize("composition", ["basic", "zcdp"])
def test_a_ledger_admits_as_many_as_it_is_said_to_hold_and_no_more(tmp_path: Path, composition: str) -> None:
    ledger = Ledger.open(tmp_path / "b.db", create=True)
    ledger.declare("mine", 1.0, 1e-5, composition)  # type: ignore[arg-type]  # parametrised

    def reserve() -> None:
        ledger.reserve("mine", PLAN.total, PLAN.budget, "plan", b"seed")

    reserve()
    found = lasting(PLAN, 12, Account(ledger=ledger.path, dataset="mine"), None, 0.0)
    for _ in range(found.runs[composition]):
        reserve()
    with pytest.raises(BudgetExceeded):
        reserve()


def test_a_ledger_that_admits_no_words_is_not_said_to_hold_runs_with_some(tmp_path: Path) -> None:
    table = Selection(("x", "y")).with_described([Texts("notes")])
    plan = prepare(request(**OFTEN, describe_words="notes"), table.features, chosen_columns=table)
    ledger = Ledger.open(tmp_path / "b.db", create=True)
    ledger.declare("mine", 1.0, 1e-5, "zcdp")
    for asked in (
        lambda: lasting(plan, 12, Account(ledger=ledger.path, dataset="mine"), None, 0.0),
        lambda: ledger.reserve("mine", plan.total, plan.budget, "plan", b"seed"),
    ):
        with pytest.raises(Refused, match="leaves no delta for thresholds"):
            asked()


def test_a_lifetime_of_runs_with_words_has_no_zcdp_which_pays_for_no_threshold() -> None:
    table = Selection(("x", "y")).with_described([Texts("notes")])
    plan = prepare(request(**OFTEN, describe_words="notes"), table.features, chosen_columns=table)
    assert lasting(plan, 12, None, 1.0, 1e-5).runs == {"basic": 5}


def test_a_lifetime_without_a_ledger_has_both_compositions() -> None:
    found = lasting(PLAN, 12, None, 1.0, 1e-5)
    assert found.runs["basic"] == 5 < found.runs["zcdp"]
    assert f"5 (basic composition): {5 / 12:.3g} years" in found.text
    pure = prepare(request(**OFTEN | {"delta": 0.0}), ("x", "y"))
    assert lasting(pure, 12, None, 1.0, 0.0).runs == {"basic": 5}
    with pytest.raises(InvalidInput, match="may cost delta = 1e-07, and the lifetime has none: give --lifetime-delta"):
        lasting(PLAN, 12, None, 1.0, 0.0)


def test_where_counting_ends_a_lifetime_holds_at_least_so_many_runs() -> None:
    found = lasting(PLAN, 12, None, 5e3, 0.1)
    assert (found.runs["basic"], found.at_least) == (10_000, ["basic", "zcdp"])
    assert "holds at least 10,000 (basic composition): 833 years or more" in found.text
    few = lasting(PLAN, 12, None, 1.0, 1e-5)
    assert few.at_least == []
    assert "at least" not in few.text


# parties


def test_explain_pooled_needs_parties_as_fit_does(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", ROWS)
    for words in ("explain --columns x,y", "explain --dimension 2", "explain a.npy", "fit a.npy"):
        assert "give two parties or more" in refused(f"{words} --pooled {BASE}", tmp_path)


@pytest.mark.parametrize("command", ["explain", "fit"])
def test_pooled_rows_under_another_trust_model_are_refused(tmp_path: Path, command: str) -> None:
    """They ran under Aggregated trust without a word."""
    for name in "ab":
        np.save(tmp_path / f"{name}.npy", ROWS[: 1000 + len(name) * ord(name)])
    for trust in ("local", "Central", "shuffled"):
        why = refused(f"{command} a.npy b.npy --pooled --trust {trust} {BASE}", tmp_path)
        assert f"aggregated trust, and --trust is {trust}" in why
    assert "Aggregated" in ran(f"explain a.npy b.npy --pooled --trust aggregated {BASE}", tmp_path).stdout
