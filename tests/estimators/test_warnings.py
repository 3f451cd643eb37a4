"""What a fit warns of, and when: before anything is spent where public figures tell."""

from __future__ import annotations

import warnings
from typing import Any

import attrs
import numpy as np
import pytest

from cloister.core.errors import PrivacyWarning, UtilityWarning
from cloister.estimators import base
from cloister.plugins.populations.arrays import Arrays
from tests.estimators.fitted import blobs, model, runs


@pytest.mark.parametrize(
    ("asked", "kind", "words"),
    [
        ({"epsilon": 12.0}, PrivacyWarning, "epsilon = 12 hides little: .* e\\^12 = 162,755 times"),
        ({"epsilon": 0.001, "rows": 200}, UtilityWarning, "even the least predicted error is that of"),
    ],
)
def test_what_public_figures_tell_is_said_before_anything_is_spent(
    asked: Any, kind: type[Warning], words: str, ledger: dict[str, str]
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", kind)
        with pytest.raises(kind, match=words):
            model(**ledger, **asked).fit(blobs())
    assert runs(ledger) == ()


def test_a_sober_fit_says_nothing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model(method="radius-means").fit(blobs())


def test_a_warning_is_given_once_at_the_callers_line() -> None:
    with pytest.warns(UserWarning) as caught:  # noqa: PT030
        model(epsilon=12.0).fit_predict(blobs())
    assert [w.filename for w in caught if issubclass(w.category, PrivacyWarning)] == [__file__]


def test_empty_centres_are_said_and_an_error_made_of_it_loses_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    real = base.fit

    def emptied(*args: Any, **more: Any) -> Any:
        return attrs.evolve(real(*args, **more), weights=np.array([1000.0, 990.0, 0.0]))

    monkeypatch.setattr(base, "fit", emptied)
    fitted = model()
    with warnings.catch_warnings():
        warnings.simplefilter("error", UtilityWarning)
        with pytest.raises(UtilityWarning, match="1 of 3 centres hold hardly any rows by their noisy counts"):
            fitted.fit(blobs())
    assert fitted.predict(blobs()).shape == (2000,)


def test_what_cuts_off_a_run_of_a_ledger_names_it_and_it_is_gone_on_with(
    ledger: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    fitted = model(**ledger, method="fastlloyd", options={"rounds": 3}, zoom="off")
    real = Arrays.gather

    def gather(rows: Any, round: Any, rng: Any) -> Any:
        if round.index == 2:
            raise KeyboardInterrupt
        return real(rows, round, rng)

    with monkeypatch.context() as patch:
        patch.setattr(Arrays, "gather", gather)
        with pytest.raises(KeyboardInterrupt) as cut:
            fitted.fit(blobs())
    (run,) = runs(ledger)
    told = f"the ledger's run {run.id} was cut off: go on with it by fit(X, resume={run.id!r})"
    assert cut.value.__notes__ == [told]
    fitted.fit(blobs(), resume=run.id)
    assert [run.state for run in runs(ledger)] == ["done"]
