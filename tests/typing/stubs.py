"""Signatures of oracles and populations under every trust model, and a method for any of them: nothing here runs."""

from __future__ import annotations

from typing import Any, Generic

import numpy as np

from cloister.accounting import PrivacyTarget
from cloister.core.buckets import BucketedVectors, QuestionContext, Space
from cloister.core.budget import Budget, Measure
from cloister.core.clustering import Clustering, Problem
from cloister.core.domains import Box
from cloister.core.lattice import Bound
from cloister.core.nearest import NearestCenter
from cloister.core.questions import Round
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.core.registry.components import component, slot
from cloister.core.roles import Channel, Counts, FrequencyOracle, Sums, VectorSumOracle
from cloister.core.session import Session
from cloister.core.trust import Aggregated, Central, Local, T
from cloister.core.types import Ints

box = Box((-1.0, -1.0), (1.0, 1.0))
total = PrivacyTarget(1.0)
budget = total.measured(["pure"])
problem = Problem(3, box, 10, budget)
seed, noise = PublicRng.from_seed(1), NoiseRng.secret()
near = NearestCenter(np.zeros((3, 2), np.int64), box.max_norm)


class Facts:
    measure: Measure = "pure"
    uses_delta = asks_all_users = biased = False


class AnyCounts(Facts):
    def open(self, space: Space, budget: Budget, context: QuestionContext) -> Channel[Ints, Any, Any, Counts]:
        raise NotImplementedError

    def variance(self, space: Space, budget: Budget, context: QuestionContext) -> float:
        raise NotImplementedError


class AnySums(Facts):
    def open(
        self, space: Space, budget: Budget, context: QuestionContext, bound: Bound
    ) -> Channel[BucketedVectors, Any, Any, Sums]:
        raise NotImplementedError

    def variance(self, space: Space, budget: Budget, context: QuestionContext, bound: Bound) -> float:
        raise NotImplementedError


class CentralCounts(AnyCounts):
    trust = Central


class CentralSums(AnySums):
    trust = Central


class LocalCounts(AnyCounts):
    trust = Local


class LocalSums(AnySums):
    trust = Local


class PooledCounts(AnyCounts):
    trust = Aggregated


class PooledSums(AnySums):
    trust = Aggregated


class Curator:
    """Rows that a curator sees."""

    columns = ("x", "y")

    def check(self, most_rows: int = 1000) -> None:
        raise NotImplementedError

    def gather(self, round: Round[Central], rng: NoiseRng) -> tuple[Any, ...]:
        raise NotImplementedError


class Collected:
    """Reports of local randomisers."""

    def gather(self, round: Round[Local], rng: NoiseRng) -> tuple[Any, ...]:
        raise NotImplementedError


class Party:
    """One of several organisations that pool masked sums."""

    def gather(self, round: Round[Aggregated], rng: NoiseRng) -> tuple[Any, ...]:
        raise NotImplementedError


@component
class TwoSlots(Generic[T]):
    """A method for every trust model, as Lloyd is one."""

    counts: FrequencyOracle[T] = slot(help="rows per bucket")
    sums: VectorSumOracle[T] = slot(help="sums per bucket")

    def cluster(self, problem: Problem, session: Session[T], rng: PublicRng) -> Clustering:
        raise NotImplementedError
