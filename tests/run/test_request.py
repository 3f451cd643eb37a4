"""What a request becomes once all that is public is known of it, before any row is read."""

from __future__ import annotations

from functools import partial
from typing import Any

import attrs
import pytest

from cloister.core.capabilities import relative_loss
from cloister.rows.keywords import Texts
from cloister.rows.selection import Selection
from cloister.run.method_selection import HOPELESS, NO_BETTER
from cloister.run.request import PreparedRun, Request, prepare

request = partial(Request, k=3, method="hst-means", epsilon=1.0, delta=1e-5, bounds=(-1, 1), rows=30_000, zoom="off")


@pytest.mark.parametrize(("described", "share"), [((), 0.3), (("x",), 0.15)])
def test_words_take_the_whole_share_of_the_description_or_half_of_it_beside_columns(
    described: tuple[str, ...], share: float
) -> None:
    table = Selection(("x", "y"), described=described, texts=(Texts("notes"),))
    asked = request(describe=described, describe_words="notes", describe_share=0.3)
    words = prepare(asked, table.features, chosen_columns=table).composed
    assert (words.spec.adds, words.value.share) == ("words", share)
    if described:  # of what the words leave
        inner = words.inner["method"]
        assert (inner.spec.adds, inner.value.share) == ("description", pytest.approx(0.15 / 0.85))


@pytest.mark.parametrize(("error", "warned"), [(0.99, False), (1.0, True), (1.01, True)])
def test_a_run_is_warned_of_from_the_error_of_one_centre_on(
    monkeypatch: pytest.MonkeyPatch, error: float, warned: bool
) -> None:
    plan: Any = prepare(request(), ["x", "y"])
    assert plan.choice is None
    assert relative_loss(1.0) == NO_BETTER
    monkeypatch.setattr(PreparedRun, "error", property(lambda self: relative_loss(error)))
    assert any(HOPELESS in text for text in attrs.evolve(plan).warnings) == warned
