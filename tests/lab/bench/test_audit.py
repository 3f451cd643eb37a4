"""The audit: planted faults are found, sound entrants pass, and the attack's bound holds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cloister.core.errors import UnknownName
from cloister.core.types import Floats
from cloister.lab.bench.audit.attack import ALARM, attacked_epsilon, lower_bound
from cloister.lab.bench.audit.auditing import NAMES, Audit, audit
from cloister.lab.bench.audit.verdicts import Verdict
from cloister.lab.bench.entrants import Entrant, entrant_of
from cloister.lab.bench.installing import install
from tests.alarms import Alarm
from tests.lab.bench.planted import planted
from tests.lab.bench.small import FIRST_ROWS, small

FEW = [name for name in NAMES if name != "attack"]
"""The checks of a few runs."""


def audited(entrant: Entrant | Path, *only: str, releases: int = 400) -> Audit:
    """An audit whose seeds are the same on every machine."""
    found = entrant if isinstance(entrant, Entrant) else entrant_of(str(entrant))
    return audit(found, install(found), only=only, releases=releases, workers=1)


def verdict(found: Audit, check: str) -> Verdict:
    (one,) = (v for v in found.verdicts if v.check == check)
    return one


def test_the_template_passes_all_checks_and_the_badge_says_so(tmp_path: Path) -> None:
    found = audited(planted(tmp_path, "sound"), *FEW)
    assert [v.state for v in found.verdicts] == ["passed"] * len(FEW), found.verdicts
    assert (found.badge, found.faults) == ("passed 5 of 5 checks", [])
    assert verdict(found, "budget").figures == {"epsilon": 1.0, "delta": 0.0}


def test_bounds_that_are_read_off_the_rows_are_found(tmp_path: Path) -> None:
    found = audited(planted(tmp_path, "reads-bounds"), "outside", "attack")
    assert found.faults == ["outside", "attack"]
    assert "a centre has the coordinate" in verdict(found, "outside").reason


@pytest.mark.parametrize("fault", ["fixes-noise", "follows-seed"])
def test_noise_that_is_fixed_by_a_seed_is_found(fault: str, tmp_path: Path) -> None:
    found = audited(planted(tmp_path, fault), "equal seeds")
    assert found.badge == "failed: equal seeds"
    assert "the same centres: its noise is fixed" in found.verdicts[0].reason


def test_noise_that_follows_the_seed_is_named_where_the_entrant_says_so(tmp_path: Path) -> None:
    folder = planted(tmp_path, "follows-seed")
    with (folder / "entry.toml").open("a") as file:
        file.write('seed = "test-only"\n')
    found = audited(folder, "equal seeds")
    assert found.faults == []
    assert "nobody is protected" in found.verdicts[0].reason


def test_a_budget_that_is_used_twice_is_found_in_its_own_statement(tmp_path: Path) -> None:
    found = audited(planted(tmp_path, "spends-twice"), "budget")
    assert found.faults == ["budget"]
    assert "add up to epsilon = 2, delta = 0; given were 1, 0" in found.verdicts[0].reason


@pytest.mark.thorough
def test_a_budget_that_is_used_twice_is_found_by_the_attack_where_the_statement_hides_it(tmp_path: Path) -> None:
    """Its noise follows the seed, and so does the outcome."""
    found = audited(planted(tmp_path, "spends-twice-quietly"), "budget", "attack", releases=4000)
    assert found.faults == ["attack"], found.verdicts
    assert verdict(found, "attack").figures["epsilon"] > 3


@pytest.mark.thorough
def test_the_attack_blames_no_sound_entrant_and_says_that_it_would_see_twice_the_budget(tmp_path: Path) -> None:
    found = audited(planted(tmp_path, "sound-seeded"), "attack", releases=4000)
    assert found.faults == []
    assert verdict(found, "attack").figures["sees"] == 2
    assert "the attack would see 2 times the budget" in found.verdicts[0].reason


def test_a_public_start_that_follows_the_seed_is_not_blamed(tmp_path: Path) -> None:
    """It reads no row, so that the seed alone could tell two tables apart."""
    loop = "for (i = 0; i < n * (k + 1); i++) print (i % (k + 1) < k ? line : empty)"
    program = (
        'awk -v n="$BENCH_REPEATS" -v k="$BENCH_K" -v d="$BENCH_COLUMNS" -v x="0.$BENCH_SEED" '
        f'\'BEGIN {{line = x; for (c = 1; c < d; c++) line = line "," x; {loop}}}\' > "$BENCH_OUT"\n'
    )
    found = audited(small(tmp_path, program, repeats=True, seed="public"), "attack")
    assert found.faults == [], found.verdicts


def test_a_centre_that_is_a_row_is_found(tmp_path: Path) -> None:
    found = audited(small(tmp_path), "empty cluster")
    assert found.faults == ["empty cluster"]
    assert "5 of five centres equal a row" in found.verdicts[0].reason


@pytest.mark.parametrize(
    ("program", "check", "said"),
    [
        ('test "$BENCH_K" -lt 5 || { echo why; exit 4; }\n', "empty cluster", "exit code 4: why"),
        ('test "$(wc -l < "$BENCH_ROWS")" -eq 60 || exit 4\n', "neighbours", "that tells their number"),
        ('grep -q 1000000 "$BENCH_ROWS" && exit 4\n', "outside", "it fails where a row lies outside"),
        ("exit 4\n", "neighbours", "it fails on 60 rows"),
    ],
)
def test_an_end_that_depends_on_the_rows_is_found(tmp_path: Path, program: str, check: str, said: str) -> None:
    found = audited(small(tmp_path, program + FIRST_ROWS), check)
    assert found.faults == [check]
    assert said in found.verdicts[0].reason


def test_one_row_that_makes_it_fail_is_found_by_the_attack(tmp_path: Path) -> None:
    fails = 'grep -q "^1.0,1.0" "$BENCH_ROWS" && exit 4\nfor i in $(seq "$BENCH_K"); do echo 0,0; done > "$BENCH_OUT"\n'
    found = audited(small(tmp_path, fails), "attack", releases=60)
    assert found.faults == ["attack"]
    assert "it fails on one of two neighbours" in found.verdicts[0].reason


def test_a_program_that_states_no_guarantee_is_not_blamed_for_having_none(tmp_path: Path) -> None:
    found = audited(small(tmp_path, guarantee="none", trust="none", relation="none"))
    states = {v.check: v.state for v in found.verdicts}
    assert states.pop("empty cluster") == states.pop("neighbours") == "passed"
    assert set(states.values()) == {"not applicable"}
    assert found.badge == "not private; passed 2 of 6 checks"


def test_an_entrant_without_a_statement_is_told_apart_from_one_whose_statement_is_wrong(tmp_path: Path) -> None:
    assert audited(small(tmp_path), "budget").verdicts[0].state == "not applicable"
    wrong = small(tmp_path, FIRST_ROWS + 'echo "[1]" > "$BENCH_STATEMENT"\n', "wrong")
    assert audited(wrong, "budget").faults == ["budget"]


def test_every_verdict_has_the_command_that_repeats_it(tmp_path: Path) -> None:
    entrant = small(tmp_path, guarantee="none", trust="none", relation="none")
    commands = [v.command for v in audited(entrant, "equal seeds", "attack", releases=60).verdicts]
    assert commands == [
        f"cloister bench audit {entrant.folder} --only 'equal seeds'",
        f"cloister bench audit {entrant.folder} --only attack --releases 60",
    ]
    with pytest.raises(UnknownName, match="did you mean equal seeds"):
        audited(entrant, "equal seed")


def released(shift: float, scale: float, count: int, rng: np.random.Generator) -> Floats:
    """Releases (count, 1, 2) of one centre, with Laplace noise on both coordinates."""
    return shift + rng.laplace(0, scale, (count, 1, 2))


@pytest.mark.alarm(1e-6)
def test_the_bound_is_not_above_the_truth_and_not_far_below(alarm: Alarm) -> None:
    """Two Laplace answers, each of 1.5: the pair is exactly 3, and sets of one coordinate, or of both, show most of it.

    Seeded: of 30 bounds, each of which may be above the truth with probability ALARM / 4.
    """
    rng = np.random.default_rng(3)
    bounds = [
        lower_bound(released(1.0, 1 / 1.5, 4000, rng), released(0.0, 1 / 1.5, 4000, rng), 0.0).epsilon
        for _ in range(30)
    ]
    assert max(bounds) <= 3
    assert min(bounds) > 1.8
    wrong = [
        lower_bound(released(1.0, 1 / 3.0, 4000, rng), released(0.0, 1 / 3.0, 4000, rng), 0.0).epsilon
        for _ in range(10)
    ]
    assert min(wrong) > 3  # twice the budget is seen every time
    assert ALARM / 4 * 30 < 0.01


def test_equal_tables_show_nothing() -> None:
    rng = np.random.default_rng(4)
    assert lower_bound(released(0.0, 1.0, 4000, rng), released(0.0, 1.0, 4000, rng), 0.0).epsilon < 0.3


def test_a_delta_explains_a_rare_event() -> None:
    rng = np.random.default_rng(5)
    fails = released(0.0, 1.0, 4000, rng)
    fails[rng.uniform(size=4000) < 0.3] = 50.0
    other = released(0.0, 1.0, 4000, rng)
    assert lower_bound(fails, other, 0.0).epsilon > 2
    assert lower_bound(fails, other, 0.3).epsilon < 0.3


def test_few_releases_attack_a_small_budget() -> None:
    assert [attacked_epsilon(n) for n in (60, 400, 4000)] == [0.3, 1.0, 3.0]
