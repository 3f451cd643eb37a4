"""Section "What a client checks": what can be seen of a bundle alone."""

from __future__ import annotations

import hashlib
import json
import math
from fractions import Fraction
from itertools import pairwise
from typing import Any

from tests.reference_client import forms
from tests.reference_client.forms import Facts, Wrong as Wrong, need

ALL = 2**64
BYTES = {"u1": 1, "u2": 2, "u4": 4, "u8": 8}
SINES = "427a6507e910807d46cc244d4bcf41eedb31740e465979fdf4d83c83b428e7a7"
"""Of the table of sines, 1025 doubles."""


def check(bundle: str, arrays: bytes) -> None:
    """Raises: Wrong."""
    try:
        need(len(bundle) <= 2**26 and len(arrays) <= 2**30, "too long")
        _check(json.loads(bundle, object_pairs_hook=forms.once, parse_constant=forms.no_number), arrays)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, ArithmeticError, RecursionError) as error:
        raise Wrong(f"a member is missing, or of another type: {error!r}") from error


def _check(facts: Facts, arrays: bytes) -> None:
    forms.head(facts)
    stated = {"bytes": len(arrays), "sha256": hashlib.sha256(arrays).hexdigest()}
    need(facts["arrays"] == stated, "the arrays are others")
    _arrays(facts, arrays)
    forms.domain(facts["domain"], facts["dimension"])
    for one in facts["bucketings"]:
        forms.bucketing(one)
    need(1 <= len(facts["questions"]) < 2**16 - 1, "questions")
    for question in facts["questions"]:
        _question(facts, question)
    _drawings(facts)


def _arrays(value: Any, arrays: bytes, name: str = "") -> None:
    if isinstance(value, dict) and set(value) == {"at", "type", "shape"}:
        wide = {"i4": 4, "i8": 8, "f8": 8}[value["type"]] * math.prod(value["shape"])
        need(value["at"] >= 0 and value["at"] + wide <= len(arrays), "an array lies outside")
        held = arrays[value["at"] : value["at"] + wide]
        need(name != "sines" or hashlib.sha256(held).hexdigest() == SINES, "other sines than the true ones")
    elif isinstance(value, dict):
        for member, one in value.items():
            _arrays(one, arrays, member)
    elif isinstance(value, list):
        for one in value:
            _arrays(one, arrays)


def _question(facts: Facts, question: Facts) -> None:
    need(0 <= question["bucketing"] < len(facts["bucketings"]), "no such bucketing")
    forms.cost(question)
    _alone(facts["trust"] == "Local", question)
    if question["share"] is not None:
        need(forms.KEY.fullmatch(question["share"]["key"]), "a key")
        need(0 <= question["share"]["from"] < question["share"]["to"] <= 2**53, "a share of nobody")
    channel, sizes = question["channel"], [forms.listed(n) for n in facts["bucketings"][question["bucketing"]]["sizes"]]
    need(len(channel["levels"]) == len(sizes) >= 1 and all(1 <= size < 2**62 for size in sizes), "levels")
    if channel["kind"] != "vectors":
        need(all(type(level["size"]) is int for level in channel["levels"]), "sizes")
        need([level["size"] for level in channel["levels"]] == sizes, "levels of other sizes")
    forms.vectors(question["vectors"], channel, forms.of_lattice(facts))
    if channel["kind"] in ("blanket", "shares"):
        need(facts["trust"] == "Shuffled" and question["share"] is None, "messages go to a shuffler, from everybody")
        _messages(question, channel)
    else:
        _report(facts, question, channel)


def _alone(local: bool, question: Facts) -> None:
    if local:
        need(question["alone"] == question["epsilon"], "a report costs more alone than together")
    elif question["channel"]["kind"] in ("blanket", "shares"):
        need(question["alone"] is None, "messages have no coin of their own")
    else:
        need(0 < question["alone"] <= 1024, "a cost alone")


def _messages(question: Facts, channel: Facts) -> None:
    if channel["kind"] == "blanket":
        many, wide = len(channel["levels"]) * (1 + channel["blankets"]), 12
        need(2 <= channel["values"] <= 2**16 and channel["blankets"] >= 1, "values")
    else:
        many, wide, at = channel["slots"] * channel["shares"], 4 + BYTES[channel["dtype"]], 0
        need(channel["dtype"] == ("u4" if channel["bits"] <= 32 else "u8") and 2 <= channel["bits"] <= 62, "bits")
        need(0 < channel["sigma"] <= 2**56 and 0 <= channel["shift"] <= 62 and channel["shares"] >= 2, "noise")
        for level in channel["levels"]:
            whole = level["places"] == int(level["size"])
            need(level["at"] == at and (level["place"] is None) == (level["sign"] is None) == whole, "places")
            at += level["places"] * channel["width"]
        need(channel["slots"] == at, "slots")
    for level in channel["levels"]:
        _keys(level)
    need((question["messages"], question["body_bytes"]) == (many, many * wide), "messages")
    need(many <= 2**16, "too many messages")


def _report(facts: Facts, question: Facts, channel: Facts) -> None:
    shuffled, wide, key = facts["trust"] == "Shuffled", BYTES[channel["dtype"]], channel["level_key"]
    need(question["messages"] == 1 and wide <= 4, "one message")
    need(question["body_bytes"] == 8 * shuffled + channel["width"] * wide, "the body's length")
    need(key is None or forms.KEY.fullmatch(key), "a key")
    levels, at = channel["levels"], 0
    shares = {"users"} if key else {"budget"} if len(levels) > 1 else {"users", "budget"}
    need(channel["share"] in shares, "levels that share something else")
    for level in levels:
        need(level["at"] == (at if key is None else 0) and level["width"] == _width(channel, level), "a level's place")
        at += level["width"]
        _keys(level)
        most = {"codebook": 2 * level.get("size", 0)}.get(level.get("randomiser", ""), level.get("symbols", 0))
        need(most <= 256**wide, "a type that is too narrow")
        need(level.get("randomiser") not in ("duchi", "privunit") or wide == 2, "another type")
    need(channel["width"] == max(level["at"] + level["width"] for level in levels), "a report's width")
    answers = len(levels) if key is None else 1
    if channel["kind"] == "gaussian-vectors":
        need(wide == 4 and not shuffled, "another type, or trust")
        _gaussian(channel, question, answers)
        return
    for level in levels:
        _coin(level, Fraction(question["alone"]) / answers, channel.get("dimension", 0))


def _width(channel: Facts, level: Facts) -> int:
    if channel["kind"] == "gaussian-vectors":
        return int(level["size"] * channel["dimension"])
    name = level["randomiser"]
    if name in ("duchi", "privunit"):
        return int(channel["dimension"])
    size = int(level.get("size", 0))
    return {"unary": -(-size // 8), "subset": -(-(size + 1) // 8)}.get(name, 1)


def _keys(level: Facts) -> None:
    for name in ("low", "high", "shift", "row", "bucket", "nobody"):
        need(name not in level or forms.KEY.fullmatch(level[name]), "a key")


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
    need(facts["answer_bytes"] <= 2**26 - 72, "an answer that fits no batch")
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
        need(name not in level or 0 < forms.decimal(level[name], 20) < ALL, f"{name} is no number of words")
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
        need(near * k + far * (2 * size - k) == ALL, "near and far do not add up")
        need(near <= limit * far and far <= limit * near, "near is beyond epsilon")
        most = 60 if size <= 256 else 124
        need(level["bits"] >= 0 and 2 * level["bits"] + 3 * (size.bit_length() - 1) <= most, "bits")
        need(len(level["signs"]) == 3 * size // 64 and all(map(forms.KEY.fullmatch, level["signs"])), "signs")
    elif kind == "duchi":
        sides = int(level["coin"]), ALL - int(level["coin"])
        need(max(sides) <= limit * min(sides), "coin is beyond epsilon")
    elif kind == "privunit":
        _privunit(level, epsilon, dimension + 1)
    else:
        raise Wrong("an unknown randomiser")


def _privunit(level: Facts, epsilon: Fraction, size: int) -> None:
    t, off = int(level["coin"]) / ALL, (-(-size // 2) + 1) / 2**29 + 2.0**-25
    cap = _cap(level["gamma"], size)
    need(level["gamma"] >= 0 and level["gamma"] ** 2 < size and cap > off and 1 <= level["together"] <= 8, "the cap")
    low, high = cap - off, cap + off
    ratio = (high + (1 - high) * t) / (low + (1 - low) * t) / t
    need(ratio <= math.exp(min(epsilon, 100)) * (1 + 2.0**-26), "coin is beyond epsilon")


def _cap(gamma: float, size: int) -> float:
    """The share of the sphere of R^size where a coordinate is at least gamma / sqrt(size), by Simpson's rule."""
    start, steps = math.asin(min(1.0, gamma / math.sqrt(size))), 4096
    width = min(math.pi / 2 - start, 12 / math.sqrt(size)) / steps
    heights = [max(0.0, math.cos(start + i * width)) ** (size - 2) for i in range(steps + 1)]
    area = (heights[0] + heights[-1] + 4 * sum(heights[1::2]) + 2 * sum(heights[2:-1:2])) * width / 3
    return area / (math.sqrt(math.pi) * math.exp(math.lgamma((size - 1) / 2) - math.lgamma(size / 2)))


def _gaussian(channel: Facts, question: Facts, answers: int) -> None:
    sigma, epsilon = channel["sigma"], min(question["epsilon"], 700.0)  # of a larger one e^epsilon is infinite
    need(2.0**22 <= sigma <= 2**56 and -64 <= channel["shift"] <= 62, "sigma is too small, or too large")
    need(1 <= channel["farthest"] < 2**31, "farthest")
    need(all(level["longest"] > 0 < forms.decimal(level["most"], 40) for level in channel["levels"]), "longest")
    mu = 2 * math.sqrt(answers) * channel["l2"] * 2.0 ** channel["shift"] / sigma
    delta = _normal(mu / 2 - epsilon / mu) - math.exp(epsilon) * _normal(-mu / 2 - epsilon / mu)
    need(delta <= question["delta"] * (1 + 1e-6), "sigma is beyond epsilon and delta")


def _normal(x: float) -> float:
    return math.erfc(-x / math.sqrt(2)) / 2
