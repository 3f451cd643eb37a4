"""Estimators by name, and the parts of scikit-learn's contract that they cannot keep, with reasons."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from cloister.core.registry.records import objective_in
from cloister.estimators.base import PrivateClusterer
from cloister.run.result import Result


class KMeans(PrivateClusterer):
    """Private k-means with scikit-learn's interface.

    Fitted attributes hold released values only: there are no ``labels_`` and no ``inertia_``, which would reveal rows.
    ``predict``, ``transform`` and ``score`` compute from the rows you pass: NOT private, and not to be published.

    The guarantee covers ``fit`` only. ``make_pipeline(StandardScaler(), KMeans(...))`` keeps the rows' exact means in
    the pipeline, outside any guarantee; scale by public bounds instead, with ``cloister.PublicScaler``.

    Args:
        n_clusters: number of centres; or a range (fewest, most) from which the run chooses by its released values.
        method: registry name of the method (``cloister list Method``); 'auto' picks the one with the least predicted
            error for the class's objective, from public figures alone. Or a component, made by
            ``cloister.plugin.make("Method", "fastlloyd", counts="discrete-laplace")``: its options and parts are then
            parameters too (``set_params(method__rounds=3)``), and it is recorded by name.
        epsilon: privacy budget of one ``fit``, in nats.
        delta: probability with which the guarantee may fail; 0 for methods with pure noise only.
        bounds: public bounds: a pair for all columns, a list with a pair per column, {"lower": ..., "upper": ...}, a
            mapping of column names to pairs, or a .toml or .json file of one. A mapping or file also selects the
            columns of a data frame.
        rows: public number of rows, a round figure; None: 1% of the budget counts them.
        zoom: 'auto', 'off' or the share of the budget spent on locating the rows within wide bounds.
        scale: units of distances: 'none', 'bounds' (each column's width) or a weight per column; by default 'bounds'
            where widths differ by more than a factor of two. ``predict``, ``transform`` and ``score`` use them too.
        components: component name per slot, e.g. {"counts": "discrete-laplace"}.
        options: option values, e.g. {"rounds": 5}.
        columns: names or patterns of a data frame's columns to use; None: those that bounds and categories name, or
            else all.
        categories: public values of columns that hold categories, e.g. {"ward": ["A", "B"]}.
        describe: columns that describe the groups, clustered or not: numbers with bounds, booleans, and categories.
            ``result_`` then has the description, for ``describe_share`` of the budget (above 0, at most 0.9); of more
            than 8 columns it keeps those that distinguish the groups best.
        describe_words: column of texts or lists whose keywords describe the groups; at most ``most_words`` (16) per
            row count.
        missing: 'refuse' rows with missing or infinite cells, or 'drop' them: they then have the label -1, distances
            NaN and no part in a score.
        user_column: column of a data frame that names each row's user; of an array pass ``fit(X, users=names)``. The
            guarantee is then for users, with all their rows.
        rows_per_user: public limit of rows per user (contribution bounding); ``rows`` counts the rows kept.
        ledger, dataset: file and declared name of a lifetime budget that this fit is charged to.
        not_private: allow methods that give no guarantee.
        random_state: seed of the public choices (the start). The noise is never repeatable.
        threads: number of threads; by default one per core. Results do not depend on it.
        trust: 'central', 'local', 'shuffled' or 'aggregated': fills all slots that ``components`` does not name.
        progress: show progress: True, False, or None, after two seconds, on a terminal or in a notebook.

    Attributes:
        cluster_centers_: (n_clusters, n_features) released centres.
        cluster_weights_: (n_clusters,) noisy rows per centre, or None.
        privacy_: the privacy statement.
        result_: everything that was released.
        feature_names_in_: names of the columns of a data frame that were used.
    """


class KMedians(PrivateClusterer):
    """Private k-median, which minimises the sum of distances and so is robust to outliers.

    Parameters and attributes: as ``KMeans``; ``method='auto'`` is ``auto-median``, and ``score`` is minus the sum of
    distances. To scale before ``fit``, use ``cloister.PublicScaler``.
    """

    _power: ClassVar[int] = 1
    _defaults: ClassVar[Mapping[str, str]] = {"method": "auto-median"}


class OneRound(PrivateClusterer):
    """k-means from one private report per person, under local trust: SIMULATED, since all rows are in one process.

    In a real collection (``cloister plan``, ``encode``, ``decode``) each person randomises her own report and nobody
    sees a row.

    Parameters and attributes: as ``KMeans``; ``method='auto'`` is ``one-round``, trust is local unless named, and
    ``rows`` is needed. To scale before ``fit``, use ``cloister.PublicScaler``.
    """

    _defaults: ClassVar[Mapping[str, str]] = {"method": "one-round", "trust": "local"}


def estimator_of(result: Result) -> PrivateClusterer:
    """Return the fitted estimator that a result stands for, by its method and trust."""
    if result.privacy.trust == "Local" and result.method["name"].startswith(OneRound._defaults["method"]):
        return OneRound.of(result)
    return (KMedians if objective_in(result.method) == "k-median" else KMeans).of(result)


LABELS = "there are no labels_: they would carry every row"
NOISE = "the noise is fresh in every fit and cannot be seeded, so that two fits differ"

EXPECTED_FAILED_CHECKS: dict[str, str] = {
    "check_clustering": LABELS,
    "check_fit_idempotent": NOISE,
}
"""scikit-learn's checks that ``KMeans``, ``KMedians`` and ``OneRound`` fail, each with the reason. Those that compare
two fits are skipped where they heed the tag ``non_deterministic``."""


def expected_failed_checks(estimator: Any) -> dict[str, str]:
    """Return the ``EXPECTED_FAILED_CHECKS`` of an estimator: none of ``PublicScaler``, which keeps the contract."""
    return dict(EXPECTED_FAILED_CHECKS) if isinstance(estimator, PrivateClusterer) else {}
