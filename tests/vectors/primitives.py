"""Vectors of single steps."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from cloister.collection.wire.batches import BatchForm
from cloister.core.buckets import BundleArrays, describe_part, hex_key, json_integers
from cloister.core.domains import Ball, Box
from cloister.core.randomness import PublicRng
from cloister.plugins.oracles.local.coins import multiply_shift
from cloister.plugins.oracles.local.hashing import Hashes

SIGNER = bytes(range(32))
"""A ticket's private key, for these vectors only."""

TICKET = b"cloister ticket 1\n"
EDGES = [0, 1, 2**32 - 1, 2**32, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1]


def made() -> dict[str, Any]:
    g, rng = random.Random(7), PublicRng.from_seed(7)
    return {
        "child": [_child(rng, names) for names in (("level", 0), ("low",), ("sharing", "level"), ("a b", -1))],
        "word": [_word(rng.child(i), u) for i, u in enumerate([*EDGES, g.getrandbits(64)])],
        "below": [_below(w, m) for w in [*EDGES, g.getrandbits(64)] for m in (1, 2, 7, 2**16, 2**32 - 1)],
        "hash": [
            _hash(rng.child("hash", i), g.getrandbits(64), x, k)
            for i, (x, k) in enumerate([(0, 2), (1, 7), (2**32, 7), (2**62 - 1, 2**16), (12345, 54)])
        ],
        "snap": [*_snaps(Box((-1.0, 0.0, 5.0), (1.0, 1e-3, 7e6))), *_snaps(Ball((0.5, -2.0, 1e3), 3.0))],
        "batch": [_batch(rng, 0), _batch(rng, 3)],
        "ticket": [_ticket(rng, user) for user in (0, 2**64 - 1)],
    }


def _child(rng: PublicRng, names: tuple[str | int, ...]) -> dict[str, Any]:
    return {"key": rng.key.hex(), "names": list(names), "child": rng.child(*names).key.hex()}


def _word(rng: PublicRng, user: int) -> dict[str, Any]:
    (found,) = rng.of_users(np.array([user], np.uint64))
    return {"key": hex_key(rng), "u": str(user), "word": f"{int(found):016x}"}


def _below(word: int, m: int) -> dict[str, Any]:
    return {"word": f"{word:016x}", "m": m, "below": int(multiply_shift(np.array([word], np.uint64), m)[0])}


def _hash(rng: PublicRng, user: int, bucket: int, symbols: int) -> dict[str, Any]:
    hashes = Hashes(rng, symbols)
    (found,) = hashes.of(np.array([user], np.uint64), np.array([bucket]))
    (x,) = json_integers([bucket])
    return {**hashes.bundled, "v": str(user), "x": x, "k": symbols, "hash": int(found)}


def _snaps(domain: Box | Ball) -> list[dict[str, Any]]:
    middle, half = domain.middle, domain.diameter / 2
    rows = [
        middle,
        middle + half,
        middle - half,
        middle + 0.3 * half,
        [-0.0] * 3,
        [1e308, -1e308, 1e308],
        middle + np.array([0.5, 1.5, -0.5]) * domain.unit,
        middle + np.array([half, 0, 0]),
    ]
    found = domain.snap(np.array(rows))
    return [
        {
            "domain": describe_part(domain, BundleArrays()),
            "row": list(map(float, row)),
            "lattice": list(map(int, lattice)),
        }
        for row, lattice in zip(rows, found, strict=True)
    ]


def _batch(rng: PublicRng, count: int) -> dict[str, Any]:
    users = np.arange(count, dtype=np.uint64) * np.uint64(2**40 + 1)
    answers = np.arange(2 * count, dtype=np.uint8).reshape(count, 2)
    form = BatchForm(rng.key.hex(), 1, 2)
    records = [{"user": str(u), "answer": a.tobytes().hex()} for u, a in zip(users, answers, strict=True)]
    return {"head": form.head, "round": 1, "records": records, "batch": form.batch(users, answers).hex()}


def _ticket(rng: PublicRng, user: int) -> dict[str, Any]:
    signer = Ed25519PrivateKey.from_private_bytes(SIGNER)
    public = signer.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    ticket = signer.sign(TICKET + rng.key + user.to_bytes(8, "little"))
    return {
        "private": SIGNER.hex(),
        "public": public.hex(),
        "plan": rng.key.hex(),
        "user": str(user),
        "ticket": ticket.hex(),
    }
