"""Words on the wire: the low bytes of 64-bit words, little endian, and nothing else."""

from __future__ import annotations

from typing import final

import attrs
import numpy as np

from cloister.core.errors import InvalidInput, Refused
from cloister.core.types import Ids


@final
@attrs.frozen
class VectorShape:
    """The shape of one masked vector. Args: size (words), bits (of the ring: a multiple of 8)."""

    size: int
    bits: int

    def __attrs_post_init__(self) -> None:
        if self.size < 0 or self.bits not in range(8, 65, 8):
            raise InvalidInput(f"a tensor has words of 8, 16, ... 64 bits, not {self.size} of {self.bits}")

    @property
    def bytes(self) -> int:
        return self.size * self.bits // 8


Shape = tuple[VectorShape, ...]
"""The shapes of one round's vectors, question by question."""


def shape_bytes(shape: Shape) -> int:
    """Length in bytes of a round's masked words."""
    return sum(tensor.bytes for tensor in shape)


def pack(vectors: tuple[Ids, ...], shape: Shape) -> bytes:
    """Words (m,) per tensor to bytes; bits above the ring's are cut off."""
    if tuple(len(v) for v in vectors) != tuple(t.size for t in shape):
        raise InvalidInput(f"vectors of {[len(v) for v in vectors]} words do not fit {shape}")
    parts = []
    for vector, tensor in zip(vectors, shape, strict=True):
        every = np.ascontiguousarray(vector, "<u8").view(np.uint8).reshape(-1, 8)
        parts.append(np.ascontiguousarray(every[:, : tensor.bits // 8]).tobytes())
    return b"".join(parts)


def unpack(data: bytes, shape: Shape) -> tuple[Ids, ...]:
    """Bytes to words per tensor. Raises: Refused: another length."""
    if len(data) != shape_bytes(shape):
        raise Refused(f"masked words of {len(data)} bytes, expected {shape_bytes(shape)}")
    vectors, start = [], 0
    for tensor in shape:
        words = np.zeros((tensor.size, 8), np.uint8)
        words[:, : tensor.bits // 8] = np.frombuffer(data, np.uint8, tensor.bytes, start).reshape(tensor.size, -1)
        vectors.append(words.view("<u8").reshape(-1).astype(np.uint64, copy=False))
        start += tensor.bytes
    return tuple(vectors)
