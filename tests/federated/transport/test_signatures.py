"""The signed list of parties: everybody's word for one agreement, and nothing that only looks like it."""

from __future__ import annotations

import json
from pathlib import Path

import attrs
import pytest

pytest.importorskip("cryptography")

from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from cloister.core.errors import InvalidInput
from cloister.federated.protocol.agreement import Agreement, Member
from cloister.federated.transport import certificates
from cloister.federated.transport.certificates import Credentials, make_test_certificates
from cloister.federated.transport.signatures import Signature, check_signatures, sign


@pytest.fixture
def certs(tmp_path: Path) -> Path:
    make_test_certificates(tmp_path / "ours", ("north", "south"))
    return tmp_path / "ours"


@pytest.fixture
def agreed() -> Agreement:
    members = Member("north", bytes([1] * 32)), Member("south", bytes([2] * 32))
    return Agreement("a plan", members, "pairwise", bytes([9] * 32))


def signed(agreed: Agreement, certs: Path, folder: Path, *names: str) -> Path:
    folder.mkdir(exist_ok=True)
    for name in names:
        made = sign(agreed, name, Credentials.read(certs / f"{name}.pem"))
        (folder / f"{name}.sig").write_text(made.to_text())
    return folder


def authority(certs: Path) -> bytes:
    return (certs / "ca.pem").read_bytes()


def test_what_all_have_signed_is_accepted_and_comes_back_as_it_was(
    agreed: Agreement, certs: Path, tmp_path: Path
) -> None:
    folder = signed(agreed, certs, tmp_path / "signatures", "north", "south")
    check_signatures(agreed, folder, authority(certs))
    made = sign(agreed, "north", Credentials.read(certs / "north.pem"))
    (tmp_path / "one.sig").write_text(made.to_text())
    assert Signature.read(tmp_path / "one.sig") == made


def test_whoever_has_not_signed_is_named(agreed: Agreement, certs: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="north, south have not signed"):
        check_signatures(agreed, tmp_path / "nothing", authority(certs))
    with pytest.raises(InvalidInput, match="south has not signed"):
        check_signatures(agreed, signed(agreed, certs, tmp_path / "signatures", "north"), authority(certs))


@pytest.mark.parametrize("change", ["plan", "key", "masks", "member", "coordinator"])
def test_a_signature_of_another_agreement_is_refused(
    agreed: Agreement, certs: Path, tmp_path: Path, change: str
) -> None:
    folder = signed(agreed, certs, tmp_path / "signatures", "north", "south")
    other = {
        "plan": attrs.evolve(agreed, plan="more budget"),
        "key": attrs.evolve(agreed, members=(agreed.members[0], Member("south", bytes([3] * 32)))),
        "masks": attrs.evolve(agreed, masks="shared"),
        "coordinator": attrs.evolve(agreed, coordinator_key=bytes([8] * 32)),
        "member": attrs.evolve(agreed, members=(*agreed.members, Member("west", bytes([4] * 32)))),
    }[change]
    with pytest.raises(InvalidInput, match="has signed another plan"):
        check_signatures(other, folder, authority(certs))


def test_nobody_signs_for_somebody_else(agreed: Agreement, certs: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="the certificate is of north, not of 'south'"):
        sign(agreed, "south", Credentials.read(certs / "north.pem"))
    with pytest.raises(InvalidInput, match="not one of the agreed parties"):
        sign(agreed, "west", Credentials.read(certs / "north.pem"))
    mixed = attrs.evolve(Credentials.read(certs / "north.pem"), key=(certs / "south.key").read_bytes())
    with pytest.raises(InvalidInput, match="not the signature of 'north'"):
        sign(agreed, "north", mixed)


def test_another_authoritys_certificate_does_not_sign(agreed: Agreement, certs: Path, tmp_path: Path) -> None:
    make_test_certificates(tmp_path / "theirs", ("north", "south"))
    folder = signed(agreed, tmp_path / "theirs", tmp_path / "signatures", "north", "south")
    with pytest.raises(InvalidInput, match="not issued by this run's authority"):
        check_signatures(agreed, folder, authority(certs))
    # a party's own certificate is no authority, whatever stands in the file of authorities
    with pytest.raises(InvalidInput, match="not issued by this run's authority"):
        check_signatures(agreed, folder, (tmp_path / "theirs" / "north.pem").read_bytes())


def test_a_certificate_that_is_over_does_not_sign(agreed: Agreement, tmp_path: Path) -> None:
    make_test_certificates(tmp_path / "old", ("north", "south"), days=0)
    with pytest.raises(InvalidInput, match="not valid today"):
        signed(agreed, tmp_path / "old", tmp_path / "signatures", "north")


def test_no_changed_byte_of_a_signature_is_accepted(agreed: Agreement, certs: Path, tmp_path: Path) -> None:
    folder = signed(agreed, certs, tmp_path / "signatures", "north", "south")
    path = folder / "north.sig"
    facts = json.loads(path.read_text())
    value = bytes.fromhex(facts["signature"])
    for i in range(len(value)):
        changed = value[:i] + bytes([value[i] ^ 1]) + value[i + 1 :]
        path.write_text(json.dumps({**facts, "signature": changed.hex()}))
        with pytest.raises(InvalidInput, match="not the signature of 'north'"):
            check_signatures(agreed, folder, authority(certs))
    for text in ("", "{}", "[]", "no JSON", json.dumps({**facts, "certificate": 5}), "x" * 2**17):
        path.write_text(text)
        with pytest.raises(InvalidInput, match="is not a signature"):
            check_signatures(agreed, folder, authority(certs))
    path.write_text(json.dumps({**facts, "certificate": "no PEM"}))
    with pytest.raises(InvalidInput, match="cannot be read"):
        check_signatures(agreed, folder, authority(certs))


@pytest.mark.parametrize("kind", ["rsa", "ed25519"])
def test_certificates_with_other_keys_sign_too(agreed: Agreement, tmp_path: Path, kind: str) -> None:
    root = ec.generate_private_key(ec.SECP256R1())
    ca = certificates._certificate("authority", root, None, root, 5)
    key = rsa.generate_private_key(65537, 2048) if kind == "rsa" else ed25519.Ed25519PrivateKey.generate()
    own = certificates._certificate("north", key, ca, root, 5)
    pem = Encoding.PEM
    credentials = Credentials(
        ca.public_bytes(pem), own.public_bytes(pem), key.private_bytes(pem, PrivateFormat.PKCS8, NoEncryption())
    )
    (tmp_path / "north.sig").write_text(sign(agreed, "north", credentials).to_text())
    with pytest.raises(InvalidInput, match="south has not signed"):
        check_signatures(agreed, tmp_path, credentials.authority)
