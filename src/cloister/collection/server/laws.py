"""Tests of what chance decides: the law of reports, and who came to which question.

The first kind tests whether reports are distributed as those that encoders make, whatever the rows are.

Noise hides what a row says, but its own law is known. So are bounds on how often honest reports say a thing: which
symbol is sent, how many buckets a report supports, how many reports support a bucket. Each block that knows such laws
states them, and proves them, where it counts (``ReportFacts``): each is a number of independent coins, one per report,
with bounds on their probability that hold for every row.

The test: a number x of n reports is doubted if 2 exp(-n KL(x / n, p)) <= ``SIGNIFICANCE`` / (2 L m), with p the nearer
bound (``proportions``), for one of m numbers of its law, of the L laws of the round. By the union bound an honest round
is doubted with probability at most ``SIGNIFICANCE`` / 2, over the noise of its people and the plan's key, whatever
their rows are. The other half is that of ``shares``.

The law is that of the reports that came: it takes for granted that nobody looks at her report, or at the public coins
of her number, before she decides whether to send it.

It cannot see: liars whose reports have the law of some people's reports, as those have who name a single bucket (proof:
``test_gains``), or who choose among all possible reports what the public coins of their numbers make best, since these
coins are uniform too; fewer than chance explains, about 7 sqrt(p (1 - p) n) reports beyond a bound.

The second kind tests whether chance brought people to their questions.

A user's number is public, and so is the question it leads to: whoever picks a number picks a question, and one person
in a share of a hundredth of the users counts for a hundred.

Numbers that were given out without looking at the plan's public key fall into a share of the users with its
probability, each independently of the others (a keyed hash of the number decides, and the key is drawn with the plan).
So of n people who answer the questions that share the users, question j gets a binomial number, with n trials and
probability f_j over the sum of the f; of those who answer a question whose users T levels divide, each level gets one
with probability 1 / T. It does not matter how many report, or who.

The test: a number x where n p were expected is doubted if 2 exp(-n KL(x / n, p)) <= ``SIGNIFICANCE`` / (2 m) for m
such numbers in the round, with KL the divergence of two coins. Each tail of a binomial is at most exp(-n KL)
(``proportions``), for every n. So whatever the number of questions, a round whose numbers were given out blindly is
doubted with probability at most half of ``SIGNIFICANCE``, over its key; the other half is that of ``laws``.

It cannot see: fewer than about 7 sqrt(n p / (1 - p)) chosen numbers in a share (7 standard deviations of chance); other
effects of a number within its question (hash functions, signs, words of a codebook); a choice between the rounds of a
plan, since people may stop for reasons of their own; and a question that shares the users with no other.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from cloister.core.questions import Round
from cloister.core.reports import SIGNIFICANCE, Proportion, facts_of
from cloister.core.shuffling import messages, roles


def doubts(round: Round[Any], answers: Sequence[int], summaries: Sequence[Any]) -> list[str]:
    """Deviations that chance does not explain, in words; the least likely first. Args: answers (reports or messages per
    question), summaries (one per question)."""
    found = sorted(_proportions(round, answers, summaries), key=Proportion.log_chance)
    least = math.log(SIGNIFICANCE / 2 / max(1, len(found)))
    return [
        f"{one.label} has {one.count:,} of {one.among:,} answers, where {one.among * one.planned:,.0f} are planned: so "
        f"far off comes by chance in less than one of {1 / SIGNIFICANCE:,.0f} rounds, so some people chose their "
        f"numbers by the question they lead to"
        for one in found
        if one.log_chance() <= least
    ]


def _proportions(round: Round[Any], answers: Sequence[int], summaries: Sequence[Any]) -> Iterator[Proportion]:
    people = [count // messages(part) for count, part in zip(answers, round.parts, strict=True)]
    for group in roles(round):
        shares = {j: part.user_share.fraction for j in group if (part := round.parts[j]).user_share is not None}
        if len(shares) > 1:
            yield from _divided(round, shares, people)
    for j, (part, summary) in enumerate(zip(round.parts, summaries, strict=True)):
        levels = facts_of(part.channel).answered(summary)
        for level, count in enumerate(levels):
            yield Proportion(f"level {level + 1} of question {j + 1}", count, sum(levels), 1 / len(levels))


def _divided(round: Round[Any], shares: dict[int, float], people: Sequence[int]) -> Iterator[Proportion]:
    """Proportions of each question that shares the users, and of those for counts together: cheaters spread over
    these."""
    among, whole = sum(people[j] for j in shares), math.fsum(shares.values())
    for j, share in shares.items():
        yield Proportion(f"question {j + 1}", people[j], among, share / whole)
    counts = [j for j in shares if round.parts[j].vectors is None]
    if 1 < len(counts) < len(shares):
        planned = math.fsum(shares[j] for j in counts) / whole
        yield Proportion("the questions for counts together", sum(people[j] for j in counts), among, planned)


def unlikely(round: Round[Any], summaries: Sequence[Any]) -> list[str]:
    """Describe, in words, each law that the reports of a round break: its least likely number; the least likely law
    first. Args: summaries (one per question)."""
    laws = [
        (f"question {j + 1}", law)
        for j, (part, summary) in enumerate(zip(round.parts, summaries, strict=True))
        for law in facts_of(part.channel).laws(summary)
    ]
    found = list[tuple[float, str]]()
    for where, law in laws:
        worst = min(law.proportions, key=Proportion.log_chance, default=None)
        if worst is not None and worst.log_chance() <= math.log(SIGNIFICANCE / (2 * len(laws) * law.of)):
            found.append((worst.log_chance(), _said(where, worst)))
    return [text for _, text in sorted(found)]


def _said(where: str, one: Proportion) -> str:
    least, most = (f"{one.among * chance:,.0f}" for chance in one.bounds)
    expected = least if least == most else f"{least} to {most}"
    return (
        f"{where}, {one.label}: {one.count:,} of {one.among:,} reports, where encoders make {expected}, whatever the "
        f"rows are: so far off comes by chance in less than one of {1 / SIGNIFICANCE:,.0f} rounds, so some people "
        f"send what no encoder made"
    )
