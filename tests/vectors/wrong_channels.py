"""Bundles that a client must refuse: a budget that levels share, Gaussian vectors, messages to a shuffler."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

from cloister.collection.plan.bundle import Bundle
from tests.reference_client.words import ALL
from tests.vectors.plans import Planned, planned

Facts: TypeAlias = dict[str, Any]
Change: TypeAlias = tuple[str, Any] | Callable[[Facts], None] | None
"""A member's path and its value, None to take it away, or what makes it of the old one; or what changes all facts; or
nothing, where not the facts are changed."""

Changes: TypeAlias = dict[str, Change]

PLANS: tuple[Planned, ...] = (
    planned(
        "wrong budget",
        "tree-coreset-lsh",
        2,
        epsilon=1.1,
        trust="local",
        components={"counts": "subset-selection", "sums": "hadamard-vector"},
        options={"counts.share": "budget", "tree.depth": 3},
    ),
    planned(
        "wrong ldp-average",
        "one-round-lsh",
        2,
        components={"sums": "ldp-average"},
        delta=1e-6,
        trust="local",
        options={"tree.depth": 2},
    ),
    planned(
        "wrong amplified",
        "one-round-lsh",
        2,
        trust="shuffled",
        delta=1e-6,
        options={"tree.depth": 2},
        components={"counts": "amplified-counts", "sums": "amplified-vectors"},
    ),
    planned(
        "wrong messages",
        "one-round-lsh",
        2,
        trust="shuffled",
        delta=1e-6,
        options={"tree.depth": 2, "share": "budget"},
        components={"counts": "blanket-histogram", "sums": "split-and-mix"},
    ),
)


def changed(facts: Facts, change: Change) -> None:
    """Makes a change."""
    if change is None:
        return
    if callable(change):
        change(facts)
        return
    path, to = change
    *way, last = (int(name) if name.isdigit() else name for name in path.split("/"))
    at: Any = facts
    for name in way:
        at = at[name]
    if to is None:
        del at[last]
    else:
        at[last] = to(at[last]) if callable(to) else to


def cases(bundles: Sequence[Bundle]) -> list[tuple[Bundle, Changes]]:
    """Args: bundles (of ``PLANS``)."""
    return list(zip(bundles, (_budget(), _gaussian(), _amplified(), _messages()), strict=True))


def _budget() -> Changes:
    return {
        "budget: keep is within the double alone / 3, and beyond the third of alone": _third,
        "budget: levels that overlap": ("questions/0/channel/levels/1/at", 0),
        "budget: all levels answered, and called a share of the users": ("questions/0/channel/share", "users"),
    }


def _third(facts: Facts) -> None:
    """One word more than the exact third allows."""
    question = facts["questions"][0]
    third, rounded = Fraction(question["alone"]) / 3, Fraction(question["alone"] / 3)
    for level in question["channel"]["levels"]:
        least, most = -(-ALL // level["chosen"]), ALL // (level["size"] + 1)

        def largest(epsilon: Fraction, least: int = least, most: int = most) -> int:
            odds = (power(epsilon) - 1) * most / least
            return int(ALL * odds / (1 + odds))

        assert largest(third) < largest(rounded)
        level["keep"] = str(largest(third) + 1)


def power(epsilon: Fraction) -> Fraction:
    """e^epsilon, not too small, and by less than a 2^-100 of it too large."""
    halvings = max(0, math.ceil(epsilon)).bit_length() + 1
    x, total, term, k = epsilon / 2**halvings, Fraction(0), Fraction(1), 0
    while term > Fraction(1, 2**200):
        total, k = total + term, k + 1
        term = _up(term * x / k)
    total += 2 * term
    for _ in range(halvings):
        total = _up(total * total)
    return total


def _up(x: Fraction) -> Fraction:
    """Rounded up to a multiple of 2^-256."""
    return Fraction(math.ceil(x * 2**256), 2**256)


def _gaussian() -> Changes:
    return {
        "gaussian: sigma is a hundredth too small": ("questions/1/channel/sigma", lambda s: 0.99 * s),
        "gaussian: hardly any noise, at a delta that is nearly 1": _loud,
        "gaussian: vectors that are longer than the noise is for": ("questions/1/vectors/l2", 2**20),
        "gaussian: vectors with a larger sum than the noise is for": ("questions/1/vectors/l1", 2**21),
        "gaussian: more epsilon than the plan": _doubled,
        "gaussian: alone it costs more than it says": ("questions/1/alone", lambda alone: 2 * alone),
        "gaussian: an epsilon of which no double holds the power, and too little noise": _infinite,
        "gaussian: most with a zero in front": ("questions/1/channel/levels/0/most", lambda m: f"0{m}"),
        "gaussian: numbers of a type that wraps around": ("questions/1/channel/farthest", 2**31),
    }


def _loud(facts: Facts) -> None:
    facts["questions"][1]["delta"] = 0.999999
    facts["questions"][1]["channel"]["sigma"] = 2.0**22


def _infinite(facts: Facts) -> None:
    """mu = 37.68: half of the law is beyond 710, and e^710 times the rest is infinite, not 0."""
    question = facts["questions"][1]
    channel = question["channel"]
    levels = 1 if channel["level_key"] else len(channel["levels"])
    facts["epsilon"] = 1024.0
    question["epsilon"] = question["alone"] = 710.0
    wanted = 2 * math.sqrt(levels) * channel["l2"] / 37.68
    channel["shift"] = 50 - math.frexp(wanted)[1]
    channel["sigma"] = math.ldexp(wanted, channel["shift"])


def _doubled(facts: Facts) -> None:
    question = facts["questions"][1]
    question["epsilon"] = question["alone"] = 2 * question["epsilon"]


def _amplified() -> Changes:
    return {
        "shuffled: keep is one word more than alone allows": (
            "questions/0/channel/levels/0/keep",
            lambda keep: str(int(keep) + 1),
        ),
        "shuffled: a coin, and nothing said alone": ("questions/0/alone", lambda alone: None),
        "shuffled: two rounds": ("rounds", 2),
        "shuffled: no place for the private number": ("questions/0/body_bytes", lambda n: n - 8),
        "shuffled: no place for the question's number": ("drawings/0/bytes", lambda n: n - 2),
    }


def _messages() -> Changes:
    return {
        "messages: hash values that say they hold something alone": ("questions/0/alone", 0.5),
        "messages: shares that say they hold something alone": ("questions/1/alone", 0.5),
        "messages: sent to the server": _unmixed,
        "messages: shares of more bits than there are": ("questions/1/channel/bits", 63),
        "messages: one share is the number": ("questions/1/channel/shares", 1),
        "messages: places that are not there": ("questions/1/channel/slots", lambda n: n - 1),
    }


def _unmixed(facts: Facts) -> None:
    """Under Local trust, at a cost that is stated."""
    facts["trust"] = "Local"
    for question in facts["questions"]:
        question["alone"] = question["epsilon"]
    for drawing in facts["drawings"]:
        drawing["bytes"] -= 2
    facts["answer_bytes"] -= 2 * len(facts["drawings"])
