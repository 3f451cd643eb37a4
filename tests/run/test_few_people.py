"""Trust Shuffled with too few people: nothing is asked, charged or released, whichever way their rows or messages come
in."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cloister.collection.server.aggregator import decode
from cloister.collection.shuffler.shuffler import shuffle
from cloister.collection.wire.answers import layout_of
from cloister.core.errors import Refused
from cloister.run.fit import fit, source
from cloister.run.request import Request
from tests.asking import asking
from tests.collection.shuffled_plans import WIRES, folder_of, sent, small_plan
from tests.in_process import refused

MIXED = {"counts": "split-and-mix-counts", "sums": "split-and-mix"}
LOCAL = {"counts": "hadamard-response", "sums": "hadamard-vector"}


def rows(n: int) -> Any:
    return np.random.default_rng(0).normal(0, 0.3, (n, 2))


def asked(planned: int, components: dict[str, str] = MIXED) -> Request:
    return asking(
        k=2, method="one-round", epsilon=1.0, delta=1e-6, bounds="ball:1", rows=planned, components=components, seed=1
    )


@pytest.mark.parametrize("components", [MIXED, WIRES, {**MIXED, "counts": "blanket-histogram"}], ids=str)
def test_rows_in_memory_of_too_few_people_are_refused_before_anything_starts(components: dict[str, str]) -> None:
    """1,000 are planned, 900 of them are counted on."""

    def started(*_: Any) -> None:
        raise AssertionError("the run has started")

    told = (
        "there are 899 people, and the guarantee needs at least 900 who hide each other: nothing is released. Wait for "
        "more, or plan for as many as there are (--rows 899; under trust Shuffled their number is public)"
    )
    with pytest.raises(Refused, match=re.escape(told)):
        fit(asked(1000, components), source(rows(899)), started=started)
    assert fit(asked(1000, components), source(rows(900))).privacy.min_honest_users == 900
    assert fit(asked(1000, LOCAL), source(rows(20))).privacy.min_honest_users == 0


def test_people_whose_rows_cannot_be_used_report_and_hide_others() -> None:
    """Their number is public, and how many rows can be used is not."""
    some = rows(900)
    some[:101, 0] = np.nan
    assert source(some, missing="drop").people == 900
    assert fit(asked(1000), source(some, missing="drop")).privacy.min_honest_users == 900
    with pytest.raises(Refused, match="there are 899 people"):
        fit(asked(1000), source(some[1:], missing="drop"))


def test_the_server_refuses_what_too_few_people_could_have_sent(tmp_path: Path) -> None:
    """The shuffler counted 1,000; 101 of them sent an answer that no encoder sends, which only the server sees."""
    plan, theirs = small_plan(), sent(small_plan())
    answers = theirs.answers.copy()
    body = layout_of(plan.round()).bodies[0]
    answers[np.flatnonzero((answers[:, :2] == 0).all(axis=1))[:101], body.start + body.bytes - 1] = 255
    shuffle(plan, folder_of(tmp_path / "reports", theirs, answers), tmp_path / "out")
    with pytest.raises(Refused, match="there are 899 people, and the guarantee needs at least 900"):
        decode(plan, tmp_path / "out", accept_shares=True)
    plan.write(tmp_path / "plan", "")
    assert "there are 899 people" in refused("decode plan out --accept-shares --out result.json", tmp_path)
    assert not (tmp_path / "result.json").exists()
