"""The scikit-learn estimator, against scikit-learn's own checks."""

from __future__ import annotations

import json
import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks

import cloister
from cloister.accounting.ledger.ledger import Ledger
from cloister.core.domains import Box
from cloister.core.errors import PrivacyWarning
from cloister.core.randomness import PublicRng
from cloister.estimators import EXPECTED_FAILED_CHECKS, expected_failed_checks, parameters
from cloister.plugins.methods.sphere_packing import sphere_packing
from cloister.run.request import Request, prepare
from tests.asking import asking
from tests.estimators.fitted import blobs, model as unseeded

ASKED: dict[str, Any] = {"n_clusters": 3, "bounds": (-100.0, 100.0), "rows": 100, "epsilon": 1.0}
QUICK: dict[str, Any] = {**ASKED, "delta": 1e-5, "zoom": "off", "method": "fastlloyd", "options": {"rounds": 1}}


@parametrize_with_checks(
    [cloister.KMeans(**QUICK, missing="drop"), cloister.PublicScaler(bounds=(-100.0, 100.0))],
    expected_failed_checks=expected_failed_checks,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_scikit_learns_own_checks(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.thorough
@pytest.mark.parametrize("kind", [cloister.KMeans, cloister.OneRound, cloister.KMedians])
def test_every_check_that_is_expected_to_fail_does_and_no_other(kind: Any) -> None:
    """A list with entries that hold no longer would hide faults to come."""
    estimator = kind(**ASKED)
    assert estimator.__sklearn_tags__().non_deterministic
    expected = expected_failed_checks(estimator)
    done = check_estimator(estimator, expected_failed_checks=expected, on_skip=None, on_fail=None)
    assert [d["check_name"] for d in done if d["status"] == "failed"] == []
    assert {d["check_name"] for d in done if d["status"] == "xfail"} == set(expected) == set(EXPECTED_FAILED_CHECKS)
    assert expected_failed_checks(cloister.PublicScaler()) == {}


def test_labels_and_inertia_say_why_there_are_none() -> None:
    fitted = model().fit(blobs())
    for name, instead in (("labels_", "fit_predict"), ("inertia_", "-score")):
        assert not hasattr(fitted, name)
        with pytest.raises(AttributeError, match=f"KMeans has no {name}: .*no epsilon covers.*{instead}.*NOT private"):
            getattr(fitted, name)


def test_many_fits_without_a_ledger_say_what_they_add_up_to(tmp_path: Path) -> None:
    """Before the fit that makes them many, so that a filter which makes an error of it spends nothing."""
    quick = {"rows": 500, "method": "fastlloyd", "options": {"rounds": 1}}
    rows, one = blobs(500), model(epsilon=0.5, **quick)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "this is fit", PrivacyWarning)
        for _ in range(parameters.MANY - 1):
            clone(one).fit(rows)
        model(epsilon=0.5, rows=500).fit(rows)  # no kin
        fifth = clone(one)
        with pytest.raises(PrivacyWarning, match=r"fit 5 of this estimator and its clones .* epsilon = 2\.5, delta"):
            fifth.fit(rows)
        assert not hasattr(fifth, "result_")
    with pytest.warns(PrivacyWarning, match=r"fit 5 .*not the epsilon = 0\.5 of one fit.*ledger= and dataset="):
        pickle.loads(pickle.dumps(fifth)).fit(rows)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "this is fit", PrivacyWarning)
        for _ in range(4):
            one.fit(rows)
        Ledger.open(tmp_path / "b.db", create=True).declare("mine", 50.0, 1e-2)
        guarded = model(**quick, ledger=str(tmp_path / "b.db"), dataset="mine")
        for _ in range(parameters.MANY):
            clone(guarded).fit(rows)
    with pytest.warns(PrivacyWarning, match="fit 10 of"):
        one.fit(rows)


def model(**more: Any) -> Any:
    """Without zoom, so that the start that ``random_state`` repeats lies where it did."""
    return unseeded(zoom="off", random_state=7, **more)


def test_what_is_fitted_holds_released_values_only() -> None:
    """None of its attributes grows with the rows."""
    rows = blobs()
    small, large = (pickle.dumps(model(method="fastlloyd").fit(some)) for some in (rows[:1000], rows))
    assert abs(len(small) - len(large)) < 200
    fitted = pickle.loads(large)
    names = {name for name in vars(fitted) if name.endswith("_") and not name.startswith("_")}
    assert fitted.privacy_.headline == "(add-or-remove one row) epsilon = 4, delta = 1e-06, Central trust"
    assert names == {"cluster_centers_", "cluster_weights_", "privacy_", "result_", "n_features_in_"}


def test_random_state_repeats_the_start_and_never_the_noise() -> None:
    rows = blobs()
    one, two = (model(method="fastlloyd").fit(rows) for _ in range(2))
    assert not np.array_equal(one.cluster_centers_, two.cluster_centers_)
    box = Box((-1.0, -1.0), (1.0, 1.0))
    start = sphere_packing(3, box, PublicRng.from_seed(7).child("method").child("start"))
    for fitted in (one, two):  # the first round moved no centre farther than its radius from the one start
        first = np.array(fitted.result_.details["iterates"])[0]
        assert np.linalg.norm(first - start, axis=1).max() <= box.diameter / 2 + 1e-5


def test_without_bounds_it_says_what_to_do_and_spends_nothing(tmp_path: Any) -> None:
    for given, said in (
        ({"bounds": None}, "no bounds: give one pair"),
        ({"rows": None, "method": "one-round"}, "no public number of rows"),
        ({"ledger": str(tmp_path / "x.db")}, "ledger=, dataset="),
    ):
        with pytest.raises(ValueError, match=said):
            model(**given).fit(blobs())


def test_bounds_of_a_frame_are_read_by_its_own_names_wherever_they_could_mean_something_else() -> None:
    """``lower`` and ``upper`` are ends of all columns, unless columns are called so: then they are refused, and not
    taken for names."""
    rows = blobs()
    ends = {"lower": [-1.0, -1.0], "upper": [1.0, 2.0]}
    fitted = model(bounds=ends).fit(pd.DataFrame(rows, columns=["x", "y"]))
    assert fitted.result_.problem["bounds"] == ends
    with pytest.raises(ValueError, match="columns are called lower and upper"):
        model(bounds=ends).fit(pd.DataFrame(rows, columns=["lower", "upper"]))


def test_a_plan_is_the_same_whichever_library_its_numbers_are_of() -> None:
    """So that a run is gone on with by whoever writes 3 for numpy.int64(3)."""

    def asked(whole: Any, real: Any) -> Request:
        numbers = {"k": whole(3), "rows": whole(1000), "seed": whole(5), "options": {"rounds": whole(3)}}
        bounds = np.array([-1, 1]) if whole is np.int64 else (-1, 1)
        return asking(method="fastlloyd", epsilon=real(1.0), delta=real(1e-6), bounds=bounds, **numbers)

    own, other = prepare(asked(int, float), ["x"]), prepare(asked(np.int64, np.float64), ["x"])
    assert own.digest() == other.digest()
    assert json.dumps(other.describe()) == json.dumps(own.describe())
