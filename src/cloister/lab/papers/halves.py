"""CPU time of both halves of one question of everybody: making the reports, and reading them."""

from __future__ import annotations

import math
import time
from functools import reduce

import numpy as np

from cloister.core.encoding import absorb, chunk_rows, encode_lattice, merge_summaries
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.core.types import AnyArray
from cloister.run.request import PreparedRun


def halves(plan: PreparedRun, rows: AnyArray) -> tuple[float, float]:
    """Return the CPU seconds of one thread to encode rows (n, d), in chunks with secret noise, and to decode.

    Each is the best of four, the first of which warms up.
    """
    (asked,) = plan.forecast(PublicRng.from_seed(1))
    (n, d), rng = rows.shape, NoiseRng.secret()
    lattice, users = plan.problem.domain.snap(rows), np.arange(n, dtype=np.uint64)
    chunks = [slice(i, i + chunk_rows(d)) for i in range(0, n, chunk_rows(d))]
    best = [math.inf, math.inf]
    for _ in range(4):
        start = time.process_time()
        reports = [encode_lattice(asked, lattice[some], users[some], rng) for some in chunks]
        middle = time.process_time()
        total = reduce(merge_summaries, (absorb(asked, report) for report in reports))
        for part, summary in zip(asked.parts, total, strict=True):
            part.channel.decode(summary, rng)
        best = [min(best[0], middle - start), min(best[1], time.process_time() - middle)]
    return best[0], best[1]
