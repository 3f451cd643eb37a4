"""Bundles that a client must refuse, each for one reason: a real one, changed, with its arrays' hash put right."""

from __future__ import annotations

import base64
import copy
import hashlib
import json
from collections.abc import Callable, Iterator
from typing import Any

from cloister.collection.plan.bundle import Bundle
from tests.vectors.plans import Planned, planned

PLANS: tuple[Planned, ...] = tuple(
    planned(f"wrong {counts} {randomiser}", "one-round", 4, epsilon=6.0,
            options={"sums.randomiser": randomiser, "share": "users", "tree.cells": 16},
            components={"counts": counts, "sums": "hadamard-vector"})
    for counts, randomiser in (("optimised-local-hashing", "one-byte"), ("optimised-unary", "duchi"),
                               ("subset-selection", "privunit"), ("adaptive-response", "one-byte"))
)  # fmt: skip

Facts = dict[str, Any]
LEVEL = ("questions", 2, "channel", "levels", 0)
"""The first level of the first question for vectors."""


def made(bundles: list[Bundle]) -> list[dict[str, str]]:
    """Args: bundles (of ``PLANS``)."""
    hashed, unary, subset, direct = bundles
    some = [(hashed, list(_outside())), (hashed, list(_dear("keep", 0))), (direct, list(_dear("keep", 0)))]
    some += [(subset, list(_dear("keep", 0))), (unary, list(_dear("coin", 2))), (unary, list(_cheap("flip", 0)))]
    some += [(unary, [("duchi says the wrong side for certain", _set(*LEVEL, "coin", to="1"))])]
    some += [(hashed, list(_near())), (subset, list(_far()))]
    return [_case(why, change, bundle) for bundle, changes in some for why, change in changes]


def _case(why: str, change: Callable[[Facts], None], bundle: Bundle) -> dict[str, str]:
    facts, arrays = {**copy.deepcopy(bundle.as_dict()), "words": []}, bundle.arrays
    change(facts)
    if why.startswith("arrays"):
        arrays = arrays[:-1] + bytes([arrays[-1] ^ 1]) if "changed" in why else arrays[:-8]
    if why == "arrays: one lies outside":
        facts["arrays"] = {"bytes": len(arrays), "sha256": hashlib.sha256(arrays).hexdigest()}
    text = json.dumps(facts, sort_keys=True, separators=(",", ":")) + "\n"
    return {"why": why, "bundle": text, "arrays": base64.b64encode(arrays).decode()}


def _set(*path: Any, to: Any) -> Callable[[Facts], None]:
    def change(facts: Facts) -> None:
        at: Any = facts
        for name in path[:-1]:
            at = at[name]
        if to is None:
            del at[path[-1]]
        else:
            at[path[-1]] = to(at[path[-1]]) if callable(to) else to

    return change


def _outside() -> Iterator[tuple[str, Callable[[Facts], None]]]:
    """What is wrong whatever the randomiser is."""
    question, level = ("questions", 0), ("questions", 0, "channel", "levels", 0)
    yield "a newer format", _set("bundle", to=2)
    yield "no format", _set("bundle", to=None)
    yield "no head", _set("head", to=None)
    yield "a head that is no hash", _set("head", to="00")
    yield "round 0", _set("round", to=0)
    yield "a round after the last", _set("round", to=2)
    yield "another trust model", _set("trust", to="Central")
    yield "an unknown kind of domain", _set("domain", "kind", to="torus")
    yield "an unknown kind of bucketing", _set("bucketings", 0, "kind", to="sponge")
    yield "an unknown kind of channel", _set(*question, "channel", "kind", to="plain")
    yield "an unknown randomiser", _set(*level, "randomiser", to="none")
    yield "a bucketing that is not there", _set(*question, "bucketing", to=9)
    yield "a question in no drawing", _set("drawings", 0, "questions", to=lambda some: some[1:])
    yield "a question in two drawings", _set("drawings", 0, "questions", to=lambda some: [*some, some[0]])
    yield "shares that overlap", _set("questions", 1, "share", "from", to=lambda x: x - 1)
    yield "shares of two keys in one drawing", _set("questions", 1, "share", "key", to="00" * 16)
    yield "a share that is empty", _set(*question, "share", "from", to=lambda _: 2**53)
    yield "answer_bytes that are not the sum", _set("answer_bytes", to=lambda x: x + 1)
    yield "a body that is longer than its slot", _set(*question, "body_bytes", to=lambda x: x + 1)
    yield "a level beyond the report", _set(*question, "channel", "levels", 0, "at", to=9)
    yield "a key that is too short", _set(*level, "low", to="00" * 15)
    yield "no middle for a column", _set("domain", "middle", to=lambda some: some[:-1])
    yield "round 1 is not named by its plan", _set("head", to="00" * 32)
    yield "levels that are not the bucketing's", _set("bucketings", 0, "sizes", to=[2])
    yield "a report of all levels at the price of one", _twice
    yield "a level wider than its answer", _set(*level, "width", to=2)
    yield "symbols that its type cannot hold", _narrow
    yield "vectors of another bound", _set("questions", 2, "vectors", "l2", to=lambda l2: 2 * l2)
    yield "vectors of another dimension", _set("questions", 2, "vectors", "dimension", to=lambda d: d + 1)
    yield "alone it costs more than it says", _set(*question, "alone", to=lambda alone: 2 * alone)
    yield "a question costs more than the plan", _set("epsilon", to=lambda epsilon: epsilon / 2)
    yield "no epsilon alone", _set(*question, "alone", to=lambda alone: None)
    yield "a delta of its own", _set(*question, "delta", to=0.5)
    yield "a unit that is no power of two", _set("domain", "unit", to=lambda unit: 1.5 * unit)
    yield "messages without a shuffler", _set(*question, "channel", "kind", to="blanket")
    yield "arrays: a byte is changed", lambda facts: None
    yield "arrays: cut short", lambda facts: None
    yield "arrays: one lies outside", lambda facts: None


def _narrow(facts: Facts) -> None:
    question = facts["questions"][0]
    question["channel"]["dtype"], question["body_bytes"] = "u1", 1


def _twice(facts: Facts) -> None:
    """Two levels of the first bucketing, and everybody answers both."""
    question = facts["questions"][0]
    channel, cells = question["channel"], facts["bucketings"][question["bucketing"]]
    channel["levels"] = [channel["levels"][0], {**channel["levels"][0], "at": 1}]
    channel["width"], cells["sizes"] = 2, cells["sizes"] * 2
    facts["bucketings"].append(cells)
    wide = 2 * int(channel["dtype"][1:])
    question["body_bytes"], question["share"], question["bucketing"] = wide, None, len(facts["bucketings"]) - 1
    facts["drawings"] = [{"questions": [0], "bytes": wide}]
    facts["questions"], facts["answer_bytes"] = [question], wide


def _dear(name: str, question: int) -> Iterator[tuple[str, Callable[[Facts], None]]]:
    level = ("questions", question, "channel", "levels", 0, name)
    yield f"{name} is one word more than epsilon allows", _set(*level, to=lambda text: str(int(text) + 1))
    yield f"{name} is 2^64", _set(*level, to=str(2**64))


def _cheap(name: str, question: int) -> Iterator[tuple[str, Callable[[Facts], None]]]:
    level = ("questions", question, "channel", "levels", 0, name)
    yield f"{name} is one word less than epsilon allows", _set(*level, to=lambda text: str(int(text) - 1))
    yield f"{name} is no number", _set(*level, to="many")


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
    yield "near and far do not add up", _set(*LEVEL, "near", to=lambda text: str(int(text) - 1))
    yield "far is dearer than near", reversed_
    yield "far is 0", _set(*LEVEL, "far", to="0")


def _table(facts: Facts) -> None:
    """Normals of another law: the array begins one number later."""
    for question in facts["questions"]:
        for level in question["channel"]["levels"]:
            if "sines" in level:
                level["sines"] = {**level["sines"], "at": 0}


def _far() -> Iterator[tuple[str, Callable[[Facts], None]]]:
    yield (
        "privunit's coin is a part in a million too small",
        _set(*LEVEL, "coin", to=lambda text: str(int(text) - int(text) // 10**6)),
    )
    yield "privunit's cap is a little smaller", _set(*LEVEL, "gamma", to=lambda gamma: 1.01 * gamma)
    yield "privunit's cap is on the other side", _set(*LEVEL, "gamma", to=lambda gamma: -gamma)
    yield "sines that are none", _table
    yield "privunit's cap is another", _set(*LEVEL, "gamma", to=lambda gamma: 2 * gamma)
