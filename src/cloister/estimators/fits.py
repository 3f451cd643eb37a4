"""How often an estimator and its clones were fitted in this process without a ledger: nobody else adds that up."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock

import attrs

from cloister.core.errors import PrivacyWarning

MANY = 5
"""Fits at which it is said what they add up to, and again at each doubling: ``cross_val_score`` makes five."""

MOST = 1000
"""Families that are remembered; of more the oldest are forgotten."""


@attrs.frozen
class Fits:
    """Budget spent on one family's fits. Args: fits (how many), epsilon and delta (their sums)."""

    fits: int = 0
    epsilon: float = 0.0
    delta: float = 0.0


_FITS: OrderedDict[str, Fits] = OrderedDict()
_LOCK = Lock()


def add(family: str, epsilon: float, delta: float) -> None:
    """Remember a finished fit, by what it promised."""
    with _LOCK:
        had = _FITS.pop(family, Fits())
        _FITS[family] = Fits(had.fits + 1, had.epsilon + epsilon, had.delta + delta)
        while len(_FITS) > MOST:
            _FITS.popitem(last=False)


def warning_before(family: str, epsilon: float, delta: float) -> PrivacyWarning | None:
    """Warning before one more fit of a family, whose budget is (epsilon, delta); None: nothing."""
    with _LOCK:
        had = _FITS.get(family, Fits())
    fits = had.fits + 1
    if fits % MANY or (fits // MANY) & (fits // MANY - 1):
        return None
    whole = f"epsilon = {had.epsilon + epsilon:.4g}" + (
        f", delta = {had.delta + delta:.4g}" if had.delta + delta else ""
    )
    return PrivacyWarning(
        f"this is fit {fits} of this estimator and its clones in this process, without a ledger. If they share rows "
        f"(as in a grid search or cross-validation), their guarantees add up: {whole} for those rows, not the "
        f"epsilon = {epsilon:.4g} of one fit. Choose parameters on rows that are not secret, or divide "
        f"epsilon and delta by the number of fits; ledger= and dataset= refuse whatever exceeds a budget for life"
    )
