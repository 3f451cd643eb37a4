"""A bundle, a row, a user number and secret words to the bytes of a report."""

from __future__ import annotations

import json
import math
from typing import Any, final

from tests.reference_client import counts, units
from tests.reference_client.buckets import locate
from tests.reference_client.normals import gaussians
from tests.reference_client.snapping import sent, snap
from tests.reference_client.words import Words, below, hashed, opened, word

BYTES = {"u1": 1, "u2": 2, "u4": 4, "u8": 8}
NOTHING = 2**16 - 1


@final
class Client:
    """Args: bundle (the JSON's text), arrays (content of the .bin)."""

    def __init__(self, bundle: str, arrays: bytes) -> None:
        self.bundle: dict[str, Any] = opened(json.loads(bundle), arrays)
        self.shuffled = self.bundle["trust"] == "Shuffled"

    def report(self, row: list[float], user: int, words: Words) -> bytes | None:
        """A report; None if the round asks this user nothing."""
        drawings = self.bundle["drawings"]
        numbers = [words.next() if self.shuffled else user for _ in drawings]
        asked = [self._asked(one["questions"], v) for one, v in zip(drawings, numbers, strict=True)]
        if not self.shuffled and set(asked) == {None}:
            return None
        lattice = snap(self.bundle["domain"], row)
        todo = sorted((j, v) for j, v in zip(asked, numbers, strict=True) if j is not None)
        bodies = {j: self._body(self.bundle["questions"][j], lattice, v, words) for j, v in todo}
        answer = b"".join(self._slot(one, j, bodies) for one, j in zip(drawings, asked, strict=True))
        return b"\xc1" + self._prefix() + user.to_bytes(8, "little") + answer

    def _prefix(self) -> bytes:
        return bytes.fromhex(self.bundle["head"])[:8] + bytes([self.bundle["round"]])

    def _asked(self, questions: list[int], v: int) -> int | None:
        """Which question of a drawing a number is asked."""
        for j in questions:
            share = self.bundle["questions"][j]["share"]
            if share is None or share["from"] <= word(share["key"], v) >> 11 < share["to"]:
                return j
        return None

    def _slot(self, drawing: dict[str, Any], j: int | None, bodies: dict[int, bytes]) -> bytes:
        name = (NOTHING if j is None else j).to_bytes(2, "little") if self.shuffled else b""
        body = b"" if j is None else bodies[j]
        return (name + body).ljust(drawing["bytes"], b"\0")

    def _body(self, question: dict[str, Any], row: list[int], v: int, words: Words) -> bytes:
        cells = self.bundle["bucketings"][question["bucketing"]]
        ids = zip(locate(cells, row), cells["sizes"], strict=True)
        buckets = [id if 0 <= id < int(size) else -1 for id, size in ids]
        vectors, channel = question["vectors"], question["channel"]
        vector = [1] if vectors is None else [0] * vectors["dimension"]
        if vectors is not None and buckets[0] >= 0:
            vector = sent(vectors, row, buckets[0])
        if channel["kind"] == "blanket":
            return _blanket(channel, buckets, words)
        if channel["kind"] == "shares":
            return _shares(channel, buckets, vector, words)
        numbers = _levels(channel, buckets, vector, v, words)
        private = v.to_bytes(8, "little") if self.shuffled else b""
        return private + b"".join(x.to_bytes(BYTES[channel["dtype"]], "little") for x in numbers)


def _levels(channel: dict[str, Any], buckets: list[int], vector: list[int], v: int, words: Words) -> list[int]:
    levels, numbers = list(enumerate(channel["levels"])), [0] * channel["width"]
    if channel["level_key"] is not None:
        one = below(word(channel["level_key"], v), len(levels))
        levels = [levels[one]]
    for at, level in levels:
        found = _answer(channel, level, buckets[at], vector, v, words)
        numbers[level["at"] : level["at"] + len(found)] = found
    return numbers


def _answer(
    channel: dict[str, Any], level: dict[str, Any], bucket: int, vector: list[int], v: int, words: Words
) -> list[int]:
    if channel["kind"] == "counts":
        return counts.answer(level, bucket, v, words)
    if channel["kind"] == "vectors":
        return units.answer(channel, level, bucket, vector, v, words)
    return _gaussian(channel, level, bucket, vector, words)


def _gaussian(
    channel: dict[str, Any], level: dict[str, Any], bucket: int, vector: list[int], words: Words
) -> list[int]:
    numbers, most = gaussians(channel["sigma"], level["width"], words), channel["farthest"]
    if bucket >= 0:
        for j, z in enumerate(vector):
            numbers[bucket * len(vector) + j] += math.trunc(z * 2.0 ** channel["shift"])
    clipped = [min(max(x, -most), most) for x in numbers]
    length = math.sqrt(sum(x * x for x in clipped))
    if length > level["longest"]:
        scale = level["longest"] * (1 - 2.0**-40) / length
        clipped = [math.trunc(x * scale) for x in clipped]
    return [x % 2**32 for x in clipped]


def _blanket(channel: dict[str, Any], buckets: list[int], words: Words) -> bytes:
    out = b""
    for number, level in enumerate(channel["levels"]):
        for message in range(1 + channel["blankets"]):
            tag, drawn = words.many(2)
            value = below(drawn, channel["values"])
            if message == 0 and buckets[number] >= 0:
                value = hashed(level["low"], level["high"], level["shift"], tag, buckets[number], channel["values"])
            out += number.to_bytes(2, "little") + tag.to_bytes(8, "little") + value.to_bytes(2, "little")
    return out


def _shares(channel: dict[str, Any], buckets: list[int], vector: list[int], words: Words) -> bytes:
    numbers = [0] * channel["slots"]
    for bucket, level in zip(buckets, channel["levels"], strict=True):
        if bucket >= 0:
            place, sign = _place(level, bucket)
            for j, z in enumerate(vector):
                numbers[level["at"] + place * channel["width"] + j] += sign * z * 2 ** channel["shift"]
    noise = gaussians(channel["sigma"], channel["slots"], words)
    size, ring, out = BYTES[channel["dtype"]], 2 ** channel["bits"], b""
    for slot, number in enumerate(map(sum, zip(numbers, noise, strict=True))):
        drawn = words.many(channel["shares"] - 1)
        for share in [*drawn, number - sum(drawn)]:
            out += slot.to_bytes(4, "little") + (share % ring).to_bytes(size, "little")
    return out


def _place(level: dict[str, Any], bucket: int) -> tuple[int, int]:
    if level["place"] is None:
        return bucket, 1
    where, sign = (
        hashed(one["low"], one["high"], one["shift"], 0, bucket, symbols)
        for one, symbols in ((level["place"], level["places"]), (level["sign"], 2))
    )
    return where, 1 - 2 * sign
