"""The methods that cloister itself offers, with what they preset. Imports nothing heavy."""

from __future__ import annotations

from typing import Any

from cloister.plugin import Spec
from cloister.plugins.oracles.manifest import DIAA, STEMMER

LLOYD = "cloister.plugins.methods.lloyd:Lloyd"
HST = "cloister.plugins.methods.hst:HST"
TREE_ALONE = "cloister.plugins.methods.tree_alone:TreeAlone"
ONE_ROUND = "cloister.plugins.methods.one_round:OneRoundMeans"
WEIGHTED = "cloister.plugins.methods.weighted_centers.weighted_centers:WeightedCenters"
LLOYD_MEDIAN = "cloister.plugins.methods.lloyd_median:LloydMedian"
AUTO = "cloister.plugins.methods.auto:Auto"
REFIT = "cloister.plugins.methods.refit:Refit"
CHANG = "Chang, Ghazi, Kumar, Manurangsi: Locally private k-means in one round (2021)"
COHEN = "Cohen-Addad et al.: Scalable differentially private clustering via hierarchically separated trees (2022)"
KAMATH = "Chang, Kamath: Practical differentially private clustering (2021)"
SU = "Su, Cao, Li, Bertino, Jin: Differentially private k-means clustering (2016)"
ONE_ROUND_PAPER = {"solver": "kmeans++", "grid_up_to": 0, "share": "budget", "partitions": 1, "clip": True}
GAUSSIAN = {"counts": "discrete-gaussian", "sums": "discrete-gaussian"}
LAPLACE = {"counts": "discrete-laplace", "sums": "discrete-laplace"}
EXACT = {"counts": "exact", "sums": "exact"}
PUBLISHED: dict[str, Any] = {"floor": 0.0, "keep_below": 1.0, "shrink": 0.0}
"""Lloyd's rounds as the papers have them: no shrinking, and a count that could flip a step moves no centre."""
ABSOLUTE: dict[str, Any] = {
    **PUBLISHED,
    "updates": "absolute",
    "radius": "none",
    "clip_steps": False,
    "border": "none",
}


def methods() -> list[Spec]:
    """List choosers, rounds and starts of any trust model, then those of one trust model or cost."""
    return [*_rounds(), *_wrappers(), *_starts(), *_one_round(), *_trees(), *_grids(), *_median(), *_local_rounds()]


def _rounds() -> list[Spec]:
    """List the methods that choose, or take rounds."""
    return [
        Spec(
            "auto",
            "Method",
            AUTO,
            "k-means by whichever method predicts the least error for k, rows, columns and budget",
        ),
        Spec(
            "auto-median",
            "Method",
            AUTO,
            "k-median by whichever method predicts the least error",
            presets={"candidates": "k-median"},
        ),
        Spec(
            "fastlloyd",
            "Method",
            LLOYD,
            "k-means by noisy rounds within a radius, relative updates, folding: as published",
            paper=DIAA,
            presets={**GAUSSIAN, **PUBLISHED},
        ),
        Spec(
            "damped-lloyd",
            "Method",
            LLOYD,
            "FastLloyd with steps and last centres shortened by their noise, and a floor under counts",
            paper=DIAA,
            presets=GAUSSIAN,
            objective="k-means",
        ),
        Spec(
            "gauss-lloyd",
            "Method",
            LLOYD,
            "k-means by noisy rounds with Gaussian noise: as published",
            paper=DIAA,
            presets={**GAUSSIAN, **ABSOLUTE},
        ),
        Spec(
            "su-lloyd",
            "Method",
            LLOYD,
            "k-means by noisy rounds with Laplace noise, pure privacy: as published",
            paper=SU,
            presets={**LAPLACE, **ABSOLUTE},
        ),
    ]


def _wrappers() -> list[Spec]:
    """List the methods that wrap another one."""
    return [
        Spec(
            "zoom",
            "Method",
            "cloister.plugins.methods.zoom:Zoom",
            "finds where the rows are within wide bounds, and clusters there",
            paper="Karwa, Vadhan (2018)",
            adds="frame",
            fills=1,
        ),
        Spec(
            "described",
            "Method",
            "cloister.plugins.methods.described:DescribedGroups",
            "clusters by another method, and counts what each group's rows hold in any column",
            adds="description",
            fills=1,
        ),
        Spec(
            "worded",
            "Method",
            "cloister.plugins.methods.worded:Worded",
            "clusters by another method, and counts the words that many rows of each group have",
            adds="words",
            fills=1,
        ),
    ]


def _starts() -> list[Spec]:
    """List Lloyd's rounds for few rows and without privacy, and the methods that begin from public centres."""
    return [
        Spec(
            "shrunk-lloyd",
            "Method",
            "cloister.plugins.methods.shrunk_lloyd:ShrunkLloyd",
            "k-means by rounds of clipped sums, shrunk by their known noise: for few rows",
            paper=DIAA,
            objective="k-means",
        ),
        Spec(
            "refit",
            "Method",
            REFIT,
            "k-means from public centres, such as an earlier result's, that are taken to fit",
            presets={"start": "given-centers", "share": 0.0},
            starts="start.centers",
        ),
        Spec(
            "refit-or-fresh",
            "Method",
            REFIT,
            "k-means from public centres, or from fresh ones where these fit better by a private comparison",
            presets={"start": "given-centers"},
            objective="k-means",
            starts="start.centers",
            fills=1,
        ),
        Spec(
            "kept-centers",
            "Method",
            "cloister.plugins.methods.kept_centers:KeptCenters",
            "a start's centres as they are, with counts of groups and of distances",
            presets={"start": "given-centers"},
            starts="start.centers",
        ),
        Spec(
            "given-centers",
            "Method",
            "cloister.plugins.methods.given_centers:GivenCenters",
            "k public centres, such as an earlier result's: a start that reads no row",
        ),
        Spec(
            "lloyd",
            "Method",
            LLOYD,
            "k-means by exact rounds, NOT private, for comparison",
            presets={**EXACT, **ABSOLUTE},
            private=False,
        ),
    ]


def _one_round() -> list[Spec]:
    """One skeleton: the new design, and the paper's two."""
    paper = {"counts": "explicit-histogram", "sums": "explicit-histogram-vector", **ONE_ROUND_PAPER}
    return [
        Spec(
            "one-round",
            "Method",
            ONE_ROUND,
            "k-means from one report per person: spread cells, noise-corrected clustering",
            paper=CHANG,
            objective="k-means",
        ),
        Spec(
            "one-round-lsh",
            "Method",
            ONE_ROUND,
            "k-means from one report per person, on a tree of sign bits, as the paper ran it",
            paper=CHANG,
            presets={**paper, "tree": "simhash", "count_share": 0.1},
        ),
        Spec(
            "one-round-net-tree",
            "Method",
            ONE_ROUND,
            "k-means from one report per person, on a net tree, as the paper proves it",
            paper=CHANG,
            presets={**paper, "tree": "net-tree", "count_share": 0.5, "centers": "groups"},
        ),
    ]


def _trees() -> list[Spec]:
    """List the methods of a trusted curator that cluster noisy counts of cells."""
    start = {"start_share": 0.7, "radius": "constant", "rounds": 1, "border": "truncate", "shrink": 1.0}
    return [
        Spec(
            "hst-means",
            "Method",
            LLOYD,
            "k-means by a random tree's noisy counts, lifted, merged, and a round within a radius",
            paper=COHEN,
            presets={**start, "start": "tree-means"},
            objective="k-means",
        ),
        Spec(
            "tree-means",
            "Method",
            HST,
            "k-means by a random tree's noisy counts, lifted and merged",
            paper=COHEN,
            presets={"solver": "tree-program-means", "merge": "kmeans++"},
        ),
        Spec(
            "tree-coreset",
            "Method",
            ONE_ROUND,
            "k-means from noisy counts and means of cells, in one round",
            paper=KAMATH,
            presets=GAUSSIAN,
        ),
        Spec(
            "tree-coreset-lsh",
            "Method",
            ONE_ROUND,
            "k-means from noisy counts and means of a tree of sign bits, as published",
            paper=KAMATH,
            presets={**ONE_ROUND_PAPER, **GAUSSIAN, "tree": "simhash"},
        ),
        Spec(
            "tree-coreset-lsh-median",
            "Method",
            ONE_ROUND,
            "k-median from noisy counts and means of a tree of sign bits: a rival of the tree paper",
            paper=KAMATH,
            presets={**ONE_ROUND_PAPER, **GAUSSIAN, "tree": "simhash", "solver": "kmedian++"},
        ),
        Spec(
            "tree-coreset-median",
            "Method",
            ONE_ROUND,
            "k-median from noisy counts and means of cells, in one round",
            paper=KAMATH,
            presets={**GAUSSIAN, "solver": "kmedian++", "grid_up_to": 0},
        ),
    ]


def _grids() -> list[Spec]:
    """List the methods of a trusted curator that measure a grid or radii, and the start that reads no row."""
    return [
        Spec(
            "grid-means",
            "Method",
            "cloister.plugins.methods.grid_means:GridMeans",
            "k-means in few columns from noisy counts on a grid, and a round of clipped sums",
            paper=SU,
            presets=GAUSSIAN,
            objective="k-means",
            alternatives=({"counts": "discrete-laplace"}, {"counts": "discrete-laplace", "sums": "l2-mechanism"}),
        ),
        Spec(
            "radius-means",
            "Method",
            "cloister.plugins.methods.radius_means:RadiusMeans",
            "k-means around a noisy mean, within measured radii: many columns, loose bounds",
            presets=GAUSSIAN,
            objective="k-means",
            paper="cloister's own; Biswas, Dong, Kamath, Ullman: CoinPress (2020)",
        ),
        Spec(
            "sphere-packing",
            "Method",
            "cloister.plugins.methods.sphere_packing:SpherePacking",
            "k public points far apart: a start that reads no row",
            paper=SU,
        ),
    ]


def _median() -> list[Spec]:
    """k-median: what follows a start, and the rivals."""
    return [
        Spec(
            "hst-median",
            "Method",
            LLOYD_MEDIAN,
            "k-median by a random tree's noisy counts, lifted, merged, and rounds of unit vectors",
            paper=COHEN,
            presets={"start": "tree-median", "start_share": 0.5, "rounds": 4},
            objective="k-median",
        ),
        Spec(
            "grid-median",
            "Method",
            LLOYD_MEDIAN,
            "k-median in few columns by a grid's noisy counts, and a round of unit vectors",
            paper=COHEN,
            presets={"start": "grid-means", "start_share": 0.8, "rounds": 1},
            objective="k-median",
        ),
        Spec(
            "tree-median",
            "Method",
            HST,
            "k-median by a random tree's noisy counts, lifted and merged",
            paper=COHEN,
            presets={"merge": "kmedian++", "extra": 2},
        ),
        Spec(
            "tree-alone-median",
            "Method",
            TREE_ALONE,
            "k-median by a random tree's noisy counts and nothing else, pure privacy: Algorithm 1 as published",
            paper=COHEN,
        ),
        Spec(
            "private-lloyd-median",
            "Method",
            LLOYD_MEDIAN,
            "k-median by noisy rounds of unit vectors from a public start",
            paper=COHEN,
            objective="k-median",
        ),
    ]


def _local_rounds() -> list[Spec]:
    """Local trust in a constant number of rounds."""
    return [
        Spec(
            "weighted-centers",
            "Method",
            WEIGHTED,
            "k-means under local trust in five rounds: candidates by hashing, weighted twice",
            paper=STEMMER,
        ),
        Spec(
            "weighted-centers-median",
            "Method",
            WEIGHTED,
            "k-median under local trust in five rounds",
            paper=STEMMER,
            presets={"solver": "kmedian++"},
        ),
        Spec(
            "nearest-centers",
            "Method",
            WEIGHTED,
            "k-means from the same candidates, each row at its nearest, once",
            paper="Kaplan, Stemmer: Differentially private k-means with constant multiplicative error (2018)",
            presets={"assignment": "nearest"},
        ),
    ]
