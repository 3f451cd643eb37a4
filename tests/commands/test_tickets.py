"""Tickets on the command line: as files, and one by one."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from cloister.collection.plan.plan import CollectionPlan
from cloister.collection.service.tickets import Issuer
from tests.collection.service.collectors import plan_in
from tests.in_process import ran


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    plan_in(tmp_path / "plan")
    ran("tickets new-key issuer.key", tmp_path)
    return tmp_path


def valid(folder: Path, user: int, ticket: bytes) -> bool:
    return Issuer.read(folder / "issuer.pub").valid(CollectionPlan.read(folder / "plan").hash, [(user, ticket)])[0]


MINT = "tickets mint plan --key issuer.key --users"


def test_a_file_holds_the_tickets_of_a_range_in_order(folder: Path) -> None:
    assert ran(f"{MINT} 10:15 --out some.bin", folder).stdout.startswith("5 tickets under plan ")
    content = (folder / "some.bin").read_bytes()
    assert len(content) == 5 * 64
    assert all(valid(folder, 10 + i, content[64 * i : 64 * i + 64]) for i in range(5))


def test_one_ticket_is_a_line_for_one_device_and_the_same_number_gets_the_same_again(folder: Path) -> None:
    number, ticket = ran(f"{MINT} 17", folder).stdout.split()
    assert number == "17"
    assert valid(folder, 17, base64.b64decode(ticket, validate=True))
    assert ran(f"{MINT} 16:18", folder).stdout.splitlines()[1].split() == [number, ticket]
