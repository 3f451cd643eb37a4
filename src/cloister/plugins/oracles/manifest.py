"""The built-in oracles, by trust model. Imports nothing heavy."""

from __future__ import annotations

from cloister.plugin import Role, Spec

CANONNE = "Canonne, Kamath, Steinke (2020); Balle, Wang (2018)"
CHANG = "Chang, Ghazi, Kumar, Manurangsi (2021)"
DIAA = "Diaa, Humphries, Kerschbaum: FastLloyd (2024)"
FELDMAN = "Feldman, McMillan, Talwar (2023)"
KOROLOVA = "Korolova, Kenthapadi, Mishra, Ntoulas (2009)"
MIXING = f"{CHANG}; Balle, Bell, Gascon, Nissim (2020)"
SKELLAM = "Agarwal, Kairouz, Liu (2021); Kairouz, Liu, Steinke (2021)"
STEMMER = "Stemmer: Locally private k-means clustering (2021)"
WANG = "Wang, Blocki, Li, Jha (2017)"

ROLES: dict[str, Role] = {"counts": "FrequencyOracle", "vector sums": "VectorSumOracle"}
BOTH, COUNTS, SUMS = tuple(ROLES), ("counts",), ("vector sums",)

ORACLES: tuple[tuple[str, tuple[str, ...], str, str, str, int | None], ...] = (
    (
        "discrete-laplace",
        BOTH,
        "central.discrete_laplace:DiscreteLaplace",
        "with two-sided geometric noise: pure privacy",
        "Ghosh, Roughgarden, Sundararajan (2009)",
        3,
    ),
    (
        "l2-mechanism",
        SUMS,
        "central.l2_mechanism:L2Mechanism",
        "in few columns with noise on whole vectors: pure privacy",
        "Hardt, Talwar (2010); Joseph, Kulesza, Yu (2025)",
        2,
    ),
    (
        "discrete-gaussian",
        BOTH,
        "central.discrete_gaussian:DiscreteGaussian",
        "with discrete Gaussian noise",
        CANONNE,
        1,
    ),
    (
        "thresholded",
        COUNTS,
        "central.thresholded:ThresholdedCounts",
        "of occupied buckets above a threshold; spends delta",
        KOROLOVA,
        None,
    ),
    (
        "thresholded-gaussian",
        COUNTS,
        "central.thresholded_gaussian:ThresholdedGaussian",
        "of occupied buckets above a threshold, with discrete Gaussian noise; spends delta",
        f"{KOROLOVA}; Wilkins, Kifer, Zhang, Karrer (2024)",
        None,
    ),
    (
        "masked-gaussian",
        BOTH,
        "aggregated.masked_gaussian:MaskedGaussian",
        "pooled by parties, discrete Gaussian noise from the coordinator",
        DIAA,
        2,
    ),
    (
        "skellam",
        BOTH,
        "aggregated.skellam:SkellamShares",
        "pooled by parties, a share of the noise from each",
        SKELLAM,
        1,
    ),
    ("exact", BOTH, "central.exact:Exact", "without noise, NOT private, for comparison", "", None),
    (
        "explicit-histogram",
        COUNTS,
        "local.counts.local_hashing:ExplicitHistogram",
        "from one randomised sign per user, for domains of any size",
        "Bassily, Nissim, Stemmer, Thakurta (2020)",
        3,
    ),
    (
        "asked-local-hashing",
        COUNTS,
        "local.counts.local_hashing:AskedLocalHashing",
        "from randomised response on a public hash, for domains of any size",
        WANG,
        None,
    ),
    (
        "optimised-local-hashing",
        COUNTS,
        "local.counts.local_hashing:OptimisedLocalHashing",
        "from randomised response on a public hash",
        WANG,
        1,
    ),
    (
        "adaptive-response",
        COUNTS,
        "local.counts.adaptive_response:AdaptiveResponse",
        "from randomised response on the bucket, or on a hash of it: whichever has the less noise",
        WANG,
        None,
    ),
    (
        "hadamard-response",
        COUNTS,
        "local.counts.hadamard_response:HadamardResponse",
        "from one bit per user, for millions of buckets",
        "Acharya, Sun, Zhang (2019)",
        2,
    ),
    (
        "optimised-unary",
        COUNTS,
        "local.counts.optimised_unary:OptimisedUnary",
        "from one randomised bit per bucket, for small spaces",
        WANG,
        None,
    ),
    (
        "subset-selection",
        COUNTS,
        "local.counts.subset_selection:SubsetSelection",
        "from a random set of buckets, for small spaces: the least noise",
        "Ye, Barg (2018)",
        None,
    ),
    (
        "hadamard-vector",
        SUMS,
        "local.vectors.vector_sums:HadamardVector",
        "of all buckets by one Hadamard transform, one byte per user",
        CHANG,
        1,
    ),
    (
        "explicit-histogram-vector",
        SUMS,
        "local.vectors.vector_sums:ExplicitHistogramVector",
        "of any bucket that is asked for, domains of any size",
        CHANG,
        2,
    ),
    (
        "ldp-average",
        SUMS,
        "local.vectors.ldp_average:LdpAverage",
        "from Gaussian noise for every bucket; spends delta",
        STEMMER,
        None,
    ),
    (
        "amplified-counts",
        COUNTS,
        "shuffled.amplified:AmplifiedCounts",
        "from shuffled local reports; spends delta",
        FELDMAN,
        2,
    ),
    (
        "amplified-vectors",
        SUMS,
        "shuffled.amplified:AmplifiedVectors",
        "from shuffled local reports; spends delta",
        FELDMAN,
        2,
    ),
    (
        "split-and-mix-counts",
        COUNTS,
        "shuffled.split_and_mix:SplitAndMix",
        "of everyone's shuffled shares, with a curator's noise; spends delta",
        MIXING,
        1,
    ),
    (
        "split-and-mix",
        SUMS,
        "shuffled.split_and_mix:SplitAndMix",
        "of everyone's shuffled shares, with a curator's noise; spends delta",
        MIXING,
        1,
    ),
    (
        "blanket-histogram",
        COUNTS,
        "shuffled.blanket_histogram:BlanketHistogram",
        "from shuffled hash values among uniform ones, for domains of any size; spends delta",
        "Luo, Wang, Yi (2022)",
        3,
    ),
)
"""Name, what it answers, class (its folder names the trust model), summary, source and ``Spec.fills``."""


def oracles() -> list[Spec]:
    """Return the specifications of all built-in oracles, one for each role of an oracle."""
    return [
        Spec(
            name,
            ROLES[role],
            f"cloister.plugins.oracles.{target}",
            f"{role} {summary}",
            target.partition(".")[0].title(),
            paper,
            private=name != "exact",
            fills=fills,
        )
        for name, roles, target, summary, paper, fills in ORACLES
        for role in roles
    ]
