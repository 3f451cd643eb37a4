"""Section "What a client checks", the form: which members there are, and how large they may be."""

from __future__ import annotations

import math
import re
from typing import Any, TypeAlias

Facts: TypeAlias = dict[str, Any]
KEY, HASH = re.compile("[0-9a-f]{32}"), re.compile("[0-9a-f]{64}")
DECIMAL = re.compile("0|[1-9][0-9]*")
HIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
"""Characters that could pass for lines of the client itself, or hide some."""

DOMAINS = {
    "box": ("lower", "upper", "middle", "unit", "sides"),
    "ball": ("middle", "unit", "max_norm"),
    "reframed": ("offset", "scale", "then"),
    "graded": ("columns", "others"),
    "without": ("beside", "first"),
}
PARALLEL = ("lower", "upper", "middle", "sides", "offset", "scale")
BUCKETINGS = {
    "one": (),
    "grid": ("sides", "parts"),
    "directions": ("around",),
    "signs": ("around",),
    "centers": ("centers", "within"),
    "shells": ("around", "middle", "edges"),
    "distances": ("centers", "edges"),
    "grouped": ("centers", "edges"),
    "columns": ("sides", "depth"),
    "last": ("of",),
    "spared": ("of", "near", "bad"),
    "facets": ("near", "first", "facets", "of_group", "sides", "bins"),
    "quadtree": ("subspace", "order", "cuts", "top"),
    "nets": ("matrix", "bits", "radius", "nets"),
    "hashes": ("hash", "bits"),
    "intervals": ("hash", "intervals"),
    "regions": ("hash", "intervals", "values", "chosen"),
    "created": ("hash", "values", "centers", "within"),
    "assigned": ("own", "centers", "ranks", "kept"),
}
LISTS = ("sizes", "sides", "parts", "middle", "edges", "order", "bad")
"""Members that are lists of whole numbers."""

VECTORS = {"rows": (), "offsets": ("centers",), "clipped": ("centers", "radii", "scale", "weighted")}
DEEPEST = 16


class Wrong(Exception):
    """A bundle that a client refuses."""


def need(right: object, why: str) -> None:
    if not right:
        raise Wrong(why)


def whole(value: Any, low: int, high: int, why: str) -> None:
    need(type(value) is int and low <= value <= high, why)


def decimal(value: Any, digits: int = 19) -> int:
    """The number of a decimal text."""
    need(type(value) is str and len(value) <= digits and DECIMAL.fullmatch(value), "no decimal text")
    return int(value)


def listed(value: Any) -> int:
    """A whole number in a list: text if it is large."""
    need(type(value) in (int, str), "no whole number")
    return value if type(value) is int else decimal(value)


def once(pairs: list[tuple[str, Any]]) -> Facts:
    """An object of JSON."""
    found = dict(pairs)
    need(len(found) == len(pairs), "two members of one name")
    return found


def no_number(text: str) -> float:
    raise Wrong(f"{text} is no number")


def has(facts: Facts, kinds: dict[str, tuple[str, ...]], what: str) -> None:
    need(type(facts["kind"]) is str and facts["kind"] in kinds, f"unknown {what}")
    need(all(name in facts for name in kinds[facts["kind"]]), f"{what} without all their members")


def head(facts: Facts) -> None:
    """What stands at the top of a bundle."""
    need(facts["bundle"] == 1, "another version: a newer client is needed")
    need(HASH.fullmatch(facts["head"]) and HASH.fullmatch(facts["plan"]), "no hashes")
    whole(facts["rounds"], 1, 255, "rounds")
    whole(facts["round"], 1, facts["rounds"], "no such round")
    need(facts["round"] > 1 or facts["head"] == facts["plan"], "round 1 is named by its plan")
    need(facts["trust"] in ("Local", "Shuffled"), "another trust model")
    need(facts["trust"] == "Local" or facts["rounds"] == 1, "a shuffler's plan has one round")
    whole(facts["users"], 1, 2**53 - 1, "users")
    whole(facts["dimension"], 1, 2**20, "dimension")
    cost(facts)
    need(facts["lifetime"] is None or facts["lifetime"] > 0, "lifetime")
    need(0 < facts["asked"] <= 1, "asked")
    lines = [*facts["words"], *facts["warnings"], *(facts["columns"] or ()), facts["method"]]
    need(not any(HIDDEN.search(line) for line in lines), "hidden characters")
    need(facts["columns"] is None or len(facts["columns"]) == facts["dimension"], "columns")


def cost(facts: Facts) -> None:
    need(0 < facts["epsilon"] <= 1024 and 0 <= facts["delta"] < 1, "a cost")


def domain(one: Facts, dimension: int, depth: int = 1) -> None:
    need(depth <= DEEPEST, "nested too deep")
    has(one, DOMAINS, "domain")
    for name in PARALLEL:
        need(name not in one or len(one[name]) == dimension, f"{name} is of other columns")
        need(all(math.isfinite(x) for x in one.get(name, ())), f"{name} is infinite")
    need(all(a < b for a, b in zip(one.get("lower", ()), one.get("upper", ()), strict=True)), "bounds")
    need(0 not in one.get("scale", ()), "scale")
    for side in [*one.get("sides", ()), one.get("max_norm", 1) - 1]:
        whole(side, 0, 2**20, "sides")
    for column in one.get("columns", ()):
        whole(column, 0, dimension - 1, "columns")
    if "unit" in one:
        need(2.0**-1000 <= one["unit"] <= 2.0**1000 and math.frexp(one["unit"])[0] == 0.5, "unit")
    for name in ("then", "others"):
        if name in one:
            domain(one[name], dimension, depth + 1)
    if one["kind"] == "without":
        need(depth == 1, "columns that are left out inside another domain")
        whole(one["beside"], 1, dimension - 1, "columns that are left out")
        domain(one["first"], dimension - one["beside"], depth + 1)


def of_lattice(facts: Facts) -> int:
    """How many integers a lattice row has."""
    return int(facts["dimension"] - (facts["domain"]["beside"] if facts["domain"]["kind"] == "without" else 0))


def bucketing(one: Facts, depth: int = 1) -> None:
    need(depth <= DEEPEST, "nested too deep")
    has(one, BUCKETINGS, "bucketing")
    for name in LISTS:
        for value in one[name] if type(one.get(name)) is list else ():
            listed(value)
    need(decimal(one.get("intervals", {}).get("length", "1")) >= 1, "length")
    if "hash" in one:
        need(decimal(one["hash"]["width"]) >= 1 and all(map(KEY.fullmatch, one["hash"]["keys"])), "hash")
        whole(one["hash"]["bits"], 0, 62, "bits of a hash")
    if one["kind"] == "quadtree":
        bits = [sum(cuts["shape"]).bit_length() for cuts in one["cuts"]]
        need(all(one["order"].count(j) <= bits[j] for j in one["order"]), "bits that are not there")
    for net in one.get("nets", ()):
        need(net["step"] >= 1 and all(map(KEY.fullmatch, net["keys"] or ())), "a net")
    if one["kind"] == "facets":
        _facets(one)
    for name in ("of", "near"):
        if name in one:
            bucketing(one[name], depth + 1)
    for own in one.get("own", ()):
        bucketing(own["created"], depth + 1)


def _facets(one: Facts) -> None:
    need(len(one["facets"]) == len(one["of_group"]) == len(one["sizes"]), "levels")
    need(one["near"]["kind"] == "centers" and one["near"]["within"] is None, "groups")
    whole(one["first"], 1, len(one["sides"]), "first")
    whole(one["bins"], 1, 2**16, "bins")
    for side in one["sides"]:
        whole(side, 1, 2**20, "sides")
    for room in one["of_group"]:
        whole(room, 1, 2**32, "of_group")
    for place, values in one["facets"]:
        whole(values, 0, 2**20, "facets")
        whole(place, 0, len(one["sides"]) - max(1, values), "facets")


def vectors(one: Facts | None, channel: Facts, dimension: int) -> None:
    """The vectors of a question fit its channel. Args: dimension (of lattice rows)."""
    kind = channel["kind"]
    need(kind in ("counts", "vectors", "gaussian-vectors", "blanket", "shares"), "an unknown channel")
    if one is None:
        need(kind in ("counts", "blanket") or (kind == "shares" and channel["width"] == 1), "no vectors")
        return
    need(kind not in ("counts", "blanket"), "vectors in a channel of counts")
    has(one, VECTORS, "vectors")
    need(one["dimension"] == dimension + bool(one.get("weighted")), "vectors of another dimension")
    for name in ("centers", "radii"):
        need(one.get(name, {"type": "i4"})["type"] == "i4", "vectors that may be too long")
    need(0 < one.get("scale", 1) <= 2**53, "scale")
    need(one["l2"] >= 1 and one["l2"] ** 2 < 2**53 and 1 <= one["l1"] < 2**53, "bounds of vectors")
    same = {"vectors": ("dimension", "l2"), "gaussian-vectors": ("dimension", "l2", "l1"), "shares": ()}[kind]
    need(all(one[name] == channel[name] for name in same), "vectors of another bound")
    need(kind != "shares" or one["dimension"] == channel["width"], "vectors of another dimension")
