"""Tickets: one number, one plan, one issuer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cloister.collection.service.tickets import Issuer, mint, new_key, read_key, ticket_message, write
from cloister.core.errors import InvalidInput

PLAN, OTHER = "ab" * 32, "cd" * 32


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("issuer") / "issuer.key"
    new_key(path)
    return path


@pytest.fixture(scope="module")
def issuer(key: Path) -> Issuer:
    return Issuer.read(key.with_suffix(".pub"))


def one(key: Path, plan: str, user: int) -> bytes:
    return next(mint(read_key(key), plan, [user]))


def test_a_ticket_is_valid_for_its_number_and_plan_and_for_no_other(key: Path, issuer: Issuer) -> None:
    ticket = one(key, PLAN, 7)
    assert len(ticket) == 64
    assert issuer.valid(PLAN, [(7, ticket), (8, ticket), (7 + 2**32, ticket)]) == [True, False, False]
    assert issuer.valid(OTHER, [(7, ticket)]) == [False]


def test_a_changed_ticket_and_another_issuer_s_are_none(tmp_path: Path, key: Path, issuer: Issuer) -> None:
    ticket = one(key, PLAN, 7)
    new_key(tmp_path / "other.key")
    changed = (ticket[:at] + bytes([ticket[at] ^ 1]) + ticket[at + 1 :] for at in (0, 31, 32, 63))
    for wrong in (*changed, bytes(64), one(tmp_path / "other.key", PLAN, 7)):
        assert issuer.valid(PLAN, [(7, ticket), (7, wrong)]) == [True, False]


def test_what_is_signed_is_what_the_specification_says() -> None:
    assert ticket_message(PLAN, 258) == b"cloister ticket 1\n" + bytes.fromhex(PLAN) + bytes([2, 1, 0, 0, 0, 0, 0, 0])


def test_the_issuer_s_key_is_for_her_alone_and_is_never_replaced(tmp_path: Path) -> None:
    path = tmp_path / "issuer.key"
    assert new_key(path) == tmp_path / "issuer.pub"
    assert path.stat().st_mode & 0o777 == 0o600
    before = path.read_bytes()
    with pytest.raises(InvalidInput, match="already exists"):
        new_key(path)
    path.rename(tmp_path / "kept")
    with pytest.raises(InvalidInput, match=r"issuer\.pub already exists"):
        new_key(path)
    assert (tmp_path / "kept").read_bytes() == before
    assert not path.exists()


def test_a_file_of_tickets_is_whole_or_not_there(tmp_path: Path, key: Path) -> None:
    path = tmp_path / "tickets.bin"
    write(path, mint(read_key(key), PLAN, range(5, 8)))
    assert path.stat().st_mode & 0o777 == 0o600

    def cut() -> Iterator[bytes]:
        yield bytes(64)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write(tmp_path / "cut.bin", cut())
    assert list(tmp_path.iterdir()) == [path]
