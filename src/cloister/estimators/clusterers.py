"""The estimators by name: one class, each with its own meaning of 'auto'; and what of scikit-learn's contract they
cannot keep, with the reasons."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from cloister.estimators.base import PrivateClusterer
from cloister.run.result import Result


class KMeans(PrivateClusterer):
    """Private k-means with scikit-learn's interface: centres that make squared distances small.

    Fitted attributes hold released values only: there are no ``labels_`` and no ``inertia_``, since both would carry
    every row. What ``predict``, ``transform`` and ``score`` return is computed from the rows you pass: NOT private,
    and not to be published.

    The promise begins at ``fit``. ``make_pipeline(StandardScaler(), KMeans(...))`` keeps the rows' exact means in the
    pipeline, outside any guarantee; scale by public bounds instead, with ``cloister.PublicScaler``.

    Args:
        n_clusters: number of centres; or a range (fewest, most) of which the run chooses one, by what it releases.
        method: registry name of the method (``cloister list Method``); 'auto' picks the one that predicts the least
            error for these figures, whatever the rows are, of those for the class's objective. Or a component, as
            ``cloister.plugin.make("Method", "fastlloyd", counts="discrete-laplace")`` makes it: its options and parts
            are then parameters too (``set_params(method__rounds=3)``), and it is recorded as if it had been named.
        epsilon: privacy budget of one ``fit``, in nats.
        delta: probability with which the guarantee may fail; 0 for methods with pure noise only.
        bounds: public bounds: a pair for all columns, a list with a pair per column (lower and then upper ends only as
            {"lower": ..., "upper": ...}), a mapping of column names to pairs, or a .toml or .json file of one. Of a
            data frame the columns that a mapping or file names are used, and no others.
        rows: public number of rows, a round figure; None: 1% of the budget counts them.
        zoom: 'auto', 'off' or the share of the budget that finds where rows are within wide bounds.
        scale: units of distances: 'none', 'bounds' (each column's width) or a weight per column; by default 'bounds'
            where widths differ by more than a factor of two. ``predict``, ``transform`` and ``score`` use them too.
        components: component name per slot, e.g. {"counts": "discrete-laplace"}.
        options: option values, e.g. {"rounds": 5}.
        columns: names or patterns of a data frame's columns to use; None: those that bounds and categories name, or
            else all.
        categories: public values of columns that hold categories, e.g. {"ward": ["A", "B"]}.
        describe: names of columns that groups are described by, in the clustering or beside it: numbers with bounds,
            booleans, and categories. ``result_`` then has their description, for ``describe_share`` of the budget
            (above 0, at most 0.9); of more than 8 columns it has those that tell the groups apart best.
        describe_words: a column of texts or lists, whose words tell groups apart; at most ``most_words`` (16) of a row.
        missing: 'refuse' rows with missing or infinite cells, or 'drop' them: they then have the label -1, distances
            NaN and no part in a score.
        user_column: column of a data frame that names each row's user; of an array pass ``fit(X, users=names)``. The
            guarantee is then for users, with all their rows.
        rows_per_user: most rows of one user that count, a public number; ``rows`` is then of these.
        ledger, dataset: file and declared name of a lifetime budget that this fit is charged to.
        not_private: allow methods that give no guarantee.
        random_state: repeats the public choices (the start). The noise is never repeatable.
        threads: how many work on the rows; by default one per core. Results do not depend on it.
        trust: 'central', 'local', 'shuffled' or 'aggregated': fills all slots that ``components`` does not name.
        progress: show how far a fit has come: True, False, or None, after two seconds, on a terminal or in a notebook.

    Attributes:
        cluster_centers_: (n_clusters, n_features) released centres.
        cluster_weights_: (n_clusters,) noisy rows per centre, or None.
        privacy_: the privacy statement.
        result_: everything that was released.
        feature_names_in_: names of the columns of a data frame that were used.
    """


class KMedians(PrivateClusterer):
    """Private k-median: centres that make distances small, so that a few far rows count little.

    Parameters and attributes: as ``KMeans``; ``method='auto'`` is ``auto-median``, and ``score`` is minus the sum of
    distances. What holds of scaling before ``fit`` holds here: use ``cloister.PublicScaler``.
    """

    _power: ClassVar[int] = 1
    _defaults: ClassVar[Mapping[str, str]] = {"method": "auto-median"}


class OneRound(PrivateClusterer):
    """k-means from one private report per person, under local trust: SIMULATED, since all rows are here.

    It shows what a real collection would find (``cloister plan``, ``encode``, ``decode``), where each person randomises
    her own report and nobody sees a row.

    Parameters and attributes: as ``KMeans``; ``method='auto'`` is ``one-round``, trust is local unless named, and
    ``rows`` is needed. What holds of scaling before ``fit`` holds here: use ``cloister.PublicScaler``.
    """

    _defaults: ClassVar[Mapping[str, str]] = {"method": "one-round", "trust": "local"}


def estimator_of(result: Result) -> PrivateClusterer:
    """Return the fitted estimator that a result stands for, by its method and trust."""
    if result.privacy.trust == "Local" and result.method["name"].startswith(OneRound._defaults["method"]):
        return OneRound.of(result)
    return (KMedians if result.objective == "k-median" else KMeans).of(result)


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
