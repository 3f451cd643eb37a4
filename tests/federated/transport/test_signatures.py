"""The signed list of parties: everybody's word for one agreement, and nothing that only looks like it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import attrs
import pytest

pytest.importorskip("cryptography")


from cloister.core.errors import InvalidInput
from cloister.federated.protocol.agreement import Agreement, Member
from cloister.federated.transport.certificates import Credentials, make_test_certificates
from cloister.federated.transport.signatures import Signature, check_signatures, sign

NORTH, SOUTH = Member("north", bytes([1] * 32)), Member("south", bytes([2] * 32))
AGREED = Agreement("a plan", (NORTH, SOUTH), "pairwise", bytes([9] * 32))


@pytest.fixture(scope="module")
def certs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("certificates")
    make_test_certificates(folder / "ours", ("north", "south"))
    make_test_certificates(folder / "theirs", ("north", "south"))
    return folder / "ours"


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
    refused("north, south have not signed", tmp_path / "nothing", certs / "ca.pem")
    refused("south has not signed", signed(certs, tmp_path, "north"), certs / "ca.pem")
    check_signatures(AGREED, signed(certs, tmp_path, "south"), (certs / "ca.pem").read_bytes())


@pytest.mark.parametrize(
    "change",
    [
        {"plan": "more budget"},
        {"members": (NORTH, Member("south", bytes([3] * 32)))},
        {"masks": "shared"},
        {"coordinator_key": bytes([8] * 32)},
        {"members": (NORTH, SOUTH, Member("west", bytes([4] * 32)))},
    ],
    ids=["plan", "key", "masks", "coordinator", "member"],
)
def test_a_signature_of_another_agreement_is_refused(change: dict[str, Any], certs: Path, tmp_path: Path) -> None:
    folder = signed(certs, tmp_path, "north", "south")
    refused("has signed another plan", folder, certs / "ca.pem", attrs.evolve(AGREED, **change))


def test_nobody_signs_for_somebody_else(certs: Path) -> None:
    north = Credentials.read(certs / "north.pem")
    mixed = attrs.evolve(north, key=(certs / "south.key").read_bytes())
    for words, name, credentials in (
        ("the certificate is of north, not of 'south'", "south", north),
        ("not one of the agreed parties", "west", north),
        ("not the signature of 'north'", "north", mixed),
    ):
        with pytest.raises(InvalidInput, match=words):
            sign(AGREED, name, credentials)


def test_another_authoritys_certificate_or_one_that_is_over_does_not_sign(certs: Path, tmp_path: Path) -> None:
    theirs = certs.parent / "theirs"
    folder = signed(theirs, tmp_path, "north", "south")
    refused("not issued by this run's authority", folder, certs / "ca.pem")
    # a party's own certificate is no authority, whatever stands in the file of authorities
    refused("not issued by this run's authority", folder, theirs / "north.pem")
    make_test_certificates(tmp_path / "old", ("north",), days=0)
    with pytest.raises(InvalidInput, match="not valid today"):
        signed(tmp_path / "old", tmp_path, "north")


def test_no_changed_byte_of_a_signature_is_accepted(certs: Path, tmp_path: Path) -> None:
    path = signed(certs, tmp_path, "north", "south") / "north.sig"
    facts = json.loads(path.read_text())
    value = bytes.fromhex(facts["signature"])
    flipped = [value[:i] + bytes([value[i] ^ 1]) + value[i + 1 :] for i in range(len(value))]
    damaged = {
        "not the signature of 'north'": [json.dumps({**facts, "signature": other.hex()}) for other in flipped],
        "is not a signature": [
            "",
            "{}",
            "[]",
            "no JSON",
            "[" * 2**16,
            json.dumps({**facts, "certificate": 5}),
            "x" * 2**17,
        ],
        "cannot be read": [json.dumps({**facts, "certificate": "no PEM"})],
    }
    for words, texts in damaged.items():
        for text in texts:
            path.write_text(text)
            refused(words, tmp_path, certs / "ca.pem")
