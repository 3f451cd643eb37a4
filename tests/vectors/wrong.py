"""Bundles that a client must refuse, each for one reason: a real one, changed, with its arrays' hash put right."""

from __future__ import annotations

import base64
import copy
import hashlib
import json
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, TypeAlias

from cloister.collection.plan.bundle import Bundle
from tests.reference_client.checks import ALL, power
from tests.vectors.plans import Planned, planned, shuffled

Facts: TypeAlias = dict[str, Any]
Change: TypeAlias = tuple[str, Any] | Callable[[Facts], None] | None
"""A member's path and its value, None to take it away, or what makes it of the old one; or what changes all facts; or
nothing, where not the facts are changed."""

Changes: TypeAlias = dict[str, Change]


def _small(counts: str, randomiser: str) -> Planned:
    return planned(
        f"wrong {counts} {randomiser}",
        "one-round",
        4,
        epsilon=6.0,
        options={"sums.randomiser": randomiser, "share": "users", "tree.cells": 16},
        components={"counts": counts, "sums": "hadamard-vector"},
    )


PLANS: tuple[Planned, ...] = (
    _small("optimised-local-hashing", "one-byte"),
    _small("optimised-unary", "one-byte"),
    _small("subset-selection", "one-byte"),
    _small("adaptive-response", "one-byte"),
    _small("optimised-local-hashing", "duchi"),
    _small("optimised-local-hashing", "privunit"),
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
    shuffled("wrong amplified", "amplified-counts", "amplified-vectors", options={"tree.depth": 2}),
    shuffled("wrong messages", "blanket-histogram", "split-and-mix", options={"tree.depth": 2, "share": "budget"}),
)
"""Small ones: each case holds one whole. Duchi's and privunit's hold a table of sines."""

TEXTS = {
    "text: two members of one name": ("{", '{"epsilon":0.1,'),
    "text: a number that JSON does not have": ('"asked":1.0', '"asked":NaN'),
    "text: a number that no double holds": ('"delta":0.0', '"delta":1e999'),
}
"""What to replace in the text, once each."""


def made(bundles: list[Bundle]) -> list[dict[str, str]]:
    """Args: bundles (of ``PLANS``)."""
    hashed, unary, subset, direct, duchi, privunit, *others = bundles
    some = [(hashed, OUTSIDE), (hashed, dict.fromkeys(TEXTS))]
    some += [(one, _dear("questions/0/channel/levels/0/keep")) for one in (hashed, direct, subset)]
    some += [(duchi, _dear("questions/2/channel/levels/0/coin")), (unary, CHEAP), (hashed, NEAR)]
    some += [(duchi, WRONG_SIDE), (privunit, FAR)]
    some += zip(others, (BUDGET, GAUSSIAN, AMPLIFIED, MESSAGES), strict=True)
    return [_case(why, change, bundle) for bundle, changes in some for why, change in changes.items()]


def _case(why: str, change: Change, bundle: Bundle) -> dict[str, str]:
    facts, arrays = {**copy.deepcopy(bundle.as_dict()), "words": []}, bundle.arrays
    _changed(facts, change)
    if why.startswith("arrays"):
        arrays = arrays[:-1] + bytes([arrays[-1] ^ 1]) if "changed" in why else arrays[:-8]
    if why == "arrays: one lies outside":
        facts["arrays"] = {"bytes": len(arrays), "sha256": hashlib.sha256(arrays).hexdigest()}
    text = json.dumps(facts, sort_keys=True, separators=(",", ":")) + "\n"
    old, new = TEXTS.get(why, ("", ""))
    return {"why": why, "bundle": text.replace(old, new, 1), "arrays": base64.b64encode(arrays).decode()}


def _changed(facts: Facts, change: Change) -> None:
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


# What is wrong whatever the randomiser is


def _list_of_one(value: Any) -> list[Any]:
    return [value]


def _narrow(facts: Facts) -> None:
    question = facts["questions"][0]
    question["channel"]["dtype"], question["body_bytes"] = "u1", 1


def _dearest(facts: Facts) -> None:
    """So much that e^epsilon is never worked out."""
    facts["epsilon"] = 1e300
    for question in facts["questions"]:
        question["epsilon"] = question["alone"] = 1e300


def _nested(cells: Facts) -> Facts:
    for _ in range(16):
        cells = {"kind": "last", "of": cells, "sizes": cells["sizes"]}
    return cells


def _inside(cells: Facts) -> Facts:
    return {"kind": "last", "of": {"kind": "sponge", "sizes": cells["sizes"]}, "sizes": cells["sizes"]}


def _without(beside: int, first: Facts) -> Facts:
    return {"kind": "without", "beside": beside, "first": first}


def _graded(others: Facts) -> Facts:
    return {"kind": "graded", "columns": [], "others": others}


def _shorter(domain: Facts) -> Facts:
    """The same domain without its last column."""
    return {name: value[:-1] if isinstance(value, list) else value for name, value in domain.items()}


def _facets(cells: Facts, facets: Any = ((0, 0),), within: int | None = None, near: Facts | None = None) -> Facts:
    """As many buckets of one facet, around centres that hold the array's first numbers."""
    centers = {"at": 0, "type": "i4", "shape": [1, 4]}
    near = near or {"kind": "centers", "sizes": [1], "centers": centers, "within": within}
    room = {"sizes": cells["sizes"], "of_group": cells["sizes"], "sides": [1] * 4, "bins": 2}
    return {"kind": "facets", "near": near, "first": 4, "facets": list(facets), **room}


def _long(facts: Facts) -> None:
    """Vectors from centres whose squared length no 64 bits hold."""
    vectors = facts["questions"][2]["vectors"]
    vectors.update(kind="offsets", centers={"at": 0, "type": "i8", "shape": [1, 4]})


def _twice(facts: Facts) -> None:
    """Two levels of the first bucketing, and everybody answers both."""
    question = facts["questions"][0]
    channel, cells = question["channel"], facts["bucketings"][question["bucketing"]]
    channel["levels"] = [channel["levels"][0], {**channel["levels"][0], "at": 1}]
    channel["share"], channel["width"], cells["sizes"] = "budget", 2, cells["sizes"] * 2
    facts["bucketings"].append(cells)
    wide = 2 * int(channel["dtype"][1:])
    question["body_bytes"], question["share"], question["bucketing"] = wide, None, len(facts["bucketings"]) - 1
    facts["drawings"] = [{"questions": [0], "bytes": wide}]
    facts["questions"], facts["answer_bytes"] = [question], wide


OUTSIDE: Changes = {
    "a newer format": ("bundle", 2),
    "no format": ("bundle", None),
    "no head": ("head", None),
    "a head that is no hash": ("head", "00"),
    "round 0": ("round", 0),
    "a round after the last": ("round", 2),
    "another trust model": ("trust", "Central"),
    "an unknown kind of domain": ("domain/kind", "torus"),
    "an unknown kind of bucketing": ("bucketings/0/kind", "sponge"),
    "an unknown kind of channel": ("questions/0/channel/kind", "plain"),
    "an unknown randomiser": ("questions/0/channel/levels/0/randomiser", "none"),
    "a bucketing that is not there": ("questions/0/bucketing", 9),
    "a question in no drawing": ("drawings/0/questions", lambda some: some[1:]),
    "a question in two drawings": ("drawings/0/questions", lambda some: [*some, some[0]]),
    "shares that overlap": ("questions/1/share/from", lambda x: x - 1),
    "shares of two keys in one drawing": ("questions/1/share/key", "00" * 16),
    "a share that is empty": ("questions/0/share/from", lambda _: 2**53),
    "answer_bytes that are not the sum": ("answer_bytes", lambda x: x + 1),
    "a body that is longer than its slot": ("questions/0/body_bytes", lambda x: x + 1),
    "a level beyond the report": ("questions/0/channel/levels/0/at", 9),
    "a key that is too short": ("questions/0/channel/levels/0/low", "00" * 15),
    "no middle for a column": ("domain/middle", lambda some: some[:-1]),
    "round 1 is not named by its plan": ("head", "00" * 32),
    "levels that are not the bucketing's": ("bucketings/0/sizes", [2]),
    "a report of all levels at the price of one": _twice,
    "a level wider than its answer": ("questions/0/channel/levels/0/width", 2),
    "symbols that its type cannot hold": _narrow,
    "vectors of another bound": ("questions/2/vectors/l2", lambda l2: 2 * l2),
    "vectors of another dimension": ("questions/2/vectors/dimension", lambda d: d + 1),
    "alone it costs more than it says": ("questions/0/alone", lambda alone: 2 * alone),
    "a question costs more than the plan": ("epsilon", lambda epsilon: epsilon / 2),
    "no epsilon alone": ("questions/0/alone", lambda alone: None),
    "a delta of its own": ("questions/0/delta", 0.5),
    "a unit that is no power of two": ("domain/unit", lambda unit: 1.5 * unit),
    "messages without a shuffler": ("questions/0/channel/kind", "blanket"),
    "a lifetime's worth of epsilon": _dearest,
    "a line that passes for another": ("words", ["epsilon = \u202e01.0"]),
    "two lines in one": ("warnings", ["none\nepsilon = 0.01"]),
    "buckets nested too deep": ("bucketings/0", _nested),
    "an unknown kind of buckets inside another": ("bucketings/0", _inside),
    "a share of more than everybody": ("questions/1/share/to", 2**53 + 1),
    "codewords of one row with more bits than integers have": ("questions/2/channel/levels/0/bits", 21),
    "vectors that may be too long to be measured": _long,
    "no shuffler, and a share of the levels that is none": ("questions/0/channel/share", "nobody"),
    "more columns are left out than there are": ("domain", lambda first: _without(4, first)),
    "columns are left out that the lattice has": ("domain", lambda first: _without(1, first)),
    "columns are left out that vectors have": ("domain", lambda first: _without(1, _shorter(first))),
    "columns are left out inside another domain": ("domain", lambda first: _graded(_without(1, _shorter(first)))),
    "facets of fewer levels than there are": ("bucketings/0", lambda cells: _facets(cells, facets=[])),
    "a facet whose values are no columns": ("bucketings/0", lambda cells: _facets(cells, facets=[[3, 2]])),
    "groups beyond which there are none": ("bucketings/0", lambda cells: _facets(cells, within=7)),
    "facets of groups that are no centers'": ("bucketings/0", lambda cells: _facets(cells, near=cells)),
    "a domain whose kind is a list of one": ("domain/kind", _list_of_one),
    "a bucketing whose kind is a list of one": ("bucketings/0/kind", _list_of_one),
    "a channel whose kind is a list of one": ("questions/0/channel/kind", _list_of_one),
    "vectors whose kind is a list of one": ("questions/2/vectors/kind", _list_of_one),
    "a randomiser that is a list of one": ("questions/0/channel/levels/0/randomiser", _list_of_one),
    "a plan that is a list of one": ("plan", _list_of_one),
    "a size with a zero in front": ("bucketings/0/sizes/0", lambda size: f"0{size}"),
    "a size with a blank": ("bucketings/0/sizes/0", lambda size: f"{size} "),
    "a level whose size is text": ("questions/0/channel/levels/0/size", str),
    "a keep with a zero in front": ("questions/0/channel/levels/0/keep", lambda keep: f"0{keep}"),
    "a keep with a sign": ("questions/0/channel/levels/0/keep", lambda keep: f"+{keep}"),
    "a keep that is no text": ("questions/0/channel/levels/0/keep", int),
    "arrays: a byte is changed": None,
    "arrays: cut short": None,
    "arrays: one lies outside": None,
}


# Coins and channels


def _dear(path: str) -> Changes:
    name = path.rpartition("/")[2]
    return {
        f"{name} is one word more than epsilon allows": (path, lambda text: str(int(text) + 1)),
        f"{name} is 2^64": (path, str(2**64)),
    }


CHEAP: Changes = {
    "flip is one word less than epsilon allows": (
        "questions/0/channel/levels/0/flip",
        lambda text: str(int(text) - 1),
    ),
    "flip is no number": ("questions/0/channel/levels/0/flip", "many"),
}
WRONG_SIDE: Changes = {"duchi says the wrong side for certain": ("questions/2/channel/levels/0/coin", "1")}


def _nearer(facts: Facts) -> None:
    """The next pair that still adds up: far less by k, near more by 2 D - k, over their common divisor."""
    level = facts["questions"][2]["channel"]["levels"][0]
    inside, outside = level["inside"], 2 * level["size"] - level["inside"]
    level["near"], level["far"] = str(int(level["near"]) + outside), str(int(level["far"]) - inside)


def _reversed(facts: Facts) -> None:
    """The wrong side for certain: near is one word for each, far all the others."""
    level = facts["questions"][2]["channel"]["levels"][0]
    size = level["size"]
    level.update(inside=size, near="1", far=str((2**64 - size) // size))


NEAR: Changes = {
    "near and far are as little apart as they can be, beyond epsilon": _nearer,
    "near and far do not add up": ("questions/2/channel/levels/0/near", lambda text: str(int(text) - 1)),
    "far is dearer than near": _reversed,
    "far is 0": ("questions/2/channel/levels/0/far", "0"),
}


def _table(facts: Facts) -> None:
    """Normals of another law: the array begins one number later."""
    for question in facts["questions"]:
        for level in question["channel"]["levels"]:
            if "sines" in level:
                level["sines"] = {**level["sines"], "at": 0}


FAR: Changes = {
    "privunit's coin is a part in a million too small": (
        "questions/2/channel/levels/0/coin",
        lambda text: str(int(text) - int(text) // 10**6),
    ),
    "privunit's cap is a little smaller": ("questions/2/channel/levels/0/gamma", lambda gamma: 1.01 * gamma),
    "privunit's cap is on the other side": ("questions/2/channel/levels/0/gamma", lambda gamma: -gamma),
    "sines that are none": _table,
    "privunit's cap is another": ("questions/2/channel/levels/0/gamma", lambda gamma: 2 * gamma),
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


BUDGET: Changes = {
    "budget: keep is within the double alone / 3, and beyond the third of alone": _third,
    "budget: levels that overlap": ("questions/0/channel/levels/1/at", 0),
    "budget: all levels answered, and called a share of the users": ("questions/0/channel/share", "users"),
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


GAUSSIAN: Changes = {
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
AMPLIFIED: Changes = {
    "shuffled: keep is one word more than alone allows": (
        "questions/0/channel/levels/0/keep",
        lambda keep: str(int(keep) + 1),
    ),
    "shuffled: a coin, and nothing said alone": ("questions/0/alone", lambda alone: None),
    "shuffled: two rounds": ("rounds", 2),
    "shuffled: no place for the private number": ("questions/0/body_bytes", lambda n: n - 8),
    "shuffled: no place for the question's number": ("drawings/0/bytes", lambda n: n - 2),
}


def _unmixed(facts: Facts) -> None:
    """Under Local trust, at a cost that is stated."""
    facts["trust"] = "Local"
    for question in facts["questions"]:
        question["alone"] = question["epsilon"]
    for drawing in facts["drawings"]:
        drawing["bytes"] -= 2
    facts["answer_bytes"] -= 2 * len(facts["drawings"])


MESSAGES: Changes = {
    "messages: hash values that say they hold something alone": ("questions/0/alone", 0.5),
    "messages: shares that say they hold something alone": ("questions/1/alone", 0.5),
    "messages: sent to the server": _unmixed,
    "messages: shares of more bits than there are": ("questions/1/channel/bits", 63),
    "messages: one share is the number": ("questions/1/channel/shares", 1),
    "messages: places that are not there": ("questions/1/channel/slots", lambda n: n - 1),
}
