"""People who lie as well as they can: they know the public coins of their numbers, and send without noise."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from cloister.plugins.oracles.local.coins import WORDS
from cloister.plugins.oracles.local.counts.channel import OneResponse
from cloister.plugins.oracles.local.counts.subset_selection import Subset
from cloister.plugins.oracles.local.packed_sets import packed
from cloister.plugins.oracles.local.reports import Reports
from cloister.plugins.oracles.local.vectors.codebook import Codebook
from cloister.plugins.oracles.local.vectors.unit_randomiser import lifted, sent


def asked(part: Any, users: np.ndarray) -> np.ndarray:
    return users if part.user_share is None else users[part.user_share.holds(users)]


def supporting(part: Any, users: np.ndarray, bucket: int) -> Reports:
    """Reports of those who are asked, all for one bucket of a question of one level."""
    question, users = part.channel.asked, asked(part, users)
    (level,) = question.levels
    ids = np.full(len(users), bucket)
    if isinstance(level, OneResponse):
        return Reports(users, level.symbols(ids, users).astype(level.dtype)[:, None], question.stamp)
    size = level.size + isinstance(level, Subset)
    chosen = np.zeros((len(users), size), bool)
    chosen[:, (bucket + np.arange(level.chosen if isinstance(level, Subset) else 1)) % size] = True
    return Reports(users, packed(chosen), question.stamp)


def pulling(part: Any, users: np.ndarray, bucket: int, to: np.ndarray) -> Reports:
    """Reports of those who are asked, all that pull a bucket's sum along a unit vector (d,)."""
    question, users = part.channel.asked, asked(part, users)
    signs = question.signs(np.full(len(users), bucket), users, 0)
    randomiser = question.randomiser
    if not isinstance(randomiser, Codebook):
        return Reports(users, sent((to[:, None] * signs) * np.sqrt(len(to))), question.stamp)
    nearest = attrs.evolve(randomiser, inside=1, near=WORDS - (2 * randomiser.size - 1), far=1)
    values = np.broadcast_to(np.rint(to * question.l2).astype(np.int64), (len(users), len(to)))
    units = lifted(values, signs, question.l2, np.zeros(len(users), bool))
    words = np.zeros((len(users), 1), np.uint64)
    return Reports(users, nearest.randomise(units, users, lambda who, go: words, question.seeds[0]), question.stamp)
