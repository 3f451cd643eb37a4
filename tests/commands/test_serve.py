"""What a collector says to people: every event in words, and nothing about who sent what."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from cloister.collection.service.limits import ServiceCounts
from cloister.commands.serve import _counter, _in_words, _told


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (
            {"event": "listening", "address": "http://127.0.0.1:1", "plan": "ab" * 32, "reports": 1234},
            "collecting for plan abababababababab on http://127.0.0.1:1; 1,234 reports are here already",
        ),
        ({"event": "waiting", "why": "cut"}, "the next round cannot be opened yet: cut"),
        ({"event": "disk", "why": "full"}, "nothing can be written (full): reports are sent back until it can"),
        ({"event": "end"}, ""),
    ],
)
def test_events_in_words(event: dict[str, Any], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert _in_words(event) == words
    _told(False)(event)
    assert capsys.readouterr() == ("", f"{words}\n" if words else "")


def test_counts_on_a_terminal_are_said_when_they_change(capsys: pytest.CaptureFixture[str]) -> None:
    desk: Any = SimpleNamespace(reports=0, plan=SimpleNamespace(rows=10_000), counts=ServiceCounts())
    tell = _counter(desk)
    for reports in (0, 0, 1234, 1234):
        desk.reports = reports
        tell()
    assert capsys.readouterr().err == (
        "0 reports of 10,000 users; refused 0\n1,234 reports of 10,000 users; refused 0\n"
    )
