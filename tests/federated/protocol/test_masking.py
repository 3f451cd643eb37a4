"""What travels, and what the coordinator holds: uniform words that never repeat. False alarms: below 1e-6 per test."""

from __future__ import annotations

import gc
import sys
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from cloister.core.randomness import NoiseRng
from cloister.core.registry.registry import registry
from cloister.core.types import Floats, Ids
from cloister.federated.protocol.agreement import Masks
from cloister.federated.protocol.masking import Keyring
from cloister.federated.protocol.messages import HEAD, TAG
from cloister.federated.protocol.streams import Place
from cloister.federated.protocol.vectors import VectorShape, unpack
from cloister.run.fit import fit
from cloister.run.request import Request
from tests.federated.federated_session import Keys, join, opened

MODES: tuple[Masks, ...] = ("shared", "pairwise")
WIDE = (VectorShape(500, 64), VectorShape(300, 64))


def zero() -> tuple[Ids, ...]:
    return tuple(np.zeros(t.size, np.uint64) for t in WIDE)


@pytest.mark.parametrize("masks", MODES)
def test_no_mask_word_repeats_over_rounds_tensors_attempts_parties_and_sessions(masks: Masks) -> None:
    """Of 20,000 words of 64 bits two are equal with probability 1.1e-11."""
    keys = Keys(masks)
    words = np.concatenate([w for _ in range(2) for w in aborted_transcript(keys)])
    assert len(words) == 2 * 2 * 3 * 2 * 800 - 2 * 2 * 800
    assert len(np.unique(words)) == len(words)


def aborted_transcript(keys: Keys) -> list[Ids]:
    """Two rounds; in each, two of three parties send, the attempt is given up, and all send again."""
    coordinator = keys.coordinate()
    parties = [keys.party(i) for i in range(3)]
    join(coordinator, parties)
    found: list[Ids] = []
    for round in range(2):
        coordinator.expect(WIDE, zero)
        for some in (parties[:2], parties):
            for party in some:
                data = party.vector(round, "d", WIDE, zero)
                coordinator.receive(party.name, data)
                found += unpack(data[HEAD.size + TAG :], WIDE)
            if some is not parties:
                coordinator.abort()
                for party in parties:
                    party.aborted(round, 1)
    return found


def keyring(masks: Masks) -> Keyring:
    return Keyring(b"s" * 32, 0, 3, b"g" * 32, b"c" * 32, {1: b"a" * 32, 2: b"b" * 32} if masks == "pairwise" else {})


def test_masks_depend_on_every_part_of_their_place() -> None:
    keys = keyring("pairwise")
    places = [Place(*p) for p in ((0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1))]
    streams = [keys.group_mask(p, i, 8) for p in places for i in range(2)] + [
        keys.pair_mask(p, i, 8) for p in places for i in (1, 2)
    ]
    for one, other in combinations(streams, 2):
        assert not np.intersect1d(one, other).size


def contents(root: object) -> list[Any]:
    """Everything that an object holds, at any depth."""
    seen, queue, found = {id(root)}, [root], [root]
    while queue:
        for part in gc.get_referents(queue.pop()):
            if (
                id(part) in seen
                or isinstance(part, type)
                or type(part).__name__ in ("module", "function", "builtin_function_or_method")
            ):
                continue
            seen.add(id(part))
            queue.append(part)
            found.append(part)
    return found


def test_the_coordinator_holds_no_key_and_no_unmasked_value() -> None:
    """All bytes and arrays that it can reach, against the group's secret, every party's exact words and the noised
    sums."""
    coordinator, parties = opened()
    secret = parties[1]._ring.group
    words = [
        tuple(np.full(t.size, 10**9 + p.me, np.uint64) for t in (VectorShape(3, 64), VectorShape(6, 40)))
        for p in parties
    ]
    from tests.federated.federated_session import SHAPE

    for party, own in zip(parties, words, strict=True):
        due = coordinator.receive(party.name, party.vector(0, "d", SHAPE, lambda own=own: own))
        held = contents(coordinator)
        private = [secret, *(w.tobytes()[:5] for o in words for w in o)]
        for part in held:
            if isinstance(part, (bytes, bytearray)):
                assert not any(p in part for p in private)
            if isinstance(part, np.ndarray):
                assert not np.isin(part, [10**9 + i for i in range(3)]).any()
    answer = coordinator.outcome(due)
    assert answer is not None
    sums = parties[0].answer(answer, 0, SHAPE)
    assert int(sums[0][0]) == 3 * 10**9 + 3
    assert not any(isinstance(p, bytes) and sums[0].tobytes()[:8] in p for p in contents(coordinator))


def test_the_coordinators_modules_load_nothing_that_unmasks() -> None:
    """In a process of its own; import-linter checks the same on the source."""
    import subprocess

    code = (
        "import sys; import cloister.federated.protocol.coordinator; print([m for m in sys.modules if 'federated' in "
        "m])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert not any(f"federated.{name}" in out for name in ("keys", "masking", "unmasking", "party"))


def pooled(cuts: list[Floats], seed: int | None, masks: Masks = "pairwise", oracle: str = "masked-gaussian") -> Any:
    arrays, parties = (registry().load(registry().spec("Population", name)) for name in ("arrays", "parties"))
    request = Request(
        k=4,
        epsilon=1.0,
        delta=1e-6,
        bounds="-1:1",
        rows=2000,
        seed=3,
        method="fastlloyd",
        components={"counts": oracle, "sums": oracle},
        options={"counts.parties": len(cuts), "sums.parties": len(cuts)},
    )
    noise = None if seed is None else NoiseRng.for_tests(seed)
    return fit(request, parties([arrays(c) for c in cuts], masks), noise=noise)


def central(rows: Floats, seed: int) -> Any:
    arrays = registry().load(registry().spec("Population", "arrays"))
    return fit(
        Request(k=4, method="fastlloyd", epsilon=1.0, delta=1e-6, bounds="-1:1", rows=2000, seed=3),
        arrays(rows),
        noise=NoiseRng.for_tests(seed),
    )


ROWS = np.random.default_rng(1).normal(0, 0.4, (2000, 3))


@pytest.mark.parametrize("masks", MODES)
@pytest.mark.parametrize("cuts", [[1000], [10, 20], [1, 700, 1999]])
def test_pooled_fastlloyd_is_central_fastlloyd_on_the_union_bit_for_bit(masks: Masks, cuts: list[int]) -> None:
    whole, split = central(ROWS, 9), pooled(np.split(ROWS, cuts), 9, masks)
    assert np.array_equal(whole.centers, split.centers)
    assert np.array_equal(whole.weights, split.weights)
    assert split.privacy.trust == "Aggregated"
    assert split.privacy.simulated
