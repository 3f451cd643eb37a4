"""Entrants with planted faults: the template of ``cloister bench new``, which is sound, with a line changed.

The noise of the one that spends twice follows the seed, so that the attack's outcome is the same every time.
"""

from __future__ import annotations

from pathlib import Path

from cloister.lab.bench.starting import write_template

SEEDED = ("noise = random.SystemRandom()", "noise = random.Random(int(given['BENCH_SEED']) + 1)")

FAULTS: dict[str, tuple[tuple[str, str], ...]] = {
    "sound": (),
    "sound-seeded": (SEEDED,),
    "spends-twice": (SEEDED, ("half = epsilon / 2", "half = epsilon")),
    "spends-twice-quietly": (
        SEEDED,
        ("half = epsilon / 2", "half = epsilon"),
        ('"epsilon": half', '"epsilon": half / 2'),
    ),
    "reads-bounds": (("def laplace", "bounds = [[min(c), max(c)] for c in zip(*rows)]\n\n\ndef laplace"),),
    "fixes-noise": (("noise = random.SystemRandom()", "noise = random.Random(7)"),),
    "follows-seed": (SEEDED,),
    "quotes-a-row": (
        (
            "starts = [[public.uniform(low, high) for low, high in bounds] for _ in range(k)]",
            "starts = [list(row) for row in rows[:k]]\n    return starts",
        ),
    ),
}
"""Texts of the template and what replaces them, by the entrant's name."""


def planted(folder: Path, name: str) -> Path:
    """Write an entrant with a fault, and return its folder."""
    place = folder / name
    write_template(place)
    run = place / "run"
    code = run.read_text()
    for old, new in FAULTS[name]:
        assert code.count(old) >= 1, old
        code = code.replace(old, new)
    run.write_text(code)
    return place
