"""The signed list of parties: everybody's word for one agreement, and nothing that only looks like it. Certificates
that end and clocks that differ: who says so, when, and that nothing else follows from a clock."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import attrs
import pytest

pytest.importorskip("grpc")

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ed25519, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from cloister.commands.coordinate import WORDS, in_words
from cloister.core.errors import InvalidInput
from cloister.federated.protocol.agreement import Agreement, Member
from cloister.federated.protocol.messages import Kind
from cloister.federated.transport import service as desk, tls
from cloister.federated.transport.certificates import Credentials, _certificate
from cloister.federated.transport.signatures import (
    Signature,
    certificate_problem,
    check_certificate,
    check_signatures,
    expiry_warnings,
    sign,
)
from cloister.federated.transport.tls import CLOCK, MAX_CLOCK_DIFFERENCE, Line
from tests.docs.pages import ROOT
from tests.federated.federated_session import others
from tests.federated.pooling import HOUR
from tests.federated.transport.ends import certified, new_key

NOW = 1.8e9
WHOSE = "the coordinator's"
NORTH, SOUTH = Member("north", bytes([1] * 32)), Member("south", bytes([2] * 32))
AGREED = Agreement("a plan", (NORTH, SOUTH), "pairwise", bytes([9] * 32))


def signed(certs: Path, folder: Path, *names: str) -> Path:
    for name in names:
        made = sign(AGREED, name, Credentials.read(certs / f"{name}.pem"))
        (folder / f"{name}.sig").write_text(made.to_text())
        assert Signature.read(folder / f"{name}.sig") == made
    return folder


def refused(words: str, folder: Path, authority: Path, agreed: Agreement = AGREED) -> None:
    """What these have signed is."""
    with pytest.raises(InvalidInput, match=words):
        check_signatures(agreed, folder, authority.read_bytes())


def test_what_all_have_signed_is_accepted_and_whoever_has_not_is_named(certs: Path, tmp_path: Path) -> None:
    refused("north, south have not signed", tmp_path / "nothing", certs / "ours" / "ca.pem")
    refused("south has not signed", signed(certs / "ours", tmp_path, "north"), certs / "ours" / "ca.pem")
    check_signatures(AGREED, signed(certs / "ours", tmp_path, "south"), (certs / "ours" / "ca.pem").read_bytes())


def test_a_signature_of_another_agreement_is_refused(certs: Path, tmp_path: Path) -> None:
    folder = signed(certs / "ours", tmp_path, "north", "south")
    for other in others(AGREED):
        refused("has signed another plan", folder, certs / "ours" / "ca.pem", other)


def test_nobody_signs_for_somebody_else(certs: Path) -> None:
    own, other = (Credentials.read(certs / "ours" / f"{name}.pem") for name in ("north", "south"))
    with pytest.raises(InvalidInput, match="not the signature of 'north'"):
        sign(AGREED, "north", attrs.evolve(own, key=other.key))


def test_another_authoritys_certificate_or_one_that_is_over_does_not_sign(certs: Path, tmp_path: Path) -> None:
    folder = signed(certs / "theirs", tmp_path, "north", "south")
    refused("not issued by this run's authority", folder, certs / "ours" / "ca.pem")
    # a party's own certificate is no authority, whatever stands in the file of authorities
    refused("not issued by this run's authority", folder, certs / "theirs" / "north.pem")
    with pytest.raises(InvalidInput, match="not now"):
        signed(certified(tmp_path / "old", {"north": 0}), tmp_path, "north")


@pytest.mark.parametrize("may", [False, True])
def test_a_party_s_certificate_issues_none_for_others_though_it_stands_among_the_authorities(
    tmp_path: Path, may: bool
) -> None:
    """North signs for south, too, by a certificate of north's own making."""
    north, south = new_key(), new_key()
    root = _certificate("north", north, None, north, 30)
    plain = x509.CertificateBuilder(root.issuer, root.subject, north.public_key(), 1).not_valid_before(
        root.not_valid_before_utc
    )
    plain = plain.not_valid_after(root.not_valid_after_utc).add_extension(
        x509.BasicConstraints(ca=may, path_length=None), critical=True
    )
    party, folder = plain.sign(north, SHA256()), tmp_path / "signed"
    folder.mkdir()
    for who, key in (("north", north), ("south", south)):
        made = _certificate(who, key, party, north, 30)
        own = Credentials(root.public_bytes(Encoding.PEM), made.public_bytes(Encoding.PEM), key_of(key))
        (folder / f"{who}.sig").write_text(sign(AGREED, who, own).to_text())
    authority = party.public_bytes(Encoding.PEM)
    if may:
        check_signatures(AGREED, folder, authority)
        return
    with pytest.raises(InvalidInput, match="not issued by this run's authority"):
        check_signatures(AGREED, folder, authority)


def key_of(key: Any) -> bytes:
    return bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))


def test_no_changed_byte_of_a_signature_is_accepted(certs: Path, tmp_path: Path) -> None:
    path = signed(certs / "ours", tmp_path, "north", "south") / "north.sig"
    facts = json.loads(path.read_text())
    value = bytes.fromhex(facts["signature"])
    flipped = [value[:i] + bytes([value[i] ^ 1]) + value[i + 1 :] for i in range(len(value))]
    damaged = {
        "not the signature of 'north'": [json.dumps({**facts, "signature": other.hex()}) for other in flipped],
        "is not a signature": ["", "{}", "[]", "[" * 2**16, json.dumps({**facts, "certificate": 5}), "x" * 2**17],
        "cannot be read": [json.dumps({**facts, "certificate": "no PEM"})],
    }
    for words, texts in damaged.items():
        for text in texts:
            path.write_text(text)
            refused(words, tmp_path, certs / "ours" / "ca.pem")


@pytest.mark.parametrize("key", [lambda: rsa.generate_private_key(65537, 2048), ed25519.Ed25519PrivateKey.generate])
def test_certificates_with_other_keys_sign_too(tmp_path: Path, key: Callable[[], Any]) -> None:
    made = certified(tmp_path / "certs", {"north": 5}, key=key)
    refused("south has not signed", signed(made, tmp_path, "north"), made / "ca.pem")


# certificates that end, clocks that differ, and the log


def test_certificates_that_end_within_two_weeks_are_warned_of_whosever_they_are(certs: Path, tmp_path: Path) -> None:
    lasting, now = Credentials.read(certs / "ours" / "north.pem"), datetime.now(UTC)
    assert expiry_warnings(lasting, "north", {"south": now + timedelta(days=15)}) == {}
    ending = certified(tmp_path / "ending", {"north": 13}, authority_days=12)
    soon = expiry_warnings(Credentials.read(ending / "north.pem"), "north", {"west": now})
    assert list(soon) == ["the authority", "north", "west"]
    assert soon["west"].startswith(f"the certificate of west ends on {now:%Y-%m-%d %H:%M} UTC: renew it")
    renewed = expiry_warnings(lasting, "north", {"north": now + timedelta(days=2)})
    assert list(renewed) == ["north"], "the plan is signed with the one before, which ends"


def test_what_is_wrong_with_ones_own_certificate_is_said_with_the_clock_by_which_it_is(certs: Path) -> None:
    north, over, ended = (
        Credentials.read(certs / path) for path in ("ours/north.pem", "ours/over.pem", "ended/north.pem")
    )
    assert check_certificate(north, "north") > datetime.now(UTC) + timedelta(days=14)
    for words, credentials, name in (
        ("is of north, not of 'east'", north, "east"),
        ("the private key is not the certificate's", attrs.evolve(north, key=over.key), "north"),
        ("of 'over' is valid from .*, not now: .* or set this machine's clock, which says 20", over, "over"),
        ("the authority's certificate is valid from .*, not now", ended, "north"),
    ):
        with pytest.raises(InvalidInput, match=words):
            check_certificate(credentials, name)
    check_certificate(attrs.evolve(north, authority=ended.authority + north.authority), "north")


def test_a_party_says_what_it_has_against_a_coordinators_certificate(certs: Path) -> None:
    for shown, authority, words in (
        ("ours/coordinator.pem", "ours", "^$"),
        ("ours/over.pem", "ours", "the coordinator's certificate is valid from .*, not now"),
        ("ours/north.pem", "ours", "the coordinator's has no DNS name 'coordinator'"),
        ("ours/ca.pem", "ours", "the coordinator's has no DNS name 'coordinator'"),
        ("theirs/coordinator.pem", "ours", "was not issued by the authority in this party's --ca"),
        ("ended/coordinator.pem", "ended", "the authority's certificate is valid from .*, not now"),
    ):
        assert re.search(
            words, certificate_problem((certs / shown).read_text(), (certs / authority / "ca.pem").read_bytes())
        )


def replying(*clocks: str) -> Any:
    """A coordinator's replies, with what their metadata say."""
    left = list(clocks)
    metadata = SimpleNamespace(trailing_metadata=lambda: ((CLOCK, left.pop(0)),))
    return SimpleNamespace(with_call=lambda data, timeout: (data, metadata))


def test_a_line_warns_once_of_another_clock_and_takes_every_reply_all_the_same(
    certs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says so again where it was right in between. What is no number has no say."""
    monkeypatch.setattr(tls, "time", SimpleNamespace(time=lambda: NOW, monotonic=lambda: 0.0))
    said = list[str]()

    def at(seconds: float) -> str:
        return str(int(1000 * (NOW + seconds)))

    line = Line("127.0.0.1:9", Credentials.read(certs / "ours" / "north.pem"), 10, on_warning=said.append)
    line._call = replying("soon", "nan", "", "9" * 400, "9" * 5000, at(MAX_CLOCK_DIFFERENCE), at(HOUR), at(HOUR))
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
