"""What a run promises, in data and in words, and never more than was paid for."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
import pytest

from cloister.core.budget import Budget
from cloister.core.clustering import Problem
from cloister.core.questions import count
from cloister.core.randomness import NoiseRng
from cloister.core.session import Session, forecast
from cloister.run.statement import PrivacyStatement, Spend, alike, state
from tests.core.core_fakes import BOX, SEED, Explorer, InMemory, LocalCounts, Strips

PROBLEM = Problem(3, BOX, 200, Budget("gaussian", 0.4))
SPENDS = (Spend(0, "question 1 (counts)", "discrete-laplace", "pure", 0.25),)


def statement(**changes: Any) -> PrivacyStatement:
    base = PrivacyStatement("Central", 1.0, 1e-6, SPENDS, rows=1000)
    return attrs.evolve(base, **changes)


def test_it_is_written_from_the_rounds_that_were_asked() -> None:
    told = state(forecast(Explorer(), PROBLEM, SEED), 1.5, 1e-6, trust="Central", rows=200, seeded=False, private=True)
    assert told == PrivacyStatement("Central", 1.5, 1e-6, told.spends, rows=200)
    assert [attrs.evolve(spend, amount=0.0) for spend in told.spends] == [
        Spend(round, question, "discrete-gaussian", "gaussian", 0.0)
        for round in (0, 1)
        for question in ("question 1 (counts)", "question 2 (sums)")
    ]
    assert [spend.amount for spend in told.spends] == pytest.approx([0.05, 0.15] * 2)


def test_shares_of_the_users_are_told() -> None:
    session: Session[Any] = Session(PROBLEM, SEED, InMemory(np.zeros((5, 2))), noise=NoiseRng.for_tests(0))
    for spend in Budget("pure", 1.0).split_users(SEED, 1, 3):
        session.ask(count(Strips(BOX.max_norm), oracle=LocalCounts(), budget=spend))
    told = state(session.rounds, 1.0, 0.0, trust="Local", rows=200, seeded=False, private=True)
    assert [s.users for s in told.spends] == pytest.approx([0.25, 0.75])
    for share in ("25.0%", "75.0%"):
        assert f"of {share} of the users" in told.text()
        assert f"of {share} of the users" not in statement().text()


@pytest.mark.parametrize(
    ("changes", "headline"),
    [
        ({}, "(add-or-remove one row) epsilon = 1, delta = 1e-06, Central trust"),
        ({"delta": 0.0}, "(add-or-remove one row) epsilon = 1, Central trust"),
        ({"trust": "Local"}, "(replace one row) epsilon = 1, delta = 1e-06, Local trust"),
        ({"seeded": True}, "not private: seeded (the noise can be repeated)"),
        ({"private": False, "seeded": True}, "NOT PRIVATE: exact answers were released"),
    ],
)
def test_the_headline_is_the_guarantee(changes: dict[str, Any], headline: str) -> None:
    told = statement(**changes)
    assert told.headline == headline
    assert told.text().startswith(headline + "\n")


@pytest.mark.parametrize("changes", [{"seeded": True}, {"private": False}])
def test_a_run_that_protects_nobody_promises_nothing(changes: dict[str, Any]) -> None:
    text = statement(**changes).text()
    assert "epsilon = 1" not in text
    assert "does not learn" not in text
    assert "One row is one person" not in text
    assert "does not learn" in statement().text()


def test_the_budget_is_one_line_where_its_list_is_not_asked_for() -> None:
    spends = [Spend(r, "question 1 (counts)", "discrete-gaussian", "zcdp", a) for r, a in enumerate((0.1, 0.2, 0.2))]
    spends.append(Spend(0, "question 2 (sums)", "discrete-gaussian", "zcdp", 0.05))
    last = statement(spends=tuple(spends)).text(brief=True).splitlines()[-1]
    more = " The whole statement: --verbose, or the saved result."
    assert last == f"Budget by round (rho): 0.15, 2 times 0.2.{more}"
    split = statement(spends=tuple(attrs.evolve(s, users=0.5) for s in spends)).text(brief=True)
    assert split.endswith(f"Budget: 4 questions in 3 rounds.{more}")
    words = (attrs.evolve(spends[0], delta=1e-7), *spends[1:])
    for some in (words, words[::-1]):
        short = statement(spends=some).text(brief=True)
        assert short.endswith(f"Budget: 4 questions in 3 rounds.{more}")


def test_a_brief_statement_has_eight_lines_and_leaves_no_warning_out() -> None:
    notes = ("auto picked a; next: b. Why.", *(f"Note {i}. More of it." for i in range(9)), "WARNING: look. Here.")
    told = statement(notes=notes, delta=0.5, simulated=True, count_share=0.01, trust="Shuffled", min_honest_users=9)
    lines = told.text(brief=True).splitlines()
    assert len(lines) == 8
    assert [line.partition(":")[0] for line in lines[3:6]] == ["SIMULATED", "WARNING", "WARNING"]
    assert lines[2] == "It needs an honest shuffler and 9 honest people."
    assert lines[5] == "WARNING: look."
    assert "more notes" in lines[-1]
    every = statement(notes=notes[:1], rows_per_user=2).text(brief=True).splitlines()
    assert "auto picked a." in every
    assert "At most 2 rows of each user were kept." in every
    assert "Rows outside the public bounds were clipped to them." in every
    assert "more notes" not in every[-1]


def test_questions_share_a_line_of_the_budget_only_if_they_read_alike() -> None:
    """Each of these differs from the first in one thing."""
    first = Spend(0, "question 1 (counts)", "discrete-gaussian", "zcdp", 0.1)
    others = [
        attrs.evolve(first, round=1),
        attrs.evolve(first, question="question 2 (sums)"),
        attrs.evolve(first, mechanism="gaussian"),
        attrs.evolve(first, measure="gaussian"),
        attrs.evolve(first, amount=0.2),
        attrs.evolve(first, delta=1e-9),
        attrs.evolve(first, users=0.5),
    ]
    again = attrs.evolve(first, question="question 9 (counts)")
    lines = alike([first, *others, again])
    assert lines == [(first, [first.question, again.question]), *((each, [each.question]) for each in others)]
    text = statement(spends=(first, *others, again)).text()
    shared, *own = text.partition("Budget, by round and question:\n")[2].splitlines()
    assert "2 questions (counts)" in shared
    assert [line.startswith("  round") for line in own[: len(others) + 1]] == [True] * len(others) + [False]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("trust", "Nobody"),
        ("trust", 2**31),
        ("epsilon", "x"),
        ("epsilon", -1.0),
        ("delta", float("nan")),
        ("rows", 2**63),
        ("rows", 2.5),
        ("rows_per_user", "x"),
        ("seeded", 0),
        ("notes", [1]),
        ("spends", [{"round": 0, "question": "", "mechanism": "", "measure": "joy", "amount": 1.0}]),
        ("spends", [{"round": 0, "question": "", "mechanism": "", "measure": "pure", "amount": "x"}]),
    ],
)
def test_a_statement_with_an_odd_value_is_refused_as_it_is_read(name: str, value: Any) -> None:
    facts = statement().as_dict()
    assert PrivacyStatement.from_dict(facts) == statement()
    with pytest.raises((TypeError, ValueError)):
        PrivacyStatement.from_dict({**facts, name: value})
