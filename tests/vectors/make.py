"""Writes the vectors of the wire format: ``python -m tests.vectors.make``. Always the same bytes.

What they hold: ``docs/reference/format.md``, "Test vectors". Reports come from cloister's own encoder, one user at a
time, with words that are given; which rows, users and words are interesting is worked out from the bundle.
"""

from __future__ import annotations

import base64
import json
import random
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from cloister.collection.client.encode_files import RowTable, collect
from cloister.collection.client.encoder import PlanEncoder
from cloister.collection.plan.bundle import bundle_of
from cloister.collection.plan.plan import CollectionPlan
from cloister.collection.plan.publish import publish, words
from cloister.collection.plan.transcript import Transcript
from cloister.collection.server.aggregator import advance
from cloister.core.randomness import NoiseRng
from tests.asking import asking
from tests.reference_client.words import Words, below, word
from tests.vectors import plans, primitives, wrong

HERE = Path(__file__).parent
LAST = 2**64 - 1
PEOPLE = 600
"""Simulated users who close a round."""

MOST_USERS = 5000
"""Users who are looked through for one with a role."""


def main() -> None:
    for name, text in made():
        (HERE / name).write_text(text, "ascii")


def made() -> Iterator[tuple[str, str]]:
    """Names and texts of all files."""
    for group in plans.GROUPS:
        yield f"{group.name}.json", text(group.name, group.what, bundles=[one for p in group.plans for one in of(p)])
    yield "primitives.json", steps()
    yield "wrong.json", refused()


def steps() -> str:
    return text("primitives", "Single steps.", **primitives.made())


def refused() -> str:
    cases = wrong.made([bundle_of(plan_of(one)) for one in wrong.PLANS])
    return text("wrong", "Bundles that a client refuses.", cases=cases)


def text(name: str, what: str, **facts: Any) -> str:
    return json.dumps({"vectors": 1, "name": name, "what": what, **facts}, indent=0, allow_nan=False) + "\n"


def plan_of(planned: plans.Planned) -> CollectionPlan:
    """A plan that does not depend on cloister's version."""
    unscaled = {} if planned.request["method"] in {"zoom", "described"} else {"scale": "none"}  # these choose units
    made = publish(asking(**unscaled | planned.request), dimension=planned.dimension)
    return attrs.evolve(made, version="vectors")


def of(planned: plans.Planned) -> Iterator[dict[str, Any]]:
    """The bundles of all rounds of a plan, with cases."""
    g, plan = random.Random(planned.name), plan_of(planned)
    transcript = Transcript(plan)
    if not planned.rounds:
        yield cases(transcript, planned, g)
        return
    rows = np.random.default_rng(3).normal(0, 0.1, (PEOPLE, planned.dimension)) + 0.4 * (
        1 - 2 * (np.arange(PEOPLE) % 2)[:, None]
    )
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        plan.write(folder / "plan", words(plan, plan.rounds()))
        np.save(folder / "rows.npy", rows)
        for number in range(plan.length):
            yield cases(transcript, planned, g)
            if number + 1 < plan.length:
                encoder = PlanEncoder(transcript, noise=NoiseRng.for_tests(number))
                table = RowTable(encoder, [str(folder / "rows.npy")])
                collect(encoder, table, folder / "reports", None)
                advance(folder / "plan", folder / "reports")
                transcript = Transcript.read(folder / "plan")


def cases(transcript: Transcript, planned: plans.Planned, g: random.Random) -> dict[str, Any]:
    """A bundle with its cases: for every role one user, rows of every kind in turn."""
    bundle = bundle_of(transcript)
    facts, found = bundle.as_dict(), list[dict[str, Any]]()
    edges = thresholds(facts)
    for number, (user, first) in enumerate(people(facts, g, planned.cases)):
        kinds = rows(facts, g)
        row = kinds[number % len(kinds)]
        given = [*first, *chosen(edges, number, g, planned.plain)]
        secret = Words(given)
        encoder = PlanEncoder(transcript, noise=NoiseRng.replayed(iter(secret.next, None)))
        encoded = encoder.encode(np.array([row]), np.array([user], np.uint64))
        report = encoded.to_bytes().hex() if len(encoded.users) else None
        taken = [f"{w:016x}" for w in given[: secret.taken]]
        found.append({"row": row, "user": str(user), "words": taken, "report": report})
    return {"bundle": bundle.content.decode(), "arrays": base64.b64encode(bundle.arrays).decode(), "cases": found}


def chosen(edges: list[int], number: int, g: random.Random, plain: bool) -> list[int]:
    """Words of case ``number``: an edge first; then, of some cases, edges often; uniform ones else."""
    often = 0.0 if plain else (0.0, 0.5, 0.0, 1.0)[number % 4]
    return [edges[number % len(edges)] if not plain else g.getrandbits(64)] + [
        g.choice(edges) if g.random() < often else g.getrandbits(64) for _ in range(2**16)
    ]


def thresholds(facts: dict[str, Any]) -> list[int]:
    """The words at which coins of a bundle turn, with the words before them."""
    found = {0, LAST, 2**63 - 1, 2**63}
    for question in facts["questions"]:
        for level in question["channel"]["levels"]:
            at = [int(level[name]) for name in ("keep", "flip", "coin") if name in level]
            if "near" in level:
                near, far, inside = int(level["near"]), int(level["far"]), level["inside"]
                at += [near, near * inside, near * inside + far * inside, near * inside + far * (inside + 1)]
            found.update(w for t in at for w in (t - 1, t) if 0 <= w <= LAST)
    return sorted(found)


def rows(facts: dict[str, Any], g: random.Random) -> list[list[float]]:
    """Rows inside, on the border, outside, at minus zero, far outside, tiny."""
    d = facts["dimension"]
    inside = [[round(g.gauss(0, 0.4), 9) for _ in range(d)] for _ in range(3)]  # the same by every logarithm
    return [
        inside[0],
        [1.0] * d,
        [-0.0] * d,
        inside[1],
        [-1.0] + [0.5] * (d - 1),
        [g.choice([1e300, -1e300])] * d,
        [5e-324] * d,
        inside[2],
    ]


def people(facts: dict[str, Any], g: random.Random, most: int) -> list[tuple[int, list[int]]]:
    """Users with the first words that they draw (private numbers), so that every question and level is answered."""
    found, drawings = list[tuple[int, list[int]]](), len(facts["drawings"])
    missing = {(q, level) for q, one in enumerate(facts["questions"]) for level in range(len(one["channel"]["levels"]))}
    some = [0, facts["users"] - 1, *(g.randrange(facts["users"]) for _ in range(MOST_USERS))]

    def numbers() -> list[int]:
        return [g.getrandbits(64) for _ in range(drawings)] if facts["trust"] == "Shuffled" else []

    for user in some:
        first = numbers()
        new = missing & set(_roles(facts, first or [user] * drawings))
        if new or len(found) < min(2, most):
            missing -= new
            found.append((user, first))
        if not missing:
            break
    while len(found) < most:
        found.append((g.choice(some), numbers()))
    return found


def _roles(facts: dict[str, Any], numbers: list[int]) -> Iterator[tuple[int, int]]:
    for drawing, v in zip(facts["drawings"], numbers, strict=True):
        for q in drawing["questions"]:
            share, channel = facts["questions"][q]["share"], facts["questions"][q]["channel"]
            if share is None or share["from"] <= word(share["key"], v) >> 11 < share["to"]:
                key, levels = channel.get("level_key"), range(len(channel["levels"]))
                yield from ((q, level) for level in (levels if key is None else [below(word(key, v), len(levels))]))


if __name__ == "__main__":
    main()
