"""Section "What a client checks": what can be seen of a bundle alone."""

from __future__ import annotations

import hashlib
import json
import math
import re
from fractions import Fraction
from itertools import pairwise
from typing import Any, TypeAlias

Facts: TypeAlias = dict[str, Any]
ALL = 2**64
BYTES = {"u1": 1, "u2": 2, "u4": 4, "u8": 8}
KEY, HASH = re.compile("[0-9a-f]{32}"), re.compile("[0-9a-f]{64}")
DOMAINS = {"box", "ball", "reframed", "graded"}
BUCKETINGS = {
    "one", "grid", "directions", "signs", "centers", "shells", "distances", "columns", "quadtree", "nets", "last",
    "spared", "hashes", "intervals", "regions", "created", "assigned",
}  # fmt: skip
VECTORS = {"rows", "offsets", "clipped"}
PARALLEL = ("lower", "upper", "middle", "sides", "offset", "scale")


class Wrong(Exception):
    """A bundle that a client refuses."""


def need(right: object, why: str) -> None:
    if not right:
        raise Wrong(why)


def check(bundle: str, arrays: bytes) -> None:
    """Raises: Wrong."""
    try:
        _check(json.loads(bundle), arrays)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, ZeroDivisionError) as error:
        raise Wrong(f"a member is missing, or of another type: {error!r}") from error


def _check(facts: Facts, arrays: bytes) -> None:
    need(facts["bundle"] == 1, "another version: a newer client is needed")
    stated = {"bytes": len(arrays), "sha256": hashlib.sha256(arrays).hexdigest()}
    need(facts["arrays"] == stated, "the arrays are others")
    _arrays(facts, len(arrays))
    need(HASH.fullmatch(facts["head"]) and HASH.fullmatch(facts["plan"]), "no hashes")
    need(1 <= facts["round"] <= facts["rounds"] <= 255, "no such round")
    need(facts["trust"] in ("Local", "Shuffled"), "another trust model")
    _domain(facts["domain"], facts["dimension"])
    for one in facts["bucketings"]:
        need(one["kind"] in BUCKETINGS, "an unknown bucketing")
    for question in facts["questions"]:
        _question(facts, question)
    _drawings(facts)


def _arrays(value: Any, size: int) -> None:
    if isinstance(value, dict) and set(value) == {"at", "type", "shape"}:
        wide = {"i4": 4, "i8": 8, "f8": 8}[value["type"]] * math.prod(value["shape"])
        need(value["at"] >= 0 and value["at"] + wide <= size, "an array lies outside")
    elif isinstance(value, (dict, list)):
        for one in value.values() if isinstance(value, dict) else value:
            _arrays(one, size)


def _domain(domain: Facts, dimension: int) -> None:
    need(domain["kind"] in DOMAINS, "an unknown domain")
    for name in PARALLEL:
        need(name not in domain or len(domain[name]) == dimension, f"{name} is of other columns")
    for name in ("then", "others"):
        if name in domain:
            _domain(domain[name], dimension)


def _question(facts: Facts, question: Facts) -> None:
    need(0 <= question["bucketing"] < len(facts["bucketings"]), "no such bucketing")
    need(question["vectors"] is None or question["vectors"]["kind"] in VECTORS, "unknown vectors")
    if question["share"] is not None:
        need(KEY.fullmatch(question["share"]["key"]), "a key")
        need(0 <= question["share"]["from"] < question["share"]["to"] <= 2**53, "a share of nobody")
    channel, shuffled = question["channel"], facts["trust"] == "Shuffled"
    sizes = facts["bucketings"][question["bucketing"]]["sizes"]
    need(len(channel["levels"]) == len(sizes), "levels")
    if channel["kind"] in ("blanket", "shares"):
        need(shuffled and question["share"] is None, "messages go to a shuffler, from everybody")
        if channel["kind"] == "blanket":
            many, wide = len(sizes) * (1 + channel["blankets"]), 12
        else:
            many, wide = channel["slots"] * channel["shares"], 4 + BYTES[channel["dtype"]]
        need((question["messages"], question["body_bytes"]) == (many, many * wide), "messages")
        return
    need(question["messages"] == 1, "one message")
    need(question["body_bytes"] == 8 * shuffled + channel["width"] * BYTES[channel["dtype"]], "the body's length")
    need(channel["level_key"] is None or KEY.fullmatch(channel["level_key"]), "a key")
    answers = len(sizes) if channel["level_key"] is None else 1
    for level in channel["levels"]:
        need(level["at"] >= 0 and level["at"] + level["width"] <= channel["width"], "a level beyond the report")
        for name in ("low", "high", "shift", "row", "bucket", "nobody"):
            need(name not in level or KEY.fullmatch(level[name]), "a key")
        if channel["kind"] == "gaussian-vectors":
            _gaussian(channel, question, answers)
        else:
            need(channel["kind"] in ("counts", "vectors"), "an unknown channel")
            _coin(level, Fraction(question["alone"]) / answers, channel.get("dimension", 0))


def _drawings(facts: Facts) -> None:
    drawn = [j for drawing in facts["drawings"] for j in drawing["questions"]]
    need(sorted(drawn) == list(range(len(facts["questions"]))), "every question is drawn once")
    for drawing in facts["drawings"]:
        mine = [facts["questions"][j] for j in drawing["questions"]]
        shares = [one["share"] for one in mine]
        need(None not in shares or len(shares) == 1, "a question for all is alone")
        if None not in shares:
            need(len({share["key"] for share in shares}) == 1, "one key")
            ordered = sorted((share["from"], share["to"]) for share in shares)
            need(all(a[1] <= b[0] for a, b in pairwise(ordered)), "shares overlap")
        longest = max(one["body_bytes"] for one in mine)
        need(drawing["bytes"] == longest + 2 * (facts["trust"] == "Shuffled"), "the slot's length")
    if facts["trust"] == "Local":
        for cost in ("epsilon", "delta"):
            drawn = [max(facts["questions"][j][cost] for j in one["questions"]) for one in facts["drawings"]]
            need(sum(drawn) <= facts[cost] * (1 + 1e-9), f"the questions cost more {cost} than the plan")
    need(facts["answer_bytes"] == sum(one["bytes"] for one in facts["drawings"]), "the answer's length")


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


def _coin(level: Facts, epsilon: Fraction, dimension: int) -> None:
    kind = level["randomiser"]
    for name in ("keep", "flip", "near", "far", "coin"):
        need(name not in level or 0 < int(level[name]) < ALL, f"{name} is no number of words")
    limit = power(epsilon)
    if kind in ("direct", "hashed", "signed"):
        keep, k = int(level["keep"]), level["symbols"]
        need(2 <= k < 2**32 and {"direct": int(level["size"]) + 1, "signed": 2}.get(kind, k) == k, "symbols")
        need(keep * ALL <= (limit - 1) * (ALL - keep) * (ALL // k), "keep is beyond epsilon")
    elif kind == "unary":
        flip = int(level["flip"])
        need(flip <= ALL // 2 and ALL - flip <= limit * flip, "flip is beyond epsilon")
    elif kind == "subset":
        keep, m, k = int(level["keep"]), level["size"] + 1, level["chosen"]
        need(1 <= k < m, "chosen")
        need(keep * -(-ALL // k) <= (limit - 1) * (ALL - keep) * (ALL // m), "keep is beyond epsilon")
    elif kind == "codebook":
        near, far, k, size = int(level["near"]), int(level["far"]), level["inside"], level["size"]
        need(size in (128, 256, 512, 1024, 2048, 4096) and dimension < size and 1 <= k <= size, "size")
        need(near * k + far * (2 * size - k) == ALL and near <= limit * far, "near is beyond epsilon")
        need(len(level["signs"]) == 3 * size // 64 and all(map(KEY.fullmatch, level["signs"])), "signs")
    elif kind == "duchi":
        need(int(level["coin"]) <= limit * (ALL - int(level["coin"])), "coin is beyond epsilon")
    elif kind == "privunit":
        _privunit(level, epsilon, dimension + 1)
    else:
        raise Wrong("an unknown randomiser")


def _privunit(level: Facts, epsilon: Fraction, size: int) -> None:
    t, off = int(level["coin"]) / ALL, (-(-size // 2) + 1) / 2**29 + 2.0**-25
    cap = _cap(level["gamma"], size)
    need(level["gamma"] >= 0 and cap > off and level["together"] >= 1, "the cap")
    low, high = cap - off, cap + off
    ratio = (high + (1 - high) * t) / (low + (1 - low) * t) / t
    need(ratio <= math.exp(epsilon) * (1 + 2.0**-26), "coin is beyond epsilon")


def _cap(gamma: float, size: int) -> float:
    """The share of the sphere of R^size where a coordinate is at least gamma / sqrt(size), by Simpson's rule."""
    start, steps = math.asin(min(1.0, gamma / math.sqrt(size))), 4096
    width = min(math.pi / 2 - start, 12 / math.sqrt(size)) / steps
    heights = [max(0.0, math.cos(start + i * width)) ** (size - 2) for i in range(steps + 1)]
    area = (heights[0] + heights[-1] + 4 * sum(heights[1::2]) + 2 * sum(heights[2:-1:2])) * width / 3
    return area / (math.sqrt(math.pi) * math.exp(math.lgamma((size - 1) / 2) - math.lgamma(size / 2)))


def _gaussian(channel: Facts, question: Facts, answers: int) -> None:
    sigma, epsilon = channel["sigma"], question["epsilon"]
    need(sigma >= 2.0**22, "sigma is too small")
    mu = 2 * math.sqrt(answers) * channel["l2"] * 2.0 ** channel["shift"] / sigma
    delta = _normal(mu / 2 - epsilon / mu) - math.exp(epsilon) * _normal(-mu / 2 - epsilon / mu)
    need(delta <= question["delta"] * (1 + 1e-6), "sigma is beyond epsilon and delta")


def _normal(x: float) -> float:
    return math.erfc(-x / math.sqrt(2)) / 2
