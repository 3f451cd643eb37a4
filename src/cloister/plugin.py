"""One import for authors of plugins: ``from cloister.plugin import Spec, hookimpl``.

A name is imported from its home when it is asked for, so that a manifest loads neither NumPy nor SciPy; type checkers and
editors see all of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cloister.additive.channel import Threshold
    from cloister.additive.dense import TensorChannel
    from cloister.additive.noise import UP, Gaussian, Laplace, Noise, Sensitivity, Skellam, enough_bits, wide_gaussian
    from cloister.additive.oracle import AdditiveCounts, AdditiveNoise, AdditiveSums
    from cloister.additive.ring_channel import RingChannel, most_rows_option
    from cloister.additive.sparse import SparseChannel, additive_channel
    from cloister.core.buckets import BucketedVectors, Bucketing, QuestionContext, Space, Vectors
    from cloister.core.budget import Budget, Event, Measure
    from cloister.core.capabilities import (
        Counted,
        Dividing,
        HasCostCurve,
        HasCutBoundaries,
        IsRandomisedResponse,
        Joining,
        MultiMessageChannel,
        NeedsHonestUsers,
        Pooling,
        PredictsError,
        Sorting,
    )
    from cloister.core.clustering import Clustering, Coreset, Errors, Leaves, Problem, Released, TreeMetric
    from cloister.core.digests import stamp
    from cloister.core.domains import Ball, Box, Domain
    from cloister.core.encoding import (
        Progress,
        chunk_rows,
        keep_memory,
        map_merge,
        merge_summaries,
        summarise_lattice,
        summarise_rows,
    )
    from cloister.core.errors import CloisterError, InvalidInput, MissingExtra, Refused, UnknownName, WrongComposition
    from cloister.core.lattice import CAP, Bound, shrink
    from cloister.core.marks import Marked, inside, mark, mark_of, marking
    from cloister.core.nearest import NearestCenter
    from cloister.core.questions import Question, Round, Rows, count, vector_sum
    from cloister.core.randomness import ANY_KEY, NoiseRng, PublicRng, skellam_ratio
    from cloister.core.registry.components import Spec, component, option, slot
    from cloister.core.registry.compose import filled, make
    from cloister.core.registry.hooks import hookimpl
    from cloister.core.roles import (
        Channel,
        Counts,
        Decoder,
        Encoder,
        FrequencyOracle,
        NonPrivateSolver,
        Summary,
        Sums,
        Table,
        Tree,
        TreeBuilder,
        VectorSumOracle,
    )
    from cloister.core.session import Method, Population, Session, forecast
    from cloister.core.trust import Aggregated, Central, Local, Shuffled, T
    from cloister.core.types import AnyArray, Bools, Floats, Ids, Ints

__all__ = [
    "ANY_KEY",
    "CAP",
    "UP",
    "AdditiveCounts",
    "AdditiveNoise",
    "AdditiveSums",
    "Aggregated",
    "AnyArray",
    "Ball",
    "Bools",
    "Bound",
    "Box",
    "BucketedVectors",
    "Bucketing",
    "Budget",
    "Central",
    "Channel",
    "CloisterError",
    "Clustering",
    "Coreset",
    "Counted",
    "Counts",
    "Decoder",
    "Dividing",
    "Domain",
    "Encoder",
    "Errors",
    "Event",
    "Floats",
    "FrequencyOracle",
    "Gaussian",
    "HasCostCurve",
    "HasCutBoundaries",
    "Ids",
    "Ints",
    "InvalidInput",
    "IsRandomisedResponse",
    "Joining",
    "Laplace",
    "Leaves",
    "Local",
    "Marked",
    "Measure",
    "Method",
    "MissingExtra",
    "MultiMessageChannel",
    "NearestCenter",
    "NeedsHonestUsers",
    "Noise",
    "NoiseRng",
    "NonPrivateSolver",
    "Pooling",
    "Population",
    "PredictsError",
    "Problem",
    "Progress",
    "PublicRng",
    "Question",
    "QuestionContext",
    "Refused",
    "Released",
    "RingChannel",
    "Round",
    "Rows",
    "Sensitivity",
    "Session",
    "Shuffled",
    "Skellam",
    "Sorting",
    "Space",
    "SparseChannel",
    "Spec",
    "Summary",
    "Sums",
    "T",
    "Table",
    "TensorChannel",
    "Threshold",
    "Tree",
    "TreeBuilder",
    "TreeMetric",
    "UnknownName",
    "VectorSumOracle",
    "Vectors",
    "WrongComposition",
    "additive_channel",
    "chunk_rows",
    "component",
    "count",
    "enough_bits",
    "filled",
    "forecast",
    "hookimpl",
    "inside",
    "keep_memory",
    "make",
    "map_merge",
    "mark",
    "mark_of",
    "marking",
    "merge_summaries",
    "most_rows_option",
    "option",
    "shrink",
    "skellam_ratio",
    "slot",
    "stamp",
    "summarise_lattice",
    "summarise_rows",
    "vector_sum",
    "wide_gaussian",
]  # fmt: skip

HOMES = {
    "additive.channel": "Threshold",
    "additive.dense": "TensorChannel",
    "additive.noise": "UP Gaussian Laplace Noise Sensitivity Skellam enough_bits wide_gaussian",
    "additive.oracle": "AdditiveCounts AdditiveNoise AdditiveSums",
    "additive.ring_channel": "RingChannel most_rows_option",
    "additive.sparse": "SparseChannel additive_channel",
    "core.buckets": "Bucketing Placed Setting Space Vectors",
    "core.budget": "Budget Event Measure",
    "core.capabilities": "Costing Counted Cutting Dividing Hiding Joining Mixing Pooling Predicting Responding Sorting",
    "core.clustering": "Clustering Coreset Errors Leaves Problem Released TreeMetric",
    "core.digests": "stamp",
    "core.domains": "Ball Box Domain",
    "core.encoding": "Progress chunk_rows keep_memory map_merge merge_summaries summarise_lattice summarise_rows",
    "core.errors": "CloisterError InvalidInput MissingExtra Refused UnknownName WrongComposition",
    "core.lattice": "CAP Bound shrink",
    "core.marks": "Marked inside mark mark_of marking",
    "core.nearest": "NearestCenter",
    "core.questions": "Question Round Rows add_up count",
    "core.randomness": "ANY_KEY NoiseRng PublicRng skellam_ratio",
    "core.registry.components": "Spec component option slot",
    "core.registry.compose": "filled make",
    "core.registry.hooks": "hookimpl",
    "core.roles": "Channel Counts Decoder Encoder FrequencyOracle NonPrivateSolver Summary Sums Table Tree TreeBuilder "
    "VectorSumOracle",
    "core.session": "Method Population Session forecast",
    "core.trust": "Aggregated Central Local Shuffled T",
    "core.types": "AnyArray Bools Floats Ids Ints",
}
"""Where each name is defined, below ``cloister``."""

_HOME = {name: home for home, names in HOMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'cloister.plugin' has no attribute '{name}'")
    return getattr(import_module(f"cloister.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
