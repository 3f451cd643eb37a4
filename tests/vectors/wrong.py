"""Bundles that a client must refuse, each for one reason: a real one, changed, with its arrays' hash put right."""

from __future__ import annotations

import base64
import copy
import hashlib
import json
from typing import Any

from cloister.collection.plan.bundle import Bundle
from tests.vectors import wrong_channels
from tests.vectors.plans import Planned, planned
from tests.vectors.wrong_channels import Change, Changes, Facts, changed


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
    some = [(hashed, _outside()), (hashed, dict.fromkeys(TEXTS))]
    some += [(one, _dear("questions/0/channel/levels/0/keep")) for one in (hashed, direct, subset)]
    some += [(duchi, _dear("questions/2/channel/levels/0/coin")), (unary, CHEAP), (hashed, _near())]
    some += [(duchi, WRONG_SIDE), (privunit, _far()), *wrong_channels.cases(bundles[len(PLANS) :])]
    return [_case(why, change, bundle) for bundle, changes in some for why, change in changes.items()]


def _case(why: str, change: Change, bundle: Bundle) -> dict[str, str]:
    facts, arrays = {**copy.deepcopy(bundle.as_dict()), "words": []}, bundle.arrays
    changed(facts, change)
    if why.startswith("arrays"):
        arrays = arrays[:-1] + bytes([arrays[-1] ^ 1]) if "changed" in why else arrays[:-8]
    if why == "arrays: one lies outside":
        facts["arrays"] = {"bytes": len(arrays), "sha256": hashlib.sha256(arrays).hexdigest()}
    text = json.dumps(facts, sort_keys=True, separators=(",", ":")) + "\n"
    for old, new in TEXTS.get(why, ()):
        text = text.replace(old, new, 1)
    return {"why": why, "bundle": text, "arrays": base64.b64encode(arrays).decode()}


def _outside() -> Changes:
    """What is wrong whatever the randomiser is."""
    return {
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


def _near() -> Changes:
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

    return {
        "near and far are as little apart as they can be, beyond epsilon": moved,
        "near and far do not add up": ("questions/2/channel/levels/0/near", lambda text: str(int(text) - 1)),
        "far is dearer than near": reversed_,
        "far is 0": ("questions/2/channel/levels/0/far", "0"),
    }


def _table(facts: Facts) -> None:
    """Normals of another law: the array begins one number later."""
    for question in facts["questions"]:
        for level in question["channel"]["levels"]:
            if "sines" in level:
                level["sines"] = {**level["sines"], "at": 0}


def _far() -> Changes:
    return {
        "privunit's coin is a part in a million too small": (
            "questions/2/channel/levels/0/coin",
            lambda text: str(int(text) - int(text) // 10**6),
        ),
        "privunit's cap is a little smaller": ("questions/2/channel/levels/0/gamma", lambda gamma: 1.01 * gamma),
        "privunit's cap is on the other side": ("questions/2/channel/levels/0/gamma", lambda gamma: -gamma),
        "sines that are none": _table,
        "privunit's cap is another": ("questions/2/channel/levels/0/gamma", lambda gamma: 2 * gamma),
    }
