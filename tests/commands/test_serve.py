"""What a collector says to people: every event in words, and nothing about who sent what. Tickets, too."""

from __future__ import annotations

import base64
import errno
from pathlib import Path
from typing import Any

import pytest

from cloister.collection.plan.plan import CollectionPlan
from cloister.collection.service.running import listening
from cloister.collection.service.segments import collecting
from cloister.collection.service.tickets import Issuer
from cloister.commands.serve import _in_words, _told
from cloister.core.errors import TRANSIENT, InvalidInput, Unavailable, transient_errors
from tests.collection.service.collectors import plan_in
from tests.in_process import cloister, ran


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


def test_what_passes_by_itself_has_an_exit_code_of_its_own_and_what_does_not_is_refused(tmp_path: Path) -> None:
    """Whatever supervises it tries the former again."""
    plan_in(tmp_path / "plan")
    with collecting(tmp_path / "held", private=False), listening("127.0.0.1", 0) as taken:
        taken.listen()
        port = taken.getsockname()[1]
        for words, code, said in (
            ("nowhere --out out", 4, "cannot read the plan nowhere/plan.json: No such file or directory"),
            (f"plan --out out --port {port}", 4, "Choose another --port or --host"),
            (f"plan --out out --port 0 --metrics-port {port}", 4, "Choose another --metrics-port or --metrics-host"),
            ("plan --out out --port 0 --metrics-port 0 --metrics-host 192.0.2.1 --plain-http", 4, "192.0.2.1"),
            ("plan --out out --host no.such.host.invalid --plain-http", 4, "no.such.host.invalid"),
            ("plan --out held --port 0", 4, "another collector writes to held"),
            ("plan --out plan --port 0", 2, "holds the plan's folder"),
            ("plan --out out --port 0 --shuffle", 2, "need no shuffler"),
            ("plan --out out --port 0 --cert nowhere.pem", 2, "nowhere.pem"),
        ):
            done = cloister(*f"serve {words}".split(), folder=tmp_path)
            assert (done.returncode, done.stdout) == (code, ""), words
            assert said in done.stderr, words
            assert done.stderr.count("\n") == 1, words


@pytest.mark.parametrize("number", sorted(TRANSIENT))
def test_a_cause_that_passes_is_told_from_one_that_does_not(number: int) -> None:
    lasting = [(OSError(one, "why"), InvalidInput) for one in (errno.EACCES, errno.ENOENT)]
    for cause, found in ((OSError(number, "why"), Unavailable), *lasting):
        with pytest.raises(found, match="said"), transient_errors():
            raise InvalidInput("said") from cause
