"""Bundles that a client must refuse, each for one reason: a real one, changed, with its arrays' hash put right."""

from __future__ import annotations

import base64
import copy
import hashlib
import json
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from cloister.collection.plan.bundle import Bundle
from tests.vectors import wrong_channels
from tests.vectors.plans import Planned, planned
from tests.vectors.wrong_channels import changed


def _planned(counts: str, randomiser: str) -> Planned:
    return planned(
        f"wrong {counts} {randomiser}",
        "one-round",
        4,
        epsilon=6.0,
        options={"sums.randomiser": randomiser, "share": "users", "tree.cells": 16},
        components={"counts": counts, "sums": "hadamard-vector"},
    )


PLANS: tuple[Planned, ...] = (
    _planned("optimised-local-hashing", "one-byte"),
    _planned("optimised-unary", "one-byte"),
    _planned("subset-selection", "one-byte"),
    _planned("adaptive-response", "one-byte"),
    _planned("optimised-local-hashing", "duchi"),
    _planned("optimised-local-hashing", "privunit"),
)
"""Small ones: each case holds one whole. The last two hold a table of sines."""

Facts: TypeAlias = dict[str, Any]
LEVEL = ("questions", 2, "channel", "levels", 0)
"""The first level of the first question for vectors."""


TEXTS = {
    "text: two members of one name": [("{", '{"epsilon":0.1,')],
    "text: a number that JSON does not have": [('"asked":1.0', '"asked":NaN')],
    "text: a number that no double holds": [('"delta":0.0', '"delta":1e999')],
}
"""What to replace in the text, once each."""


def plans() -> tuple[Planned, ...]:
    return PLANS + wrong_channels.PLANS


def made(bundles: list[Bundle]) -> list[dict[str, str]]:
    """Args: bundles (of ``PLANS``, then of ``wrong_channels.PLANS``)."""
    hashed, unary, subset, direct, duchi, privunit = bundles[: len(PLANS)]
    some = [(hashed, list(_outside())), (hashed, list(_text()))]
    some += [(one, list(_dear("keep", 0))) for one in (hashed, direct, subset)]
    some += [(duchi, list(_dear("coin", 2))), (unary, list(_cheap("flip", 0))), (hashed, list(_near()))]
    some += [(duchi, [("duchi says the wrong side for certain", changed(*LEVEL, "coin", to="1"))])]
    some += [(privunit, list(_far())), *wrong_channels.cases(bundles[len(PLANS) :])]
    return [_case(why, change, bundle) for bundle, changes in some for why, change in changes]


def _case(why: str, change: Callable[[Facts], None], bundle: Bundle) -> dict[str, str]:
    facts, arrays = {**copy.deepcopy(bundle.as_dict()), "words": []}, bundle.arrays
    change(facts)
    if why.startswith("arrays"):
        arrays = arrays[:-1] + bytes([arrays[-1] ^ 1]) if "changed" in why else arrays[:-8]
    if why == "arrays: one lies outside":
        facts["arrays"] = {"bytes": len(arrays), "sha256": hashlib.sha256(arrays).hexdigest()}
    text = json.dumps(facts, sort_keys=True, separators=(",", ":")) + "\n"
    for old, new in TEXTS.get(why, ()):
        text = text.replace(old, new, 1)
    return {"why": why, "bundle": text, "arrays": base64.b64encode(arrays).decode()}


def _outside() -> Iterator[tuple[str, Callable[[Facts], None]]]:
    """What is wrong whatever the randomiser is."""
    question, level = ("questions", 0), ("questions", 0, "channel", "levels", 0)
    yield "a newer format", changed("bundle", to=2)
    yield "no format", changed("bundle", to=None)
    yield "no head", changed("head", to=None)
    yield "a head that is no hash", changed("head", to="00")
    yield "round 0", changed("round", to=0)
    yield "a round after the last", changed("round", to=2)
    yield "another trust model", changed("trust", to="Central")
    yield "an unknown kind of domain", changed("domain", "kind", to="torus")
    yield "an unknown kind of bucketing", changed("bucketings", 0, "kind", to="sponge")
    yield "an unknown kind of channel", changed(*question, "channel", "kind", to="plain")
    yield "an unknown randomiser", changed(*level, "randomiser", to="none")
    yield "a bucketing that is not there", changed(*question, "bucketing", to=9)
    yield "a question in no drawing", changed("drawings", 0, "questions", to=lambda some: some[1:])
    yield "a question in two drawings", changed("drawings", 0, "questions", to=lambda some: [*some, some[0]])
    yield "shares that overlap", changed("questions", 1, "share", "from", to=lambda x: x - 1)
    yield "shares of two keys in one drawing", changed("questions", 1, "share", "key", to="00" * 16)
    yield "a share that is empty", changed(*question, "share", "from", to=lambda _: 2**53)
    yield "answer_bytes that are not the sum", changed("answer_bytes", to=lambda x: x + 1)
    yield "a body that is longer than its slot", changed(*question, "body_bytes", to=lambda x: x + 1)
    yield "a level beyond the report", changed(*question, "channel", "levels", 0, "at", to=9)
    yield "a key that is too short", changed(*level, "low", to="00" * 15)
    yield "no middle for a column", changed("domain", "middle", to=lambda some: some[:-1])
    yield "round 1 is not named by its plan", changed("head", to="00" * 32)
    yield "levels that are not the bucketing's", changed("bucketings", 0, "sizes", to=[2])
    yield "a report of all levels at the price of one", _twice
    yield "a level wider than its answer", changed(*level, "width", to=2)
    yield "symbols that its type cannot hold", _narrow
    yield "vectors of another bound", changed("questions", 2, "vectors", "l2", to=lambda l2: 2 * l2)
    yield "vectors of another dimension", changed("questions", 2, "vectors", "dimension", to=lambda d: d + 1)
    yield "alone it costs more than it says", changed(*question, "alone", to=lambda alone: 2 * alone)
    yield "a question costs more than the plan", changed("epsilon", to=lambda epsilon: epsilon / 2)
    yield "no epsilon alone", changed(*question, "alone", to=lambda alone: None)
    yield "a delta of its own", changed(*question, "delta", to=0.5)
    yield "a unit that is no power of two", changed("domain", "unit", to=lambda unit: 1.5 * unit)
    yield "messages without a shuffler", changed(*question, "channel", "kind", to="blanket")
    yield "a lifetime's worth of epsilon", _dearest
    yield "a line that passes for another", changed("words", to=["epsilon = \u202e01.0"])
    yield "two lines in one", changed("warnings", to=["none\nepsilon = 0.01"])
    yield "buckets nested too deep", changed("bucketings", 0, to=_nested)
    yield "an unknown kind of buckets inside another", changed("bucketings", 0, to=_inside)
    yield "a share of more than everybody", changed("questions", 1, "share", "to", to=2**53 + 1)
    yield "codewords of one row with more bits than integers have", changed(*LEVEL, "bits", to=21)
    yield "vectors that may be too long to be measured", _long
    yield "no shuffler, and a share of the levels that is none", changed(*question, "channel", "share", to="nobody")
    yield "a domain whose kind is a list of one", changed("domain", "kind", to=lambda kind: [kind])
    yield "a bucketing whose kind is a list of one", changed("bucketings", 0, "kind", to=lambda kind: [kind])
    yield "a channel whose kind is a list of one", changed(*question, "channel", "kind", to=lambda kind: [kind])
    yield "vectors whose kind is a list of one", changed("questions", 2, "vectors", "kind", to=lambda kind: [kind])
    yield "a randomiser that is a list of one", changed(*level, "randomiser", to=lambda name: [name])
    yield "a plan that is a list of one", changed("plan", to=lambda plan: [plan])
    yield "a size with a zero in front", changed("bucketings", 0, "sizes", 0, to=lambda size: f"0{size}")
    yield "a size with a blank", changed("bucketings", 0, "sizes", 0, to=lambda size: f"{size} ")
    yield "a level whose size is text", changed(*level, "size", to=str)
    yield "a keep with a zero in front", changed(*level, "keep", to=lambda keep: f"0{keep}")
    yield "a keep with a sign", changed(*level, "keep", to=lambda keep: f"+{keep}")
    yield "a keep that is no text", changed(*level, "keep", to=int)
    yield "arrays: a byte is changed", lambda facts: None
    yield "arrays: cut short", lambda facts: None
    yield "arrays: one lies outside", lambda facts: None


def _text() -> Iterator[tuple[str, Callable[[Facts], None]]]:
    """Those that only the text shows."""
    yield from ((why, lambda facts: None) for why in TEXTS)


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


def _dear(name: str, question: int) -> Iterator[tuple[str, Callable[[Facts], None]]]:
    level = ("questions", question, "channel", "levels", 0, name)
    yield f"{name} is one word more than epsilon allows", changed(*level, to=lambda text: str(int(text) + 1))
    yield f"{name} is 2^64", changed(*level, to=str(2**64))


def _cheap(name: str, question: int) -> Iterator[tuple[str, Callable[[Facts], None]]]:
    level = ("questions", question, "channel", "levels", 0, name)
    yield f"{name} is one word less than epsilon allows", changed(*level, to=lambda text: str(int(text) - 1))
    yield f"{name} is no number", changed(*level, to="many")


def _near() -> Iterator[tuple[str, Callable[[Facts], None]]]:
    def moved(facts: Facts) -> None:
        """The next pair that still adds up: far less by k, near more by 2 D - k, over their common divisor."""
        level = facts["questions"][2]["channel"]["levels"][0]
        inside, outside = level["inside"], 2 * level["size"] - level["inside"]
        level["near"], level["far"] = str(int(level["near"]) + outside), str(int(level["far"]) - inside)

    def reversed_(facts: Facts) -> None:
        """The wrong side for certain: near is one word for each, far all the others."""
        level = facts["questions"][2]["channel"]["levels"][0]
        size = level["size"]
        level.update(inside=size, near="1", far=str((2**64 - size) // size))

    yield "near and far are as little apart as they can be, beyond epsilon", moved
    yield "near and far do not add up", changed(*LEVEL, "near", to=lambda text: str(int(text) - 1))
    yield "far is dearer than near", reversed_
    yield "far is 0", changed(*LEVEL, "far", to="0")


def _table(facts: Facts) -> None:
    """Normals of another law: the array begins one number later."""
    for question in facts["questions"]:
        for level in question["channel"]["levels"]:
            if "sines" in level:
                level["sines"] = {**level["sines"], "at": 0}


def _far() -> Iterator[tuple[str, Callable[[Facts], None]]]:
    yield (
        "privunit's coin is a part in a million too small",
        changed(*LEVEL, "coin", to=lambda text: str(int(text) - int(text) // 10**6)),
    )
    yield "privunit's cap is a little smaller", changed(*LEVEL, "gamma", to=lambda gamma: 1.01 * gamma)
    yield "privunit's cap is on the other side", changed(*LEVEL, "gamma", to=lambda gamma: -gamma)
    yield "sines that are none", _table
    yield "privunit's cap is another", changed(*LEVEL, "gamma", to=lambda gamma: 2 * gamma)
