"""Tickets on the command line: as files, and one by one."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from cloister.collection.plan.plan import CollectionPlan
from cloister.collection.service.tickets import Issuer
from tests.collection.service.collectors import plan_in
from tests.in_process import cloister


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    plan_in(tmp_path / "plan")
    assert cloister("tickets", "new-key", "issuer.key", folder=tmp_path).returncode == 0
    return tmp_path


def valid(folder: Path, user: int, ticket: bytes) -> bool:
    return Issuer.read(folder / "issuer.pub").valid(CollectionPlan.read(folder / "plan").hash, [(user, ticket)])[0]


def test_a_file_holds_the_tickets_of_a_range_in_order(folder: Path) -> None:
    done = cloister(
        "tickets", "mint", "plan", "--key", "issuer.key", "--users", "10:15", "--out", "some.bin", folder=folder
    )
    assert done.returncode == 0
    assert done.stdout.startswith("5 tickets under plan ")
    content = (folder / "some.bin").read_bytes()
    assert len(content) == 5 * 64
    assert all(valid(folder, 10 + i, content[64 * i : 64 * i + 64]) for i in range(5))


def test_one_ticket_is_a_line_for_one_device(folder: Path) -> None:
    done = cloister("tickets", "mint", "plan", "--key", "issuer.key", "--users", "17", folder=folder)
    number, ticket = done.stdout.split()
    assert number == "17"
    assert valid(folder, 17, base64.b64decode(ticket, validate=True))


def test_the_same_number_gets_the_same_ticket_again(folder: Path) -> None:
    words = ("tickets", "mint", "plan", "--key", "issuer.key", "--users", "0:3")
    assert cloister(*words, folder=folder).stdout == cloister(*words, folder=folder).stdout
