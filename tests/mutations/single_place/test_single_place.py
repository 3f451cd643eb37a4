"""The generator of single-place faults: what it changes, and that few of them survive the tests."""

from __future__ import annotations

import pytest

from tests.mutations.forked import ROOT
from tests.mutations.single_place.faults import faults
from tests.mutations.single_place.survivors import (
    KEY,
    MAP,
    ROOMS,
    all_faults,
    equivalent,
    mirror,
    report,
    sample,
    tried,
)

SOURCE = '''"""A module: 1 + 1."""

MOST: int = 7


def least(rows: list[int], *, fast: bool = True) -> float:
    """Return 2 - 1."""
    if len(rows) < MOST and fast:  # Ünïcode before the place
        raise ValueError(f"{len(rows) + 1} rows")
    rows.sort()
    return -min(rows) if any(rows) else pow(3, len(rows)) + 0.5
'''


def test_each_fault_changes_one_place_and_neither_texts_nor_types() -> None:
    found = {(fault.where, fault.before, fault.after) for fault in faults("some.py", SOURCE)}
    assert found == {
        ("", "7", "(8)"),
        ("least", "True", "(False)"),
        ("least", "len(rows) < MOST and fast", "(len(rows) < MOST or fast)"),
        ("least", "len(rows) < MOST", "(len(rows) <= MOST)"),
        ("least", "raise ValueError(f'{len(rows) + 1} rows')", "pass"),
        ("least", "rows.sort()", "pass"),
        (
            "least",
            "-min(rows) if any(rows) else pow(3, len(rows)) + 0.5",
            "(pow(3, len(rows)) + 0.5 if any(rows) else -min(rows))",
        ),
        ("least", "-min(rows)", "(min(rows))"),
        ("least", "min(rows)", "(max(rows))"),
        ("least", "any(rows)", "(all(rows))"),
        ("least", "pow(3, len(rows)) + 0.5", "(pow(3, len(rows)) - 0.5)"),
        ("least", "pow(3, len(rows))", "(pow(len(rows), 3))"),
        ("least", "3", "(4)"),
        ("least", "0.5", "(1.0)"),
    }


def test_a_planted_fault_compiles_and_leaves_all_else_as_it_was() -> None:
    for fault in faults("some.py", SOURCE):
        planted = fault.planted(SOURCE)
        compile(planted, "some.py", "exec")
        assert planted.replace(fault.after, "", 1) != SOURCE
        assert len(planted.splitlines()) == len(SOURCE.splitlines())
        assert sum(one != two for one, two in zip(planted.splitlines(), SOURCE.splitlines(), strict=True)) == 1


def test_a_sample_follows_from_its_seed_and_takes_as_many_of_each_room() -> None:
    one, again, other = sample(13, 1), sample(13, 1), sample(13, 2)
    assert one == again != other
    assert list(one) == list(ROOMS)
    assert sorted(map(len, one.values())) == [2, 2, 2, 2, 2, 3]
    assert not any("/ledger/" in fault.file for fault in one["accounting"])


def test_each_equivalent_fault_is_still_generated_explained_and_left_out() -> None:
    known = set[tuple[str, ...]]()
    for file in {entry["file"] for entry in equivalent()}:
        known |= {fault.key for fault in faults(file, (ROOT / file).read_text("utf-8"))}
    left = {fault.key for room in ROOMS for fault in all_faults(room)}
    for entry in equivalent():
        assert set(entry) == {*KEY, "why"}
        key = tuple(entry[name] for name in KEY)
        assert key in known - left, entry
        assert len(entry["why"]) > 20, entry


def test_the_mirror_of_a_module_is_named_after_it() -> None:
    assert mirror("src/cloister/accounting/composition.py") == ["tests/accounting/test_composition.py"]


@pytest.mark.mutations
def test_few_of_a_sample_of_faults_survive_in_each_room() -> None:
    """150 faults; other ones by ``python -m tests.mutations.single_place.survivors --seed 2``."""
    verdicts = tried(sample(150, 1), MAP, 2)
    left = [verdict for those in verdicts.values() for verdict in those if verdict.seen is None]
    print(report(verdicts))
    assert len(left) <= 0.05 * 150, report(verdicts)
