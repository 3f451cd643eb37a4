"""Bundles that a client must refuse: a budget that levels share, Gaussian vectors, messages to a shuffler."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

from cloister.collection.plan.bundle import Bundle
from tests.reference_client.checks import ALL, power
from tests.vectors.plans import Planned, planned

Facts: TypeAlias = dict[str, Any]
Change: TypeAlias = Callable[[Facts], None]

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


def changed(*path: Any, to: Any) -> Change:
    """Sets one member; takes it away for None."""

    def change(facts: Facts) -> None:
        at: Any = facts
        for name in path[:-1]:
            at = at[name]
        if to is None:
            del at[path[-1]]
        else:
            at[path[-1]] = to(at[path[-1]]) if callable(to) else to

    return change


def cases(bundles: Sequence[Bundle]) -> list[tuple[Bundle, list[tuple[str, Change]]]]:
    """Args: bundles (of ``PLANS``)."""
    some = (_budget(), _gaussian(), _amplified(), _messages())
    return [(bundle, list(changes)) for bundle, changes in zip(bundles, some, strict=True)]


def _budget() -> Iterator[tuple[str, Change]]:
    channel = ("questions", 0, "channel")
    yield "budget: keep is within the double alone / 3, and beyond the third of alone", _third
    yield "budget: levels that overlap", changed(*channel, "levels", 1, "at", to=0)
    yield "budget: all levels answered, and called a share of the users", changed(*channel, "share", to="users")


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


def _gaussian() -> Iterator[tuple[str, Change]]:
    question = ("questions", 1)
    yield "gaussian: sigma is a hundredth too small", changed(*question, "channel", "sigma", to=lambda s: 0.99 * s)
    yield "gaussian: hardly any noise, at a delta that is nearly 1", _loud
    yield "gaussian: vectors that are longer than the noise is for", changed(*question, "vectors", "l2", to=2**20)
    yield "gaussian: vectors with a larger sum than the noise is for", changed(*question, "vectors", "l1", to=2**21)
    yield "gaussian: more epsilon than the plan", _doubled
    yield "gaussian: alone it costs more than it says", changed(*question, "alone", to=lambda alone: 2 * alone)
    yield "gaussian: an epsilon of which no double holds the power, and too little noise", _infinite
    yield (
        "gaussian: most with a zero in front",
        changed(*question, "channel", "levels", 0, "most", to=lambda m: f"0{m}"),
    )
    yield "gaussian: numbers of a type that wraps around", changed(*question, "channel", "farthest", to=2**31)


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


def _amplified() -> Iterator[tuple[str, Change]]:
    question = ("questions", 0)
    keep = (*question, "channel", "levels", 0, "keep")
    yield "shuffled: keep is one word more than alone allows", changed(*keep, to=lambda keep: str(int(keep) + 1))
    yield "shuffled: a coin, and nothing said alone", changed(*question, "alone", to=lambda alone: None)
    yield "shuffled: two rounds", changed("rounds", to=2)
    yield "shuffled: no place for the private number", changed(*question, "body_bytes", to=lambda n: n - 8)
    yield "shuffled: no place for the question's number", changed("drawings", 0, "bytes", to=lambda n: n - 2)


def _messages() -> Iterator[tuple[str, Change]]:
    yield "messages: hash values that say they hold something alone", changed("questions", 0, "alone", to=0.5)
    yield "messages: shares that say they hold something alone", changed("questions", 1, "alone", to=0.5)
    yield "messages: sent to the server", _unmixed
    yield "messages: shares of more bits than there are", changed("questions", 1, "channel", "bits", to=63)
    yield "messages: one share is the number", changed("questions", 1, "channel", "shares", to=1)
    yield "messages: places that are not there", changed("questions", 1, "channel", "slots", to=lambda n: n - 1)


def _unmixed(facts: Facts) -> None:
    """Under Local trust, at a cost that is stated."""
    facts["trust"] = "Local"
    for question in facts["questions"]:
        question["alone"] = question["epsilon"]
    for drawing in facts["drawings"]:
        drawing["bytes"] -= 2
    facts["answer_bytes"] -= 2 * len(facts["drawings"])
