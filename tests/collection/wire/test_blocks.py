"""Reports that are read a piece at a time are those of one look at all of it, wherever the pieces end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cloister.collection.intake.parts import divided
from cloister.collection.wire import batches
from cloister.collection.wire.batches import BATCH, COUNTED, BatchForm, Parsed, parsed

WIDTH = 21
FORM, EARLIER = (BatchForm(head * 32, 1, WIDTH) for head in ("ab", "cd"))
FAKE = (FORM.prefix(BATCH) + COUNTED.pack(1, 0)).ljust(WIDTH, b"\0")
"""An answer that looks like the beginning of a batch."""


def sent(g: np.random.Generator, form: BatchForm = FORM) -> bytes:
    """A batch of some reports, or a report."""
    many = int(g.integers(5))
    answers = g.integers(0, 256, (many, WIDTH)).astype(np.uint8)
    answers[::2] = np.frombuffer(FAKE, np.uint8)
    users = g.integers(0, 50, many).astype(np.uint64)
    return form.report(7, answers[0].tobytes()) if many == 1 else form.batch(users, answers)


def file(seed: int) -> bytes:
    """A file that may have flipped bits, batches of an earlier round, bytes of nothing, and a torn end."""
    g = np.random.default_rng(seed)
    data = bytearray(b"".join(sent(g) for _ in range(int(g.integers(1, 12)))))
    for _ in range(int(g.integers(3))):
        data[int(g.integers(len(data)))] ^= 1 << int(g.integers(8))
    data += (b"", b"", b"nothing" + sent(g), sent(g, EARLIER) + sent(g, EARLIER))[int(g.integers(4))]
    return bytes(data[: len(data) - int(g.integers(40)) * int(g.integers(2))])


def said(some: Iterable[Parsed]) -> tuple[Any, ...]:
    found = list(some)
    users, answers = (np.concatenate([getattr(one, name) for one in found]) for name in ("users", "answers"))
    last = found[-1]
    left = 0 if last.wrong else last.left
    return users.tolist(), answers.tolist(), sum(one.damaged for one in found), last.wrong, last.stamp, left


@pytest.mark.parametrize("chunk", [7, 1000])
def test_parts_may_end_at_any_batch(chunk: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where an answer looks like a batch."""
    monkeypatch.setattr(batches, "CHUNK", chunk)
    path = tmp_path / "a.reports"

    def read(most: int) -> Iterator[Parsed]:
        for where in (stretch for part in divided([str(path)], FORM, most) for stretch in part.stretches):
            with where.opened() as opened:
                yield from parsed(opened, FORM, where.size, where.start > 0)

    for seed in range(60):
        path.write_bytes(file(seed))
        for most in (1, 200, 10**6):
            assert said(read(most)) == said([FORM.parse(file(seed))])
