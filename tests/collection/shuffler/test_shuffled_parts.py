"""A shuffle on an engine, and of bytes: everybody's messages once, every order as likely, whoever dies."""

from __future__ import annotations

import itertools
import os
import signal
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import chi2

from cloister.collection.intake import parts
from cloister.collection.plan.plan import CollectionPlan
from cloister.collection.shuffler.release import Permute, Scattered
from cloister.collection.shuffler.shuffler import shuffle
from cloister.core.randomness import NoiseRng
from cloister.rows.workers.engine import Processes
from tests.alarms import Alarm
from tests.collection.server.collected import Apart
from tests.collection.shuffled_plans import FEW as N, multiset, released, sent


def contest(plan: CollectionPlan, folder: Path, seed: int) -> Path:
    """Files with senders who stand in several, twice in one, and in a row."""
    rng = np.random.default_rng(seed)
    folder.mkdir()
    everybody = sent(plan, 9)
    (folder / "0.reports").write_bytes(everybody.form.batch(everybody.users[:180], everybody.answers[:180]))
    for i in range(1, 4):
        some = sent(plan, i, users=rng.choice(N, int(rng.integers(20, N)), replace=False))
        users, answers = some.users.copy(), some.answers.copy()
        users[::40] = N + 1
        answers[::7, 0] = 77  # no such question
        twice = np.sort(rng.integers(0, len(users), len(users)))
        data = [some.form.batch(users[s], answers[s]) for s in np.array_split(twice, 9)]
        (folder / f"{i}.reports").write_bytes(b"".join(data) + data[0][:5])
    return folder


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.thorough) for seed in (1, 2))])
def test_parts_of_any_size_release_what_one_process_releases(
    seed: int, plan: CollectionPlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = contest(plan, tmp_path / "reports", seed)
    one = shuffle(plan, folder, tmp_path / "one")
    assert one.tally.refused["duplicate"] > 0
    expected = multiset(released(tmp_path / "one", plan))
    for size in (1, 2**26):
        monkeypatch.setattr(parts, "PART", size)
        out = tmp_path / f"out-{size}"
        done = shuffle(plan, folder, out, engine=Apart())
        assert (done.people, done.messages, done.tally.refused) == (one.people, one.messages, one.tally.refused)
        assert done.tally.unfinished == one.tally.unfinished > 0
        assert multiset(released(out, plan)) == expected
        assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


@pytest.mark.alarm(1e-7)
@pytest.mark.thorough
def test_every_order_of_what_three_workers_scattered_is_equally_likely(tmp_path: Path, alarm: Alarm) -> None:
    """Chi-squared over the 24 orders of four records, of which two workers scattered one and a third two. One
    seed for all workers would bind the records' files to one another: of the first three records each order would be
    off by a third and more, which 1,200 runs see for certain."""
    found, runs = Counter[tuple[int, ...]](), 1200
    for seed in range(runs):
        rng, folders, at = NoiseRng.for_tests(seed), list[Path](), 0
        for worker, count in enumerate((1, 2, 1)):
            place = tmp_path / f"{seed}-{worker}"
            place.mkdir()
            scattered = Scattered(place, 1, rng.child("part", worker), 2)
            scattered.add(np.arange(at, at + count, dtype=np.uint8)[:, None])
            scattered.close()
            folders.append(place)
            at += count
        permute = Permute(tuple(folders), tmp_path, 1, rng)
        order = [np.fromfile(permute(number)[1], np.uint8).tolist() for number in range(2)]
        found[tuple(itertools.chain.from_iterable(order))] += 1
    assert len(found) == 24
    statistic = sum((found[o] - runs / 24) ** 2 / (runs / 24) for o in itertools.permutations(range(4)))
    assert statistic < chi2.isf(alarm.each(), 23)


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore::cloister.core.errors.WorkerWarning")
def test_a_worker_killed_changes_nothing(plan: CollectionPlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "PART", 2000)
    folder, engine, killed = contest(plan, tmp_path / "reports", 1), Processes(2), list[int]()
    expected = shuffle(plan, folder, tmp_path / "one")

    def kill(_: int) -> None:
        if not killed:
            killed.extend(engine.pids)
            os.kill(killed[0], signal.SIGKILL)

    done = shuffle(plan, folder, tmp_path / "two", engine=engine, progress=kill)
    engine.close()
    assert killed
    assert (done.people, done.messages) == (expected.people, expected.messages)
    assert multiset(released(tmp_path / "two", plan)) == multiset(released(tmp_path / "one", plan))
