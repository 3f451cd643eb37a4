"""Certificates that end and clocks that differ: who says so, when, and that nothing else follows from a clock."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("grpc")

from cloister.commands.coordinate import WORDS, in_words
from cloister.core.errors import InvalidInput
from cloister.federated.protocol.messages import Kind
from cloister.federated.transport import service as desk, signatures, tls
from cloister.federated.transport.certificates import Credentials
from cloister.federated.transport.signatures import complaint, soon_over
from cloister.federated.transport.tls import APART, CLOCK, Line
from tests.docs.pages import ROOT
from tests.federated.pooling import HOUR, lay_out
from tests.federated.transport.test_failing_fast import certified
from tests.in_process import cloister

NOW = 1.8e9
WHOSE = "the coordinator's"


def over_soon(folder: Path, days: dict[str, int], **more: Any) -> Credentials:
    """North's, beside the others'."""
    return Credentials.read(certified(folder, days, **more) / "north.pem")


# certificates


def test_certificates_that_end_within_two_weeks_are_warned_of_whosever_they_are(tmp_path: Path) -> None:
    lasting = over_soon(tmp_path / "a", {"north": 15})
    now = datetime.now(UTC)
    assert soon_over(lasting, "north", {"south": now + timedelta(days=15)}) == {}
    soon = soon_over(over_soon(tmp_path / "b", {"north": 13}, authority_days=12), "north", {"west": now})
    assert list(soon) == ["the authority", "north", "west"]
    assert soon["west"].startswith(f"the certificate of west ends on {now:%Y-%m-%d %H:%M} UTC: renew it")
    renewed = soon_over(lasting, "north", {"north": now + timedelta(days=2)})
    assert list(renewed) == ["north"], "the plan is signed with the one before, which ends"


def test_a_party_says_what_it_has_against_a_coordinators_certificate(tmp_path: Path) -> None:
    ours = certified(tmp_path / "ours", {"coordinator": 30, "over": 0, "north": 30})
    authority, theirs = (ours / "ca.pem").read_bytes(), certified(tmp_path / "theirs", {"coordinator": 30})
    assert complaint((ours / "coordinator.pem").read_text(), authority) == ""
    for shown, words in (
        (ours / "over.pem", "the coordinator's certificate is not valid today"),
        (ours / "north.pem", "the coordinator's has no DNS name 'coordinator'"),
        (theirs / "coordinator.pem", "was not issued by the authority of this party's --ca"),
        (ours / "ca.pem", "the coordinator's has no DNS name 'coordinator'"),
    ):
        assert words in complaint(shown.read_text(), authority)
    ended = certified(tmp_path / "ended", {"coordinator": 30}, authority_days=0)
    found = complaint((ended / "coordinator.pem").read_text(), (ended / "ca.pem").read_bytes())
    assert "the authority's certificate is not valid today" in found


def test_a_clock_that_is_wrong_is_named_where_a_certificate_is_over_by_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = over_soon(tmp_path / "a", {"north": 30})
    signatures.check_certificate(mine, "north")
    later = datetime.now(UTC) + timedelta(days=31)
    monkeypatch.setattr(signatures, "_now", lambda: later)
    with pytest.raises(InvalidInput, match=f"or set this machine's clock, which says {later:%Y-%m-%d %H:%M}"):
        signatures.check_certificate(mine, "north")


# clocks


def replying(*clocks: str) -> Any:
    """A coordinator's replies, with what their metadata say."""
    left = list(clocks)
    metadata = SimpleNamespace(trailing_metadata=lambda: ((CLOCK, left.pop(0)),))
    return SimpleNamespace(with_call=lambda data, timeout: (data, metadata))


def test_a_line_warns_once_of_another_clock_and_takes_every_reply_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says so again where it was right in between. What is no number has no say."""
    monkeypatch.setattr(tls, "time", SimpleNamespace(time=lambda: NOW, monotonic=lambda: 0.0))
    said = list[str]()

    def at(seconds: float) -> str:
        return str(int(1000 * (NOW + seconds)))

    line = Line("127.0.0.1:9", over_soon(tmp_path / "a", {"north": 30}), 10, warned=said.append)
    line._call = replying("soon", "nan", "", "9" * 400, "9" * 5000, at(APART), at(HOUR), at(HOUR))
    assert [line.exchange(b"hello") for _ in range(8)] == 8 * [b"hello"]
    assert [words.partition(":")[0] for words in said] == [f"this machine's clock is 3,600.0 seconds behind {WHOSE}"]
    assert line.ahead == HOUR
    line._call = replying(at(-HOUR), at(0), at(-HOUR))
    for _ in range(3):
        line.exchange(b"hello")
    assert [words.partition(":")[0] for words in said[1:]] == [
        f"this machine's clock is 3,600.0 seconds ahead of {WHOSE}"
    ]
    line.close()


# the log


@pytest.mark.thorough
def test_the_coordinator_logs_whose_certificate_ends_soon_before_anybody_joins(tmp_path: Path) -> None:
    lay_out(tmp_path)
    certified(tmp_path / "soon", {"coordinator": 5})
    command = "coordinate plan.toml --listen 127.0.0.1:0 --cert soon/coordinator.pem --secret certs/coordinator.pool"
    more = "--unsigned --log log.jsonl --patience 0.1 --timeout 0.1"
    done = cloister(*f"{command} {more}".split(), folder=tmp_path)
    entries = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert [entry["event"] for entry in entries] == ["ends soon", "idle"]
    assert entries[0]["why"].startswith("the certificate of coordinator ends on ")
    assert entries[0]["why"] in done.stderr


def test_each_line_of_the_coordinators_log_is_on_the_page_in_the_words_that_it_has() -> None:
    """The page's table is what ``in_words`` says of each event, in its order."""
    text = (ROOT / "docs/howto/pool.md").read_text("utf-8")
    rows = [re.split(r" *\| *", line)[1:-1] for line in text.splitlines() if re.match(r"\| `[a-z ]+` \|", line)]
    assert all(len(row) == 3 and row[2] for row in rows)
    facts = {"party": "north", "missing": "south, west", "round": 1, "here": 1}
    whys = {
        "ends soon": "the certificate of north ends on 2026-12-01 09:00 UTC: renew it before ...",
        "refused": "epsilon of the plan differs",
    }
    said = {event: in_words({**facts, "event": event, "why": whys.get(event, "")}, 3, 4) for event in WORDS}
    assert {row[0].strip("`"): row[1] for row in rows} == said
    assert [row[0].strip("`") for row in rows] == list(WORDS)


def test_no_event_is_logged_that_has_no_words() -> None:
    sources = [Path(desk.__file__), ROOT / "src/cloister/commands/coordinate.py"]
    logged = {e for path in sources for e in re.findall(r'"event": "([a-z ]+)"', path.read_text())}
    kinds = {kind.name.lower() for kind in (Kind.HELLO, Kind.VECTOR, Kind.ASK)}
    assert logged | kinds | {"back"} == set(WORDS)
