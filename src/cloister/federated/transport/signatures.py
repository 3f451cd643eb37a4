"""Signatures of the plan: every party signs the agreement with its certificate's key.

A plan is a file that travels by mail. Its hash says whether two copies are equal, and changing one party's key in it
would not unmask that party's messages; but only signatures show, before anybody connects, that all on the list have
agreed to be on it, with these keys, bounds and budget. A signature covers the agreement's hash, which covers all of
that. Everybody checks everybody's.

A certificate that signs is one that joins: issued directly by the run's authority, with the party's name as its only
common name.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, final

import attrs

from cloister.core.errors import InvalidInput, MissingExtra
from cloister.core.plain_data import parsed
from cloister.federated.protocol.agreement import COORDINATOR_NAME, Agreement
from cloister.federated.transport.certificates import Credentials, read_file

try:
    from cryptography import x509
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key
except ImportError as error:
    raise MissingExtra("cryptography", "federated", "signing") from error

PURPOSE = b"cloister agreement signature 1\0"
MAX_BYTES = 2**16
"""Largest signature file, in bytes."""
EXPIRY_WARNING = dt.timedelta(days=14)
"""Time before a certificate's end at which to warn: authorities take days, and a new one signs the plan again."""

_PSS = padding.PSS(padding.MGF1(SHA256()), padding.PSS.MAX_LENGTH)


@final
@attrs.frozen
class Signature:
    """Signature of one party.

    Args:
        party: its name.
        agreement: the hash.
        certificate: one, in PEM.
        value: the signature's bytes.
    """

    party: str
    agreement: bytes
    certificate: bytes
    value: bytes

    def to_text(self) -> str:
        facts = {"party": self.party, "agreement": self.agreement.hex(), "certificate": self.certificate.decode()}
        return json.dumps({**facts, "signature": self.value.hex()}, indent=1) + "\n"

    @classmethod
    def read(cls, path: Path) -> Signature:
        """Read a signature's file.

        Raises:
            InvalidInput: it holds none.
        """
        content = read_file(path)
        try:
            facts: Any = parsed(content) if len(content) <= MAX_BYTES else None
            return cls(
                facts["party"],
                bytes.fromhex(facts["agreement"]),
                facts["certificate"].encode(),
                bytes.fromhex(facts["signature"]),
            )
        except (ValueError, TypeError, KeyError, AttributeError):
            raise InvalidInput(f"{path} is not a signature: get it again from the party that signed") from None


def folder_of(plan: Path) -> Path:
    """Return the folder of a plan's signatures, beside the plan."""
    return plan.with_suffix(".signatures")


def sign(agreement: Agreement, party: str, credentials: Credentials) -> Signature:
    """Sign the agreement as one of its parties.

    Raises:
        InvalidInput: no such party, another's certificate, or a key that does not belong to the certificate.
    """
    if agreement.index(party) < 0:
        raise InvalidInput(f"'{party}' is not one of the agreed parties")
    certificate = _certificate(credentials.certificate)
    key = _private_key(credentials.key)
    signed_bytes = PURPOSE + agreement.hash
    algorithm = _algorithm(key)
    if algorithm is None:
        raise InvalidInput("the certificate's key cannot sign: it is neither an elliptic curve's, RSA nor Ed25519")
    value = key.sign(signed_bytes, *algorithm)
    made = Signature(party, agreement.hash, certificate.public_bytes(Encoding.PEM), value)
    _check_signature(made, agreement, credentials.authority, party)
    return made


def check_signatures(agreement: Agreement, folder: Path, authority: bytes) -> dict[str, dt.datetime]:
    """Check that every party has signed exactly this agreement, with a certificate of the authority (PEM).

    Returns:
        The end of each party's certificate.

    Raises:
        InvalidInput: names the parties without a signature, or the file whose signature is not valid.
    """
    signed = dict[str, dt.datetime]()
    for path in sorted(folder.glob("*.sig")):
        signature = Signature.read(path)
        _check_signature(signature, agreement, authority, str(path))
        signed[signature.party] = _certificate(signature.certificate).not_valid_after_utc
    missing = [member.name for member in agreement.members if member.name not in signed]
    if missing:
        raise InvalidInput(
            f"{', '.join(missing)} {'has' if len(missing) == 1 else 'have'} not signed this plan: each party runs "
            f"'cloister sign' with its copy, and everybody puts the files in {folder}"
        )
    return signed


def check_certificate(credentials: Credentials, party: str = "") -> dt.datetime:
    """Check, before anybody hears of it, that one's own certificate can be used today.

    Args:
        credentials: one's own.
        party: whose the certificate must be; empty: the coordinator's, which has a DNS name instead.

    Returns:
        The certificate's end.

    Raises:
        InvalidInput: it is another's, too old or too new, or the key is not its own.
    """
    certificate = _certificate(credentials.certificate)
    names = _names(certificate)
    if party and names != [party]:
        raise InvalidInput(f"the certificate is of {', '.join(names) or 'nobody'}, not of '{party}': give its own")
    _check_dates(certificate, f"the certificate of '{party or COORDINATOR_NAME}'")
    _check_dates(_latest(credentials.authority), "the authority's certificate")
    if _public_bytes(_private_key(credentials.key).public_key()) != _public_bytes(certificate.public_key()):
        raise InvalidInput("the private key is not the certificate's: give the one that it was made for")
    return certificate.not_valid_after_utc


def expiry_warnings(credentials: Credentials, owner: str, signed: Mapping[str, dt.datetime]) -> dict[str, str]:
    """Return warnings of certificates that end within ``EXPIRY_WARNING``, by their owner.

    Args:
        credentials: one's own, with the authority's.
        owner: one's name.
        signed: the ends of the certificates that signed the plan (``check_signatures``).
    """
    ends = {
        "the authority": _latest(credentials.authority).not_valid_after_utc,
        owner: _certificate(credentials.certificate).not_valid_after_utc,
        **signed,
    }
    last = _now() + EXPIRY_WARNING
    return {
        whose: f"the certificate of {whose} ends on {end:%Y-%m-%d %H:%M} UTC: renew it before a run that may last "
        f"longer; a party signs the plan again with its new one"
        for whose, end in ends.items()
        if end < last
    }


def certificate_problem(shown: str, authority: bytes) -> str:
    """Return why a party does not accept the certificate (PEM) that a coordinator shows; empty if it does."""
    certificate = _certificate(shown.encode())
    try:
        _check_dates(certificate, "the coordinator's certificate")
        _check_dates(_latest(authority), "the authority's certificate")
    except InvalidInput as error:
        return str(error)
    if not any(_issued(certificate, one) for one in _authorities(authority)):
        return "the coordinator's was not issued by the authority in this party's --ca (by default ca.pem)"
    try:
        hosts = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        hosts = x509.SubjectAlternativeName([])
    dns_names = hosts.get_values_for_type(x509.DNSName)
    return "" if COORDINATOR_NAME in dns_names else f"the coordinator's has no DNS name '{COORDINATOR_NAME}'"


def _check_dates(certificate: x509.Certificate, whose: str) -> None:
    begins, ends, now = certificate.not_valid_before_utc, certificate.not_valid_after_utc, _now()
    if not begins <= now <= ends:
        raise InvalidInput(
            f"{whose} is valid from {begins:%Y-%m-%d %H:%M} to {ends:%Y-%m-%d %H:%M} UTC, not now: get a new one, or "
            f"set this machine's clock, which says {now:%Y-%m-%d %H:%M}"
        )


def _now() -> dt.datetime:
    """Return the time on this machine's clock, which tests replace."""
    return dt.datetime.now(dt.UTC)


def _latest(authority: bytes) -> x509.Certificate:
    """Return the authority's certificate that is valid longest."""
    return max(_authorities(authority), key=lambda one: one.not_valid_after_utc)


def _names(certificate: x509.Certificate) -> list[str]:
    """Return its common names."""
    return [str(a.value) for a in certificate.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)]


def _private_key(pem: bytes) -> Any:
    try:
        return load_pem_private_key(pem, None)
    except (ValueError, TypeError):
        raise InvalidInput("the certificate's private key cannot be read: give a PEM file without a password") from None


def _public_bytes(key: Any) -> bytes:
    encoded: bytes = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return encoded


def _check_signature(signature: Signature, agreement: Agreement, authority: bytes, source: str) -> None:
    if agreement.index(signature.party) < 0:
        raise InvalidInput(f"{source}: '{signature.party}' is not one of the agreed parties")
    if signature.agreement != agreement.hash:
        raise InvalidInput(
            f"{source}: '{signature.party}' has signed another plan: other parties, keys, bounds, options or budget"
        )
    certificate = _certificate(signature.certificate)
    names = _names(certificate)
    if names != [signature.party]:
        raise InvalidInput(
            f"{source}: the certificate is of {', '.join(names) or 'nobody'}, not of '{signature.party}'"
        )
    if not any(_issued(certificate, one) for one in _authorities(authority)):
        raise InvalidInput(f"{source}: the certificate of '{signature.party}' was not issued by this run's authority")
    _check_dates(certificate, f"{source}: the certificate of '{signature.party}'")
    if not _verified(certificate.public_key(), signature.value, PURPOSE + signature.agreement):
        raise InvalidInput(f"{source}: this is not the signature of '{signature.party}': somebody changed it")


def _algorithm(key: Any) -> tuple[Any, ...] | None:
    """Return the arguments with which a key signs or verifies; None if it cannot."""
    if isinstance(key, ec.EllipticCurvePrivateKey | ec.EllipticCurvePublicKey):
        return (ec.ECDSA(SHA256()),)
    if isinstance(key, rsa.RSAPrivateKey | rsa.RSAPublicKey):
        return _PSS, SHA256()
    return () if isinstance(key, ed25519.Ed25519PrivateKey | ed25519.Ed25519PublicKey) else None


def _verified(key: Any, value: bytes, signed_bytes: bytes) -> bool:
    algorithm = _algorithm(key)
    try:
        if algorithm is not None:
            key.verify(value, signed_bytes, *algorithm)
        return algorithm is not None
    except InvalidSignature:
        return False


def _issued(certificate: x509.Certificate, authority: x509.Certificate) -> bool:
    """Return True if the authority issued the certificate directly, and may issue any."""
    try:
        if not authority.extensions.get_extension_for_class(x509.BasicConstraints).value.ca:
            return False
        certificate.verify_directly_issued_by(authority)
    except (InvalidSignature, ValueError, TypeError, x509.ExtensionNotFound):
        return False
    return True


def _certificate(pem: bytes) -> x509.Certificate:
    """Return the first certificate of a file: the party's, where the authority's follow."""
    try:
        return x509.load_pem_x509_certificate(pem)
    except ValueError:
        raise InvalidInput("a party's certificate cannot be read: it is not PEM") from None


def _authorities(pem: bytes) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(pem)
    except ValueError:
        raise InvalidInput("the authority's certificate cannot be read: it is not PEM") from None
