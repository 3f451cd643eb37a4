"""The oracles that cloister itself offers, by trust model. Imports nothing heavy."""

from __future__ import annotations

from cloister.core.registry.components import Spec

COUNTS = "cloister.plugins.oracles.local.counts"
VECTORS = "cloister.plugins.oracles.local.vectors"
SHUFFLED = "cloister.plugins.oracles.shuffled"
DIAA = "Diaa, Humphries, Kerschbaum: FastLloyd (2024)"
STEMMER = "Stemmer: Locally private k-means clustering (2021)"


def oracles() -> list[Spec]:
    """Counts and vector sums: a curator's, a pool's, a phone's, a shuffler's."""
    return [
        *_both(
            "discrete-laplace",
            "discrete_laplace:DiscreteLaplace",
            "with two-sided geometric noise: pure privacy",
            "Ghosh, Roughgarden, Sundararajan (2009)",
            "Central",
            fills=3,
        ),
        Spec(
            "l2-mechanism",
            "VectorSumOracle",
            "cloister.plugins.oracles.central.l2_mechanism:L2Mechanism",
            "vector sums in few columns with noise on whole vectors: pure privacy",
            "Central",
            "Hardt, Talwar (2010); Joseph, Kulesza, Yu (2025)",
            fills=2,
        ),
        *_both(
            "discrete-gaussian",
            "discrete_gaussian:DiscreteGaussian",
            "with discrete Gaussian noise",
            "Canonne, Kamath, Steinke (2020); Balle, Wang (2018)",
            "Central",
            fills=1,
        ),
        Spec(
            "thresholded",
            "FrequencyOracle",
            "cloister.plugins.oracles.central.thresholded:ThresholdedCounts",
            "counts of occupied buckets above a threshold; spends delta",
            "Central",
            "Korolova, Kenthapadi, Mishra, Ntoulas (2009)",
        ),
        Spec(
            "thresholded-gaussian",
            "FrequencyOracle",
            "cloister.plugins.oracles.central.thresholded_gaussian:ThresholdedGaussian",
            "counts of occupied buckets above a threshold, with discrete Gaussian noise; spends delta",
            "Central",
            "Korolova, Kenthapadi, Mishra, Ntoulas (2009); Wilkins, Kifer, Zhang, Karrer (2024)",
        ),
        *_both(
            "masked-gaussian",
            "masked_gaussian:MaskedGaussian",
            "pooled by parties, discrete Gaussian noise from the coordinator",
            DIAA,
            "Aggregated",
            fills=2,
        ),
        *_both(
            "skellam",
            "skellam:SkellamShares",
            "pooled by parties, a share of the noise from each",
            "Agarwal, Kairouz, Liu (2021); Kairouz, Liu, Steinke (2021)",
            "Aggregated",
            fills=1,
        ),
        *_both("exact", "exact:Exact", "without noise, NOT private, for comparison", "", "Central", private=False),
        *_local(),
        *_shuffled(),
        *_mixed(),
    ]


def _both(
    name: str, target: str, summary: str, paper: str, trust: str, private: bool = True, fills: int | None = None
) -> list[Spec]:
    """One law of noise, which fills both roles."""
    target = f"cloister.plugins.oracles.{trust.lower()}.{target}"
    return [
        Spec(name, "FrequencyOracle", target, f"counts {summary}", trust, paper, private=private, fills=fills),
        Spec(name, "VectorSumOracle", target, f"vector sums {summary}", trust, paper, private=private, fills=fills),
    ]


def _local() -> list[Spec]:
    """Answers of a person's own device: every report is private by itself."""
    bassily, wang = "Bassily, Nissim, Stemmer, Thakurta (2020)", "Wang, Blocki, Li, Jha (2017)"
    chang = "Chang, Ghazi, Kumar, Manurangsi (2021)"
    return [
        Spec(
            "explicit-histogram",
            "FrequencyOracle",
            f"{COUNTS}.local_hashing:ExplicitHistogram",
            "counts from one randomised sign per user, for domains of any size",
            "Local",
            bassily,
            fills=3,
        ),
        Spec(
            "asked-local-hashing",
            "FrequencyOracle",
            f"{COUNTS}.local_hashing:AskedLocalHashing",
            "counts from randomised response on a public hash, for domains of any size",
            "Local",
            wang,
        ),
        Spec(
            "optimised-local-hashing",
            "FrequencyOracle",
            f"{COUNTS}.local_hashing:OptimisedLocalHashing",
            "counts from randomised response on a public hash",
            "Local",
            wang,
            fills=1,
        ),
        Spec(
            "adaptive-response",
            "FrequencyOracle",
            f"{COUNTS}.adaptive_response:AdaptiveResponse",
            "counts from randomised response on the bucket, or on a hash of it: whichever has the less noise",
            "Local",
            wang,
        ),
        Spec(
            "hadamard-response",
            "FrequencyOracle",
            f"{COUNTS}.hadamard_response:HadamardResponse",
            "counts from one bit per user, for millions of buckets",
            "Local",
            "Acharya, Sun, Zhang (2019)",
            fills=2,
        ),
        Spec(
            "optimised-unary",
            "FrequencyOracle",
            f"{COUNTS}.optimised_unary:OptimisedUnary",
            "counts from one randomised bit per bucket, for small spaces",
            "Local",
            wang,
        ),
        Spec(
            "subset-selection",
            "FrequencyOracle",
            f"{COUNTS}.subset_selection:SubsetSelection",
            "counts from a random set of buckets, for small spaces: the least noise",
            "Local",
            "Ye, Barg (2018)",
        ),
        Spec(
            "hadamard-vector",
            "VectorSumOracle",
            f"{VECTORS}.vector_sums:HadamardVector",
            "vector sums of all buckets by one Hadamard transform, one byte per user",
            "Local",
            chang,
            fills=1,
        ),
        Spec(
            "explicit-histogram-vector",
            "VectorSumOracle",
            f"{VECTORS}.vector_sums:ExplicitHistogramVector",
            "vector sums of any bucket that is asked for, domains of any size",
            "Local",
            chang,
            fills=2,
        ),
        Spec(
            "ldp-average",
            "VectorSumOracle",
            f"{VECTORS}.ldp_average:LdpAverage",
            "vector sums from Gaussian noise for every bucket; spends delta",
            "Local",
            STEMMER,
        ),
    ]


def _shuffled() -> list[Spec]:
    """Answers that a shuffler mixes: those of people who hide among one another."""
    feldman, target = "Feldman, McMillan, Talwar (2023)", "cloister.plugins.oracles.shuffled.amplified:Amplified"
    return [
        Spec(
            "amplified-counts",
            "FrequencyOracle",
            f"{target}Counts",
            "counts from shuffled local reports; spends delta",
            "Shuffled",
            feldman,
            fills=2,
        ),
        Spec(
            "amplified-vectors",
            "VectorSumOracle",
            f"{target}Vectors",
            "vector sums from shuffled local reports; spends delta",
            "Shuffled",
            feldman,
            fills=2,
        ),
    ]


def _mixed() -> list[Spec]:
    """Several messages per person, which say something only when they are all shuffled."""
    chang = "Chang, Ghazi, Kumar, Manurangsi (2021); Balle, Bell, Gascon, Nissim (2020)"
    return [
        Spec(
            "split-and-mix-counts",
            "FrequencyOracle",
            f"{SHUFFLED}.split_and_mix:SplitAndMix",
            "counts of everyone's shuffled shares, with a curator's noise; spends delta",
            "Shuffled",
            chang,
            fills=1,
        ),
        Spec(
            "split-and-mix",
            "VectorSumOracle",
            f"{SHUFFLED}.split_and_mix:SplitAndMix",
            "vector sums of everyone's shuffled shares, with a curator's noise; spends delta",
            "Shuffled",
            chang,
            fills=1,
        ),
        Spec(
            "blanket-histogram",
            "FrequencyOracle",
            f"{SHUFFLED}.blanket_histogram:BlanketHistogram",
            "counts from shuffled hash values among uniform ones, for domains of any size; spends delta",
            "Shuffled",
            "Luo, Wang, Yi (2022)",
            fills=3,
        ),
    ]
