"""Test of response shares: whether chance brought users to their questions.

A user's number is public, and so is the question it leads to: whoever picks a number picks a question, and one person
in a share of a hundredth of the users counts for a hundred.

Numbers that were assigned without looking at the plan's public key fall into a share of the users with its probability,
each independently of the others (a keyed hash of the number decides, and the key is drawn with the plan). So of n
people who answer the questions that share the users, question j gets a binomial number, with n trials and probability
f_j over the sum of the f; of those who answer a question whose users T levels divide, each level gets a binomial number
with probability 1 / T. It does not matter how many report, or who.

A count x is rejected if 2 exp(-n KL(x / n, p)) <= ``SIGNIFICANCE`` / (2 m) for m such counts in the round, with KL the
divergence of two coins: each tail of a binomial is at most exp(-n KL) (``Proportion``), for every n. So whatever the
number of questions, a round with blindly assigned numbers is rejected with probability at most half of
``SIGNIFICANCE``, over its key; the other half is that of ``laws``.

Not detected: fewer than about 7 sqrt(n p / (1 - p)) chosen numbers in a share (7 standard deviations of chance); other
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


def unlikely_shares(round: Round[Any], answers: Sequence[int], summaries: Sequence[Any]) -> list[str]:
    """Describe the counts of answers that chance does not explain, the least likely first.

    Args:
        round: the round.
        answers: number of reports or messages per question.
        summaries: summaries, one per question.
    """
    proportions = sorted(_proportions(round, answers, summaries), key=Proportion.log_chance)
    threshold = math.log(SIGNIFICANCE / 2 / max(1, len(proportions)))
    return [
        f"{share.label} has {share.count:,} of {share.among:,} answers, but {share.among * share.planned:,.0f} are "
        f"planned: chance deviates so far in less than one of {1 / SIGNIFICANCE:,.0f} rounds, so some people chose "
        f"their numbers by the question they lead to"
        for share in proportions
        if share.log_chance() <= threshold
    ]


def _proportions(round: Round[Any], answers: Sequence[int], summaries: Sequence[Any]) -> Iterator[Proportion]:
    people = [count // messages(part) for count, part in zip(answers, round.parts, strict=True)]
    for group in roles(round):
        shares = {j: part.user_share.fraction for j in group if (part := round.parts[j]).user_share is not None}
        if len(shares) > 1:
            yield from _user_shares(round, shares, people)
    for j, (part, summary) in enumerate(zip(round.parts, summaries, strict=True)):
        levels = facts_of(part.channel).answered(summary)
        for level, count in enumerate(levels):
            yield Proportion(f"level {level + 1} of question {j + 1}", count, sum(levels), 1 / len(levels))


def _user_shares(round: Round[Any], shares: dict[int, float], people: Sequence[int]) -> Iterator[Proportion]:
    """Yield the proportion of each question that shares the users, and of those for counts together.

    Cheaters may spread over the questions for counts.
    """
    among, total = sum(people[j] for j in shares), math.fsum(shares.values())
    for j, share in shares.items():
        yield Proportion(f"question {j + 1}", people[j], among, share / total)
    counts = [j for j in shares if round.parts[j].vectors is None]
    if 1 < len(counts) < len(shares):
        planned = math.fsum(shares[j] for j in counts) / total
        yield Proportion("the questions for counts together", sum(people[j] for j in counts), among, planned)
