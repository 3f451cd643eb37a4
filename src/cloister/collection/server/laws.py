"""Test of report laws: whether reports are distributed as encoders make them, whatever the rows are.

Noise hides a row, but its own distribution is known, and so are bounds on the frequency of events in honest reports:
which symbol is sent, how many buckets a report supports, how many reports support a bucket. Each channel with such laws
states and proves them where it counts (``ReportFacts``): a law is about numbers of independent coins, one per report,
with bounds on their probability that hold for every row.

A number x of n reports is rejected if 2 exp(-n KL(x / n, p)) <= ``SIGNIFICANCE`` / (2 L m), with p the nearer bound
(``Proportion``), for one of m numbers of its law, of the L laws of the round. By the union bound an honest round is
rejected with probability at most ``SIGNIFICANCE`` / 2, over the noise of its people and the plan's key, whatever their
rows are. The other half is that of ``shares``.

The test presumes that nobody looks at her report, or at the public coins of her number, before she decides whether to
send it.

Not detected: malicious reports that have the distribution of some people's reports, such as those that name a single
bucket (proof: ``test_gains``), or are chosen among all possible ones as the public coins of their numbers favour, since
these coins are uniform too; and fewer than chance explains, about 7 sqrt(p (1 - p) n) reports beyond a bound.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from cloister.core.questions import Round
from cloister.core.reports import SIGNIFICANCE, Proportion, facts_of


def unlikely_reports(round: Round[Any], summaries: Sequence[Any]) -> list[str]:
    """Describe the laws that a round's reports break by their least likely number, the least likely law first.

    ``summaries`` has one entry per question.
    """
    laws = [
        (f"question {j + 1}", law)
        for j, (part, summary) in enumerate(zip(round.parts, summaries, strict=True))
        for law in facts_of(part.channel).laws(summary)
    ]
    deviations = list[tuple[float, str]]()
    for question, law in laws:
        worst = min(law.proportions, key=Proportion.log_chance, default=None)
        if worst is not None and worst.log_chance() <= math.log(SIGNIFICANCE / (2 * len(laws) * law.of)):
            deviations.append((worst.log_chance(), _describe(question, worst)))
    return [text for _, text in sorted(deviations)]


def _describe(question: str, count: Proportion) -> str:
    low, high = (f"{count.among * chance:,.0f}" for chance in count.bounds)
    expected = low if low == high else f"{low} to {high}"
    return (
        f"{question}, {count.label}: {count.count:,} of {count.among:,} reports, but encoders make {expected}, "
        f"whatever the rows are: chance deviates so far in less than one of {1 / SIGNIFICANCE:,.0f} rounds, so some "
        f"people send reports that no encoder made"
    )
