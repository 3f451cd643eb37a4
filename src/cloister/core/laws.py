"""Tests whether reports are distributed as those that encoders make, whatever the rows are.

Noise hides what a row says, but its own law is known. So are bounds on how often honest reports say a thing: which
symbol is sent, how many buckets a report supports, how many reports support a bucket. Each block that knows such laws
states them, and proves them, where it counts (``KnowsLaws``): each is a number of independent coins, one per report,
with bounds on their probability that hold for every row.

The test: a number x of n reports is doubted if 2 exp(-n KL(x / n, p)) <= ``SIGNIFICANCE`` / (2 L m), with p the nearer
bound (``portions``), for one of m numbers of its law, of the L laws of the round. By the union bound an honest round is
doubted with probability at most ``SIGNIFICANCE`` / 2, over the noise of its people and the plan's key, whatever their
rows are. The other half is that of ``shares``.

The law is that of the reports that came: it takes for granted that nobody looks at her report, or at the public coins
of her number, before she decides whether to send it.

It cannot see: liars whose reports have the law of some people's reports, as those have who name a single bucket (proof:
``test_gains``), or who choose among all possible reports what the public coins of their numbers make best, since these
coins are uniform too; fewer than chance explains, about 7 sqrt(p (1 - p) n) reports beyond a bound.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from cloister.core.capabilities import KnowsLaws
from cloister.core.portions import SIGNIFICANCE, Portion
from cloister.core.questions import Round


def unlikely(round: Round[Any], summaries: Sequence[Any]) -> list[str]:
    """Describe, in words, each law that the reports of a round break: its least likely number; the least likely law
    first. Args: summaries (one per question)."""
    laws = [
        (f"question {j + 1}", law)
        for j, (part, summary) in enumerate(zip(round.parts, summaries, strict=True))
        if isinstance(part.channel, KnowsLaws)
        for law in part.channel.laws(summary)
    ]
    found = list[tuple[float, str]]()
    for where, law in laws:
        worst = min(law.portions, key=Portion.log_chance, default=None)
        if worst is not None and worst.log_chance() <= math.log(SIGNIFICANCE / (2 * len(laws) * law.of)):
            found.append((worst.log_chance(), _said(where, worst)))
    return [text for _, text in sorted(found)]


def _said(where: str, one: Portion) -> str:
    least, most = (f"{one.among * chance:,.0f}" for chance in one.bounds)
    expected = least if least == most else f"{least} to {most}"
    return (
        f"{where}, {one.what}: {one.found:,} of {one.among:,} reports, where encoders make {expected}, whatever the "
        f"rows are: so far off comes by chance in less than one of {1 / SIGNIFICANCE:,.0f} rounds, so some people "
        f"send what no encoder made"
    )
