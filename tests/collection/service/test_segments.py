"""What a collector has on the disk, and what it knows of it after whatever happened."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import numpy as np
import pytest

from cloister.collection.service.segments import LOCK, Segments, locked_folder
from cloister.collection.wire.batches import BatchForm
from cloister.core.errors import Damaged, InvalidInput, Refused
from cloister.core.types import Ids
from tests.collection.service.collectors import batch, on_disk

FORM = BatchForm("ab" * 32, 1, 2)


def ids(*users: int) -> Ids:
    return np.array(users, np.uint64)


def answers(users: Ids) -> np.ndarray:
    return np.stack([users, users], axis=1).astype(np.uint8)


def put(segments: Segments, *users: int) -> None:
    segments.append(ids(*users), answers(ids(*users)))


def opened(folder: Path, **settings: int) -> Segments:
    return Segments(folder, FORM, 1000, **settings)


def files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.reports"))


def names(folder: Path) -> list[str]:
    return [path.name for path in files(folder)]


def test_what_was_appended_is_in_a_file_and_is_known_to_the_next_process(tmp_path: Path) -> None:
    """Which writes into a file of its own."""
    first = opened(tmp_path)
    put(first, 3, 5)
    put(first, 4)
    (path,) = files(tmp_path)
    content = path.read_bytes()
    assert content == FORM.batch(ids(3, 5), answers(ids(3, 5))) + FORM.batch(ids(4), answers(ids(4)))
    again = opened(tmp_path)
    assert again.seen.count == 3
    assert again.seen.has(ids(3, 4, 5, 6)).tolist() == [True, True, True, False]
    put(again, 7)
    assert names(tmp_path) == ["round-001-000001.reports", "round-001-000002.reports"]
    assert (path.read_bytes(), on_disk(tmp_path, FORM).tolist()) == (content, [3, 5, 4, 7])


def test_a_torn_batch_is_cut_off_at_the_start_wherever_it_was_torn(tmp_path: Path) -> None:
    """And zeros, which a power cut leaves at the end."""
    torn = [batch(FORM, 7)[:size] for size in range(1, len(batch(FORM, 7)))]
    for number, rest in enumerate([*torn, bytes(4096)]):
        folder = tmp_path / str(number)
        folder.mkdir()
        put(opened(folder), 1, 2)
        (path,) = files(folder)
        whole = path.read_bytes()
        path.write_bytes(whole + rest)
        again = opened(folder)
        assert (path.read_bytes(), again.seen.count) == (whole, 2)
        put(again, 7)
        assert sorted(on_disk(folder, FORM).tolist()) == [1, 2, 7]


def test_a_damaged_length_is_no_torn_end_and_nothing_behind_it_is_cut_off(tmp_path: Path) -> None:
    """A bit of a batch's count flips on the disk: what follows was acknowledged."""
    segments = opened(tmp_path)
    for user in range(5):
        put(segments, user)
    (path,) = files(tmp_path)
    whole = path.read_bytes()
    for bit in range(24):
        content = bytearray(whole)
        content[len(batch(FORM, 0)) + 10 + bit // 8] ^= 1 << bit % 8
        path.write_bytes(content)
        with pytest.raises(Damaged, match="cannot be read from byte"):
            opened(tmp_path)
        assert path.read_bytes() == content


def test_an_end_that_is_longer_than_any_batch_is_neither_read_into_memory_nor_cut_off(tmp_path: Path) -> None:
    """A file of 8 GiB, nearly all of it a hole, had a collector take as much memory, and then cut the file."""
    put(opened(tmp_path), 1)
    (path,) = files(tmp_path)
    os.truncate(path, 2**33)
    with pytest.raises(Damaged, match="cannot be read from byte"):
        opened(tmp_path)
    assert path.stat().st_size == 2**33


def test_files_of_another_plan_are_refused_and_left_alone(tmp_path: Path) -> None:
    """Those of other rounds and names are not read."""
    for name in ("round-002-000001.reports", "notes.txt", "round-1-1.reports", "more.reports"):
        (tmp_path / name).write_bytes(b"anything")
    assert opened(tmp_path).seen.count == 0
    path, other = tmp_path / "round-001-000001.reports", batch(BatchForm("cd" * 32, 1, 2), 1)
    path.write_bytes(other)
    with pytest.raises(Damaged, match=r"byte 0 on \(another plan\): move it out"):
        opened(tmp_path)
    assert path.read_bytes() == other


def test_files_are_left_for_new_ones_at_a_size(tmp_path: Path) -> None:
    segments = opened(tmp_path, size=3 * len(batch(FORM, 1)))
    for user in range(8):
        put(segments, user)
    assert [path.stat().st_size // len(batch(FORM, 1)) for path in files(tmp_path)] == [3, 3, 2]
    assert on_disk(tmp_path, FORM).tolist() == list(range(8))


def test_a_finished_file_carries_no_time(tmp_path: Path) -> None:
    """One that a killed process left loses its own at the next start."""
    segments = opened(tmp_path, size=1)
    put(segments, 1)
    put(segments, 2)
    first, second = files(tmp_path)
    assert (first.stat().st_mtime, first.stat().st_atime) == (0, 0)
    segments.close()
    assert second.stat().st_mtime == 0
    put(opened(tmp_path), 3)
    assert files(tmp_path)[-1].stat().st_mtime != 0
    opened(tmp_path)
    assert files(tmp_path)[-1].stat().st_mtime == 0


def test_everything_is_for_its_owner_alone(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "out"
    with locked_folder(folder, private=True):
        put(opened(folder), 1)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}


def test_a_second_collector_is_refused_until_the_first_has_ended(tmp_path: Path) -> None:
    with locked_folder(tmp_path, private=False):  # noqa: SIM117
        with pytest.raises(Refused, match="another collector uses"), locked_folder(tmp_path, private=False):
            pass
    with locked_folder(tmp_path, private=False):
        pass


def test_messages_with_their_senders_are_not_put_where_others_read(tmp_path: Path) -> None:
    """Neither where everybody may do anything, nor where a group may."""
    for mode in (0o755, 0o740, 0o720, 0o710, 0o704, 0o702, 0o701):
        tmp_path.chmod(mode)
        with (
            pytest.raises(Refused, match="messages name their senders: chmod 700"),
            locked_folder(tmp_path, private=True),
        ):
            pass


class Full:
    """A disk that takes so many bytes more, in pieces; what does not fit is written in part, as disks do."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, room: int) -> None:
        self.room, self._write, self._fsync, self.failing = room, os.write, os.fsync, False
        monkeypatch.setattr(os, "write", self.write)
        monkeypatch.setattr(os, "fsync", self.fsync)

    def write(self, descriptor: int, data: bytes) -> int:
        if not self.room:
            raise OSError(errno.ENOSPC, "No space left on device")
        written = self._write(descriptor, bytes(data[: min(self.room, 10)]))
        self.room -= written
        return written

    def fsync(self, descriptor: int) -> None:
        if self.failing:
            raise OSError(errno.EIO, "Input/output error")
        self._fsync(descriptor)


@pytest.mark.parametrize("room", [0, 1, 9, 10, 11, 17, 18, 19, 20, len(batch(FORM, 2)) - 1])
def test_a_write_that_fails_leaves_nothing_and_is_done_again_when_there_is_room(
    tmp_path: Path, room: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    segments = opened(tmp_path)
    put(segments, 1)
    disk = Full(monkeypatch, room)
    with pytest.raises(OSError, match="No space"):
        put(segments, 2)
    assert on_disk(tmp_path, FORM).tolist() == [1]
    assert segments.seen.has(ids(1, 2)).tolist() == [True, False]
    disk.room = 10**6
    put(segments, 2)
    assert on_disk(tmp_path, FORM).tolist() == [1, 2]
    assert len(files(tmp_path)) == 2  # the file that failed is not written again


@pytest.mark.parametrize("before", [[1], []], ids=["a file", "no file yet"])
def test_a_sync_that_fails_acknowledges_nothing_and_leaves_the_file(
    before: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    segments = opened(tmp_path)
    for user in before:
        put(segments, user)
    disk = Full(monkeypatch, 10**6)
    disk.failing = True
    for _ in range(3):
        with pytest.raises(OSError, match="Input/output"):
            put(segments, 2)
        with pytest.raises(OSError, match="Input/output"):
            segments.try_again()
    assert not segments.seen.has(ids(2)).any()
    disk.failing = False
    segments.try_again()
    put(segments, 2)
    assert on_disk(tmp_path, FORM).tolist() == [*before, 2]
    segments.close()
    assert len(files(tmp_path)) == len(before) + 1


def test_a_file_that_was_removed_meanwhile_acknowledges_nothing_and_a_new_one_is_begun(tmp_path: Path) -> None:
    segments = opened(tmp_path)
    put(segments, 1)
    (tmp_path / "round-001-000001.reports").unlink()
    with pytest.raises(OSError, match=r"round-001-000001\.reports was removed"):
        put(segments, 2)
    assert not segments.seen.has(ids(2)).any()
    put(segments, 2)
    assert on_disk(tmp_path, FORM).tolist() == [2]


def test_a_taken_name_costs_no_report_and_the_next_free_number_is_used(tmp_path: Path) -> None:
    """Somebody copied files here while the collector ran: they are left as they are."""
    segments = opened(tmp_path, size=1)
    put(segments, 1)
    for number in (2, 3):
        (tmp_path / f"round-001-{number:06}.reports").write_bytes(b"another's")
    os.mkfifo(tmp_path / "round-001-000004.reports")
    put(segments, 2)
    put(segments, 3)
    assert names(tmp_path)[-2:] == ["round-001-000005.reports", "round-001-000006.reports"]
    assert (tmp_path / "round-001-000002.reports").read_bytes() == b"another's"
    assert segments.seen.count == 3


def test_no_pipe_of_a_name_of_ours_holds_up_a_start_or_a_disk_that_works_again(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".probe")
    segments = opened(tmp_path)
    segments.try_again()
    put(segments, 1)
    os.mkfifo(tmp_path / "round-001-000007.reports")
    with pytest.raises(Damaged, match=r"round-001-000007\.reports is not a regular file: move it out"):
        opened(tmp_path)
    os.mkfifo(tmp_path / LOCK)
    with pytest.raises(InvalidInput, match="cannot write"), locked_folder(tmp_path, private=False):
        pass


def synced(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Inodes of what is synced from here on, in order."""
    found, fsync = list[int](), os.fsync

    def noted(descriptor: int) -> None:
        found.append(os.fstat(descriptor).st_ino)
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    return found


def test_a_report_that_is_called_known_was_synced_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(opened(tmp_path), 1)
    found = synced(monkeypatch)
    opened(tmp_path)
    assert {path.stat().st_ino for path in files(tmp_path)} <= set(found)


def test_a_new_file_s_name_is_on_the_disk_before_a_report_in_it_is_acknowledged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A power cut loses files whose folder was not synced, however often they were themselves."""
    segments, found = opened(tmp_path, size=1), synced(monkeypatch)
    for user in (1, 2):  # the second one begins a file of its own
        found.clear()
        put(segments, user)
        assert found == [tmp_path.stat().st_ino, files(tmp_path)[-1].stat().st_ino]


def test_what_a_failed_write_left_is_cut_off_on_the_disk_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody else would sync that file again, and with the power the torn batch would come back."""
    segments = opened(tmp_path)
    put(segments, 1)
    (path,) = files(tmp_path)
    with monkeypatch.context() as broken:
        Full(broken, 9)
        broken.setattr(segments, "repair", lambda: None)
        with pytest.raises(OSError, match="No space"):
            put(segments, 2)
    found = synced(monkeypatch)
    segments.repair()
    assert found == [path.stat().st_ino]
