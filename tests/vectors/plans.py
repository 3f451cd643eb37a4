"""The plans whose bundles are vectors: every randomiser a person runs, alone and over levels, and every method."""

from __future__ import annotations

from typing import Any, final

import attrs

from cloister.core.frames import UNKNOWN
from cloister.core.registry.registry import built_in

USERS = 100_000


@final
@attrs.frozen
class Planned:
    """Args: name, request (see ``Request``), dimension, cases (at least), rounds (all of them, not the first alone),
    plain (uniform words only: noise that is drawn by rejection, where edges would go on for ever)."""

    name: str
    request: dict[str, Any]
    dimension: int = 2
    cases: int = 4
    rounds: bool = False
    plain: bool = False


@final
@attrs.frozen
class Group:
    """One file. Args: name, what (in words), plans."""

    name: str
    what: str
    plans: tuple[Planned, ...]


def planned(name: str, method: str, dimension: int = 2, **changes: Any) -> Planned:
    own = {field: changes.pop(field) for field in ("cases", "rounds", "plain") if field in changes}
    base = {"k": 2, "epsilon": 2.0, "delta": 0.0, "bounds": "ball:1", "rows": USERS, "seed": 1}
    return Planned(name, {**base, "method": method, **changes}, dimension, **own)


COUNTS = [spec.name for spec in built_in().specs("FrequencyOracle") if spec.trust == "Local"]


def _counts(name: str, **options: Any) -> Planned:
    """Counts at four levels of a tree of sign bits; 12 cases, so that edges come at every level."""
    return planned(
        f"{name} {options}",
        "tree-coreset-lsh",
        3,
        components={"counts": name, "sums": "hadamard-vector"},
        options={f"counts.{option}": value for option, value in options.items()},
        trust="local",
        cases=12,
    )


def _vectors(
    name: str, dimension: int, plain: bool = False, method: str = "tree-coreset-lsh", cases: int = 10, **options: Any
) -> Planned:
    return planned(
        f"{name} {dimension} {options}",
        method,
        dimension,
        components={"sums": name},
        trust="local",
        cases=cases,
        options={f"sums.{option}": value for option, value in options.items()},
        plain=plain,
    )


def _local(name: str, method: str, dimension: int = 2, **changes: Any) -> Planned:
    return planned(name, method, dimension, **{"trust": "local", "delta": 1e-6, "epsilon": 8.0, **changes})


def _wide(randomiser: str, dimension: int) -> Planned:
    """Vectors of many columns in few buckets: long sums of doubles."""
    return planned(
        f"wide {randomiser}",
        "one-round",
        dimension,
        components={"sums": "hadamard-vector"},
        cases=4,
        options={"sums.randomiser": randomiser, "tree.cells": 4},
        plain=randomiser == "privunit",
    )


def shuffled(name: str, counts: str, sums: str, **changes: Any) -> Planned:
    components = {"counts": counts, "sums": sums}
    return planned(name, "one-round-lsh", 2, trust="shuffled", delta=1e-6, components=components, **changes)


DESCRIBED = planned(
    "described",
    "described",
    5,
    components={"method": "one-round"},
    options={"beside": 3, "columns": "0,2,3:2", "bins": 5},
    bounds=((-1.0, 1.0), (-1.0, 1.0), (0.0, 3.0), (-1.0, 1.0), (-1.0, 1.0)),
    trust="local",
    epsilon=8.0,
    rounds=True,
    cases=8,
)
"""Groups by the first two columns, of which one is described too; a number and a category are described only."""

METHODS = tuple(
    spec.name
    for spec in built_in().specs("Method")
    if spec.name
    not in {
        "auto",
        "auto-median",
        "lloyd",
        "sphere-packing",
        "given-centers",
        "worded",
    }  # those choose; not private; ask nothing; is a curator's
    and spec.name != DESCRIBED.name
)

FIRST = ("weighted-centers-median", "nearest-centers", "hst-median")
"""Methods whose later rounds are like another's, or like the first: that is enough."""

GROUPS = (
    Group(
        "local-counts",
        "Every count randomiser, levels sharing users and budget.",
        tuple(_counts(name, share=share) for name in COUNTS for share in ("users", "budget")),
    ),
    Group(
        "local-vectors",
        "Every randomiser of a vector, levels sharing users and budget.",
        (
            _vectors("hadamard-vector", 3),
            _vectors("hadamard-vector", 3, share="budget"),
            _vectors("hadamard-vector", 130),
            _vectors("explicit-histogram-vector", 300, cases=5, randomiser="one-byte"),
            _vectors("explicit-histogram-vector", 3, plain=True, randomiser="privunit"),
            _vectors("hadamard-vector", 4, plain=True, randomiser="privunit", share="budget"),
            _vectors("explicit-histogram-vector", 4, randomiser="duchi"),
            _vectors("hadamard-vector", 1, randomiser="duchi", share="budget"),
            *(_wide(one, dimension) for one, dimension in (("privunit", 20), ("duchi", 21), ("one-byte", 100))),
        ),
    ),
    Group(
        "local-others",
        "Gaussian vectors; adaptive response where there are many buckets; a box with other scales.",
        (
            planned(
                "ldp-average",
                "one-round-lsh",
                2,
                components={"sums": "ldp-average"},
                delta=1e-6,
                plain=True,
                trust="local",
            ),
            planned("adaptive-response", "one-round", 2, components={"counts": "adaptive-response"}, epsilon=0.5),
            planned("box", "one-round", 2, bounds=((-1.0, 3.0), (1.0, 2000.0)), options={"grid.side": 16}),
            planned(
                "box in other scales",
                "tree-means",
                2,
                trust="local",
                bounds=((-1.0, 3.0), (1.0, 2000.0)),
                scale="bounds",
            ),
        ),
    ),
    Group(
        "shuffled",
        "Messages to a shuffler: amplified local reports, hash values among blankets, shares.",
        (
            shuffled("amplified", "amplified-counts", "amplified-vectors", cases=8, epsilon=1.0),
            shuffled(
                "blanket-histogram",
                "blanket-histogram",
                "split-and-mix",
                options={"tree.depth": 2, "share": "budget"},
                plain=True,
                cases=3,
            ),
            shuffled(
                "split-and-mix-counts",
                "split-and-mix-counts",
                "split-and-mix",
                options={"tree.depth": 2},
                plain=True,
                cases=2,
            ),
            shuffled(
                "places by hashes",
                "split-and-mix-counts",
                "split-and-mix",
                options={"tree.depth": 3, "counts.buckets": 2, "sums.buckets": 2},
                plain=True,
                cases=2,
            ),
        ),
    ),
    Group(
        "kinds",
        "Kinds of domain, bucketing and vectors that the other files lack.",
        (
            _local("columns", "zoom", 3, options={"scale": "bounds,category:1,bounds"}, bounds=(-1e6, 1e6), cases=2),
            _local("graded", "zoom", bounds=(UNKNOWN, (-1e6, 1e6)), cases=8),
            _local("subspace", "tree-means", 30, cases=2),
            planned(
                "net with keys",
                "one-round-net-tree",
                8,
                epsilon=8.0,
                cases=2,
                options={"tree.levels": 8, "tree.dimension": 6},
            ),
            _local("spared", "tree-means", epsilon=20.0, rounds=True, cases=2, options={"passes": 2, "margin": 0.33}),
        ),
    ),
    Group(
        f"method-{DESCRIBED.name}",
        "one-round with its groups described, under Local trust, round by round.",
        (DESCRIBED,),
    ),
    *(
        Group(
            f"method-{name}",
            f"{name} under Local trust, round by round.",
            (_local(name, name, rounds=name not in FIRST, cases=2),),
        )
        for name in METHODS
    ),
)
