"""Files of reports: which count, what is refused of them, and that order and partition do not matter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest

from cloister.collection.client.encoder import Encoded
from cloister.collection.intake.validator import TRIES
from cloister.collection.plan.plan import CollectionPlan
from cloister.collection.server.reports import CollectedReports
from cloister.collection.wire.answers import AnswerLayout, layout_of
from cloister.core.encoding import absorb
from cloister.core.errors import Refused
from cloister.core.types import AnyArray, Ids
from tests.collection.server.collected import KINDS, NOISE, encoded, gathered, same, small_plan, tables, written

N = 400


@pytest.fixture(scope="module", params=list(KINDS))
def plan(request: pytest.FixtureRequest) -> CollectionPlan:
    return small_plan(request.param, N)


@pytest.fixture(scope="module")
def sent(plan: CollectionPlan) -> Encoded:
    return encoded(plan, np.arange(N, dtype=np.uint64), 2)


def expected(some: Encoded, who: Any = slice(None)) -> list[Any]:
    found = layout_of(some.round).reports(some.users[who], some.answers[who])
    return tables(some.round, absorb(some.round, found))


def test_a_folder_has_finished_files_and_others(plan: CollectionPlan, sent: Encoded, tmp_path: Path) -> None:
    written(tmp_path / "a.reports", sent, slice(0, 100))
    written(tmp_path / ".b.reports", sent, slice(100, 200))
    (tmp_path / "c.reports.tmp").write_bytes(b"x")
    (tmp_path / "more.reports").mkdir()
    _, intake = gathered(plan, [tmp_path, tmp_path / "a.reports"])
    assert (intake.accepted, intake.files) == (100, 1)
    assert intake.lines() == ["skipped 1 files of another kind"]


def impossible(sent: Encoded, who: Any = slice(None)) -> tuple[AnyArray, Ids]:
    """Answers among which those of some people who are asked a number's question are impossible, and these people."""
    layout = layout_of(sent.round)
    for body, asked in zip(layout.bodies, layout.asked_masks(sent.users), strict=True):
        answers, mine = sent.answers.copy(), np.flatnonzero(asked)[who]
        answers[mine, body.start : body.start + body.bytes] = 255
        try:
            absorb(sent.round, layout.reports(sent.users[mine[:1]], answers[mine[:1]]))
        except Refused:
            return answers, sent.users[mine]
    raise AssertionError("every byte is possible")


def test_reports_that_nobody_sends_are_counted_and_the_others_count(
    plan: CollectionPlan, sent: Encoded, tmp_path: Path
) -> None:
    """And use no number up."""
    bad = np.isin(sent.users, [7, 8, 300])
    beyond = attrs.evolve(sent, users=np.where(bad, N + 2**62, sent.users).astype(np.uint64))
    answers, liars = impossible(sent, [2, 3, 5])
    for reason, some, said, left in (
        ("out of range", beyond, sent.answers, ~bad),
        ("impossible", sent, answers, ~np.isin(sent.users, liars)),
    ):
        path = written(tmp_path / "a.reports", some, answers=said)
        found, intake = gathered(plan, path)
        assert (dict(intake.refused), intake.accepted) == ({reason: 3}, N - 3)
        assert same(found, expected(sent, left))
    written(tmp_path / "b.reports", sent)
    found, intake = gathered(plan, tmp_path)
    assert same(found, expected(sent))
    assert (intake.accepted, intake.refused) == (N, {"impossible": 3, "duplicate": N - 3})


@pytest.mark.parametrize("beyond", [0, 1, 2])
def test_numbers_are_below_how_many_users_there_are(
    plan: CollectionPlan, sent: Encoded, beyond: int, tmp_path: Path
) -> None:
    population = CollectedReports(written(tmp_path / "a.reports", sent), plan.hash, N - beyond)
    population.gather(plan.round(), NOISE)
    assert population.intake.accepted == N - beyond
    assert population.intake.refused == ({"out of range": beyond} if beyond else {})


def test_floods_of_reports_that_nobody_sends_take_few_looks(
    plan: CollectionPlan, sent: Encoded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of one number; of many numbers: ``intake/test_sent.py``."""
    looks, true = [0], AnswerLayout.reports

    def counted(layout: AnswerLayout, users: Ids, answers: AnyArray) -> tuple[Any, ...]:
        looks[0] += 1
        return true(layout, users, answers)

    answers, liars = impossible(sent)
    monkeypatch.setattr(AnswerLayout, "reports", counted)
    written(tmp_path / "a.reports", sent, np.full(2000, liars[0]), answers)
    written(tmp_path / "b.reports", sent)
    _, intake = gathered(plan, tmp_path)
    assert looks[0] <= 3 * TRIES
    assert intake.accepted == N - 1  # who can send so many in her place could send one that counts
    assert intake.refused == {"impossible": 2001}


def test_a_user_counts_once(plan: CollectionPlan, sent: Encoded, tmp_path: Path) -> None:
    written(tmp_path / "b.reports", sent, [*range(50, N), *range(60)])
    written(tmp_path / "a.reports", sent, [*range(300), *range(200, N)])
    found, intake = gathered(plan, tmp_path)
    assert same(found, expected(sent))
    assert (intake.accepted, dict(intake.refused)) == (N, {"duplicate": 350 + 60 + 100})
    with pytest.raises(Refused, match=r"a\.reports' has reports of users who have reported already"):
        gathered(plan, tmp_path, strict=True)
