"""What a collector says to people: every event in words, and nothing about who sent what. Tickets, too."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from cloister.collection.plan.plan import CollectionPlan
from cloister.collection.service.tickets import Issuer
from cloister.commands.serve import _in_words, _told
from tests.collection.service.collectors import plan_in
from tests.in_process import ran


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (
            {"event": "listening", "address": "http://127.0.0.1:1", "plan": "ab" * 32, "reports": 1234},
            "collecting for plan abababababababab on http://127.0.0.1:1; 1,234 reports are here already",
        ),
        ({"event": "disk", "why": "full"}, "nothing can be written (full): reports are sent back until it can"),
        ({"event": "end"}, ""),
    ],
)
def test_events_in_words(event: dict[str, Any], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert _in_words(event) == words
    _told(False)(event)
    assert capsys.readouterr() == ("", f"{words}\n" if words else "")


MINT = "tickets mint plan --key issuer.key --users"


def test_tickets_are_a_file_in_order_or_a_line_each_and_the_same_number_gets_the_same_again(tmp_path: Path) -> None:
    plan_in(tmp_path / "plan")
    ran("tickets new-key issuer.key", tmp_path)
    issuer, plan = Issuer.read(tmp_path / "issuer.pub"), CollectionPlan.read(tmp_path / "plan").hash
    assert ran(f"{MINT} 10:15 --out some.bin", tmp_path).stdout.startswith("5 tickets under plan ")
    content = (tmp_path / "some.bin").read_bytes()
    tickets = [(10 + i, content[64 * i : 64 * i + 64]) for i in range(5)]
    assert len(content) == 5 * 64
    number, ticket = ran(f"{MINT} 17", tmp_path).stdout.split()
    tickets.append((int(number), base64.b64decode(ticket, validate=True)))
    assert all(issuer.valid(plan, tickets))
    assert ran(f"{MINT} 16:18", tmp_path).stdout.splitlines()[1].split() == [number, ticket]
