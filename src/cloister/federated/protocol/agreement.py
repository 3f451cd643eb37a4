"""The agreement: all that must be equal at all sides before anything is masked, and names derived from it. Public.

Who learns what under which collusion: the statement of every mode, in the words of the paper's section 3.

"Semi-honest" parties follow the protocol and try to learn what they can from what they see (Diaa et al. 2024, section
3). A party that lies about its rows, or leaves out a share of noise that it promised, is outside every mode's
guarantee. ``docs/explanation/threat_model.md`` says the same line by line, with the tests that play each line.

Outline of a plan: a short digest of each of its entries, by which two that differ are told apart by name.

The plan is public to all who hold an outline, and nothing is decided by one: what is agreed on is the agreement's hash.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias, final

import attrs

from cloister.core.errors import InvalidInput

Masks: TypeAlias = Literal["shared", "pairwise"]
"""``shared``: as in the paper, one secret among the parties. ``pairwise``: also cancelling masks from X25519 keys."""

OUTPUT = (
    "Every party sees all private iterates and the guarantee covers them; whoever sees only messages sees uniform "
    "numbers, the number of rounds and the shapes."
)

READER = (
    "Every message carries a mask that the coordinator alone takes off: a party that reads the wire learns nothing "
    "more than one that does not."
)

PUBLISHED = (
    "The coordinator draws this plan's noise and knows it: the result must be kept from whoever runs the coordinator. "
    "Published, shown or leaked to it, the result minus that noise gives it the exact, un-noised counts and sums: no "
    "privacy at all. With oracle = 'skellam' nobody knows the noise, and the result may be published."
)


def statement(masks: Masks, shares: int, colluding: int) -> tuple[str, ...]:
    """The statement in sentences for people.

    Args:
        masks: how messages are hidden.
        shares: 1 if the coordinator draws the noise, else the number of parties that draw a share.
        colluding: t, for noise in shares.
    """
    noise: tuple[str, ...]
    if shares == 1:
        noise = (
            "The coordinator draws the noise. It sees neither rows, sums nor results. Semi-honest adversary who "
            "controls at most a single party or the coordinator, and does not show the coordinator the result: the "
            "stated guarantee.",
            "The coordinator together with any one party: no privacy, since it takes its noise off what the party "
            "unmasks.",
            PUBLISHED,
        )
    else:
        noise = (
            "Every party draws a share of the noise, and nobody knows all of it. Semi-honest adversary who controls "
            f"the coordinator and at most {colluding} of {shares} parties: the stated guarantee, also if the result "
            f"is published.",
            f"More than {colluding} colluding parties: less than the stated guarantee, and none once all others' "
            f"shares are known.",
        )
    return (*noise, READER, _together(masks, shares), OUTPUT)


def _together(masks: Masks, shares: int) -> str:
    """View of the coordinator and a party together of the others, before noise that neither knows."""
    if masks == "shared":
        left = "without any noise" if shares == 1 else "with that party's own share of the noise alone"
        return (
            "One secret masks all messages: the coordinator and any party, or whoever got the secret, unmask together "
            f"each other party's own sums, {left}."
        )
    return (
        "Pairwise keys hide each party's message from the coordinator and all parties that lack the key of one of its "
        "pairs: together they see the sum of the parties that do not collude. The coordinator and all parties but one "
        "see that one's sums exactly (less its own share of noise): any protocol that gives sums would give them those."
    )


Outline: TypeAlias = tuple[tuple[str, bytes], ...]
"""Entries' names with their digests."""

SIZE = 8
"""Bytes of a digest."""
MOST = 255
"""Most entries, and most bytes of a name."""


def outlined(entries: Mapping[str, Any]) -> Outline:
    """The outline of a plan's entries, as TOML has them. Numbers that are equal have one digest."""
    return tuple((name, _digest(value)) for name, value in entries.items())


def to_bytes(outline: Outline) -> bytes:
    return b"".join(bytes([len(name.encode())]) + name.encode() + short for name, short in outline)


def from_bytes(data: bytes) -> dict[str, bytes]:
    """The outline that a message holds, as far as it can be read: nothing is decided by it."""
    found, start = dict[str, bytes](), 0
    while start < len(data) and len(found) < MOST:
        end = start + 1 + data[start]
        found[data[start + 1 : end].decode(errors="replace")] = data[end : end + SIZE]
        start = end + SIZE
    return found


def differing(mine: Outline, theirs: Mapping[str, bytes]) -> tuple[str, ...]:
    """Names of the entries that differ, all of them in my own outline: no text of a stranger's is passed on."""
    return tuple(name for name, short in mine if theirs.get(name) != short)


def _digest(value: Any) -> bytes:
    return hashlib.sha256(json.dumps(_plain(value), sort_keys=True, default=str).encode()).digest()[:SIZE]


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(part) for part in value]
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**53:
        return float(value)
    return value


COORDINATOR_NAME = "coordinator"
"""Common name of the coordinator's certificate, wherever it listens: no party's certificate may hold it."""
MAX_PARTIES = 1024
NONCE = 32
"""Bytes of a hello's nonce: the public half of an X25519 key that the party makes for this session alone, for its
secret with the coordinator."""
KEY = 32
HASH = 32


@final
@attrs.frozen
class Member:
    """A party. Args: name (as in its certificate), key (public X25519 key: 32 bytes, empty with a shared secret)."""

    name: str
    key: bytes = b""


@final
@attrs.frozen
class Agreement:
    """The fixed list of parties, and everything about the run.

    Args:
        plan: digest of the method, its options, the bounds, the budget and the public seed.
        members: the parties, in an order that all share.
        masks: how messages are hidden.
        coordinator_key: the coordinator's public X25519 key: every message carries a mask that it alone takes off.
        outline: of the plan's entries, to say which of them differ from another's; no part of what is agreed on.

    Raises: InvalidInput: fewer than two parties, two of one name, one of the coordinator's or one that cannot be
        printed, or a missing key.
    """

    plan: str
    members: tuple[Member, ...]
    masks: Masks
    coordinator_key: bytes
    outline: Outline = ()

    def __attrs_post_init__(self) -> None:
        names = [m.name for m in self.members]
        if not 2 <= len(names) <= MAX_PARTIES or len(set(names)) != len(names) or not all(names):
            raise InvalidInput(f"an agreement needs 2 to {MAX_PARTIES} parties of different names, not {names[:10]}")
        if odd := [name for name in names if not name.isprintable()]:
            raise InvalidInput(f"the party's name {odd[0]!r} has characters that no line can show: give it another")
        if COORDINATOR_NAME in names:
            raise InvalidInput(
                f"a party is called '{COORDINATOR_NAME}': with a certificate of that name it could pass for the "
                f"coordinator"
            )
        if self.masks not in ("shared", "pairwise"):
            raise InvalidInput(f"masks are '{self.masks}': choose shared or pairwise")
        keys = [m.key for m in self.members]
        if self.masks == "pairwise" and (any(len(key) != KEY for key in keys) or len(set(keys)) != len(keys)):
            raise InvalidInput(f"pairwise masks need a public key of {KEY} bytes from every party, each its own")
        if len(self.coordinator_key) != KEY or self.coordinator_key in keys:
            raise InvalidInput(f"the coordinator needs a public key of {KEY} bytes, which is no party's")

    @property
    def parties(self) -> int:
        return len(self.members)

    @property
    def hash(self) -> bytes:
        """32 bytes that name exactly this agreement. A party or coordinator with another one is refused."""
        h = hashlib.sha256(b"cloister agreement 1\0")
        for part in (
            self.plan.encode(),
            self.masks.encode(),
            self.coordinator_key,
            *(x for m in self.members for x in (m.name.encode(), m.key)),
        ):
            h.update(len(part).to_bytes(4, "little") + part)
        return h.digest()

    def index(self, name: str) -> int:
        """A party's position, or -1."""
        return next((i for i, m in enumerate(self.members) if m.name == name), -1)


def journal_name(agreement: Agreement, owner: str) -> bytes:
    """32 bytes at the head of a journal: its owner and the agreement.

    Args:
        owner: a party's name; empty for the coordinator. The coordinator's journal can be read off its messages: were
            it accepted as a party's, that party would use keys that everybody knows.
    """
    return hashlib.sha256(b"cloister journal 1\0" + agreement.hash + owner.encode()).digest()


def check_journal(entry: bytes, agreement: Agreement, owner: str) -> None:
    """Check that a journal's first entry begins with its name. Raises: InvalidInput: it belongs to somebody else."""
    if entry[:HASH] != journal_name(agreement, owner):
        raise InvalidInput(
            "the journal belongs to another plan, or to somebody else in this one: choose another file, or the plan "
            "that it was made with"
        )


def session_of(agreement: bytes, hellos: tuple[bytes, ...]) -> bytes:
    """32 bytes that name one session. They cover every party's whole hello with its fresh nonce, so that whoever relays
    the hellos (a coordinator that replays an old session) cannot make a party derive a mask twice."""
    return hashlib.sha256(
        b"cloister session 1\0" + agreement + b"".join(hashlib.sha256(h).digest() for h in hellos)
    ).digest()
