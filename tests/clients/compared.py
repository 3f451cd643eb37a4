"""Python's reports of random rows beside those of another client, for the same secret words: byte by byte."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from cloister.collection.client.encode_files import RowTable, collect
from cloister.collection.client.encoder import PlanEncoder
from cloister.collection.plan.bundle import Bundle, bundle_of
from cloister.collection.plan.plan import CollectionPlan
from cloister.collection.plan.transcript import Transcript, transcript_of
from cloister.collection.server.aggregator import advance
from cloister.core.domains import Ball
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.core.types import Floats, Ids

BLOCK = 64
"""Words that are made at once."""


def words(key: bytes) -> Iterator[int]:
    """The words of a key for 0, 1, 2, ..."""
    rng, start = PublicRng(key), 0
    while True:
        yield from rng.of_users(np.arange(start, start + BLOCK, dtype=np.uint64)).tolist()
        start += BLOCK


def rows_of(plan: CollectionPlan, g: np.random.Generator, number: int) -> Floats:
    """Rows (n, d), some of them at the border of the domain, beyond it, in its middle, and far away."""
    domain = plan.domain
    wide = domain.radius if isinstance(domain, Ball) else domain.half_widths
    rows: Floats = domain.middle + wide * g.normal(0, 0.3, (number, plan.dimension)) * g.choice(
        [0.3, 1, 3], (number, 1)
    )
    rows[g.random(number) < 0.02] = domain.middle
    rows[g.random(number) < 0.02] *= 1e9
    rows[g.random(number) < 0.02] = domain.middle + wide
    return rows


def written(folder: Path, asking: CollectionPlan | Transcript, number: int, seed: int = 0) -> Path:
    """A folder with a bundle, rows, users, keys of their secret words, and Python's reports (``bench/compare.js``)."""
    transcript = transcript_of(asking)
    plan, bundle, g = transcript.plan, bundle_of(transcript), np.random.default_rng(seed)
    rows = rows_of(plan, g, number)
    users: Ids = g.integers(0, plan.rows, number).astype(np.uint64)
    keys = [g.bytes(16) for _ in range(number)]
    encoder, size = PlanEncoder(transcript, noise=NoiseRng.for_tests(0)), 18 + bundle.as_dict()["answer_bytes"]
    reports = b"".join(_report(encoder, *each, size) for each in zip(rows, users, keys, strict=True))
    put(folder, bundle, rows, users, {"keys.bin": b"".join(keys), "reports.bin": reports})
    return folder


def put(folder: Path, bundle: Bundle, rows: Floats, users: Ids, more: dict[str, bytes] | None = None) -> None:
    """A folder's files: a bundle, rows, users, and more."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {"bundle.json": bundle.content, "bundle.bin": bundle.arrays, "rows.bin": rows.tobytes()}
    for name, content in {**files, "users.bin": users.tobytes(), **(more or {})}.items():
        (folder / name).write_bytes(content)


def _report(encoder: PlanEncoder, row: Floats, user: int, key: bytes, size: int) -> bytes:
    """A report of so many bytes; zeros of a user who is not asked."""
    encoder._noise = NoiseRng.replayed(words(key))  # a new encoder would work the whole round out again
    return encoder.encode(row[None], np.array([user])).to_bytes() or bytes(size)


def rounds_of(folder: Path, plan: CollectionPlan, people: int = 400) -> Iterator[Transcript]:
    """Every round of a plan, open, after some people have answered the rounds before."""
    plan.write(folder / "plan", "")
    np.save(folder / "mine.npy", rows_of(plan, np.random.default_rng(1), people))
    for number in range(plan.length):
        transcript = transcript_of(folder / "plan")
        yield transcript
        if number + 1 < plan.length:
            encoder = PlanEncoder(transcript, noise=NoiseRng.for_tests(number))
            table = RowTable(encoder, [str(folder / "mine.npy")])
            collect(encoder, table, folder / "reports", None)
            advance(folder / "plan", folder / "reports")
