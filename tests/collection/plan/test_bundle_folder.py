"""Bundles of every round, made with it or apart, and what a crash leaves of them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from cloister.collection.plan import bundle
from cloister.collection.plan.bundle import Bundle
from cloister.collection.plan.canonical_json import laid_out, with_hash
from cloister.collection.plan.transcript import Transcript
from cloister.core.errors import Damaged, InvalidInput
from tests.collection.rounds_fakes import planned, up_to
from tests.in_process import cloister


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plan's folder with one of three rounds closed."""
    return up_to(tmp_path_factory.mktemp("closed"), planned(), 1) / "plan"


@pytest.fixture
def folder(closed: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(closed, tmp_path / "plan"))


def bundles_in(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("bundle-*")}


def test_bundles_that_a_crash_left_out_are_made_and_are_the_same_beside_the_plan_or_apart(
    folder: Path, tmp_path: Path
) -> None:
    whole = bundles_in(folder)
    assert len(whole) == 4
    for missing in ([], ["bundle-2.json"], ["bundle-2.bin", "bundle-2.json"], list(whole)):
        for name in missing:
            (folder / name).unlink()
        bundle.make(folder)
        assert bundles_in(folder) == whole
    assert not list(folder.glob("*.tmp"))
    for name in whole:
        (folder / name).unlink()
    bundle.make(folder, tmp_path / "apart" / "deep")
    assert bundles_in(tmp_path / "apart" / "deep") == whole
    assert not bundles_in(folder)
    assert [one.round for one in bundle.check(folder, tmp_path / "apart" / "deep")] == [1, 2]


def test_a_file_that_differs_is_never_written_over(folder: Path) -> None:
    (folder / "bundle-2.json").unlink()
    (folder / "bundle-1.bin").write_bytes(b"")
    with pytest.raises(Damaged, match=r"bundle-1\.bin is not what this plan says: nothing was made"):
        bundle.make(folder)
    assert (folder / "bundle-1.bin").read_bytes() == b""
    assert not (folder / "bundle-2.json").exists()


def test_other_answers_of_a_closed_round_have_another_bundle(folder: Path) -> None:
    """Of a publisher who shows people different answers."""
    transcript = Transcript.read(folder)
    facts = transcript.closed[0]._facts() | {"reports": {**transcript.closed[0].reports, "accepted": 1}}
    (folder / "round-1.json").write_text(laid_out(with_hash(facts)) + "\n")
    with pytest.raises(Damaged, match="in: head"):
        bundle.check(folder)


def test_a_full_disk_leaves_no_half_of_a_bundle(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in bundles_in(folder):
        (folder / name).unlink()
    before = sorted(folder.iterdir())

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(InvalidInput, match="No space left"):
        bundle.make(folder)
    assert sorted(folder.iterdir()) == before


def test_the_command_makes_and_checks(folder: Path) -> None:
    whole = bundles_in(folder)
    (folder / "bundle-2.json").unlink()
    failed = cloister("bundle", str(folder), "--check")
    assert (failed.returncode, "cannot read the bundle" in failed.stderr) == (2, True)
    made = cloister("bundle", str(folder), "--json")
    assert Bundle.read(folder, 2).sha256 in made.stdout
    assert bundles_in(folder) == whole
    said = cloister("bundle", str(folder), "--check")
    assert (said.returncode, said.stdout.count("is what the plan says")) == (0, 2)
