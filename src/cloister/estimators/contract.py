"""Parts of scikit-learn's contract that private estimators cannot keep, and why."""

from __future__ import annotations

from typing import Any

from cloister.estimators.base import PrivateClusterer

LABELS = "there are no labels_: they would carry every row"
NOISE = "the noise is fresh in every fit and cannot be seeded, so that two fits differ"

EXPECTED_FAILED_CHECKS: dict[str, str] = {
    "check_clustering": LABELS,
    "check_fit_idempotent": NOISE,
}
"""scikit-learn's checks that ``KMeans``, ``KMedians`` and ``OneRound`` fail, each with the reason. Those that compare
two fits are skipped where they heed the tag ``non_deterministic``."""


def expected_failed_checks(estimator: Any) -> dict[str, str]:
    """Those of ``EXPECTED_FAILED_CHECKS`` that hold of an estimator of cloister, as ``check_estimator`` and
    ``parametrize_with_checks`` take them; none of ``PublicScaler``, which keeps the whole contract."""
    return dict(EXPECTED_FAILED_CHECKS) if isinstance(estimator, PrivateClusterer) else {}
