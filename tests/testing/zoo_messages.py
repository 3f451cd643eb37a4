"""Oracles of several messages per user that spoil them. All claim the guarantee of split-and-mix (Shuffled; replace one
row)."""

from __future__ import annotations

from typing import Any, ClassVar

import attrs
import numpy as np

from cloister.core.buckets import QuestionContext, Space
from cloister.core.budget import Budget, Measure
from cloister.core.randomness import NoiseRng
from cloister.core.trust import Shuffled
from cloister.core.types import AnyArray, Ids
from cloister.plugins.oracles.shuffled.mixing import Shares
from cloister.plugins.oracles.shuffled.split_and_mix import SplitAndMix


class _Same:
    """An honest channel, but for what a subclass changes."""

    def __init__(self, honest: Any) -> None:
        self.honest = honest

    def __getattr__(self, name: str) -> Any:
        return getattr(self.honest, name)


@attrs.frozen
class _Counts:
    """Shuffled; replace one row: as split-and-mix-counts."""

    trust = Shuffled
    measure: ClassVar[Measure] = "gaussian"
    uses_delta: ClassVar[bool] = True
    asks_all_users: ClassVar[bool] = True
    biased: ClassVar[bool] = False
    channel: ClassVar[type[_Same]] = _Same

    def open(self, space: Space, budget: Budget, context: QuestionContext) -> Any:
        return self.channel(SplitAndMix().open(space, budget, context))

    def variance(self, space: Space, budget: Budget, context: QuestionContext) -> float:
        return SplitAndMix().variance(space, budget, context)


class _Named(Shares):  # type: ignore[misc]
    """Messages beside which the sender's number travels."""

    def columns(self) -> dict[str, AnyArray]:
        return {**super().columns(), "users": np.zeros(len(self.slots), np.uint64)}


class _Naming(_Same):
    def encode(self, items: Any, users: Ids, rng: NoiseRng) -> Any:
        report = self.honest.encode(items, users, rng)
        return _Named(report.question, report.slots, report.shares)


class NamesUsers(_Counts):
    channel = _Naming


class _InOrder(_Same):
    """Goes by where a message stands, not by its slot."""

    def absorb(self, report: Any) -> Any:
        users = len(report.slots) // self.honest.messages
        slots = np.tile(np.repeat(np.arange(self.honest.slots, dtype=np.uint32), self.honest.each), users + 1)
        return self.honest.absorb(Shares(report.question, slots[: len(report.slots)], report.shares))


class NeedsTheirOrder(_Counts):
    channel = _InOrder


class _Quieter(_Same):
    """Draws half of the standard deviation where no messages are made."""

    def pooled(self, items: Any, users: Ids, rng: NoiseRng) -> Any:
        summary = self.honest.pooled(items, users, rng)
        return attrs.evolve(summary, owed=summary.owed // 4)


class QuieterWhenPooled(_Counts):
    channel = _Quieter


class _Hopeful(_Same):
    min_honest_users = 10**9


class CountsOnMoreThanThereAre(_Counts):
    channel = _Hopeful


class _Quiet:
    """Half of the noise where more than a thousand rows are."""

    def __init__(self, table: Any, exact: Any) -> None:
        self._table, self._exact = table, exact

    def at(self, ids: Any, level: int = 0) -> Any:
        noisy, exact = self._table.at(ids, level), self._exact.at(ids, level)
        return np.where(np.abs(exact) > 1000, (noisy + exact) / 2, noisy)

    def standard_error(self, ids: Any, level: int = 0) -> Any:
        return self._table.standard_error(ids, level)


class _QuietAbove(_Same):
    def decode(self, summary: Any, rng: NoiseRng) -> Any:
        return _Quiet(self.honest.decode(summary, rng), self.honest.decode(attrs.evolve(summary, owed=0), rng))


class QuieterWhereMany(_Counts):
    channel = _QuietAbove
