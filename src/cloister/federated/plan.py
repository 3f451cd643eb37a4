"""A pooled run's plan: one public TOML file that all parties and the coordinator hold, and agree on by its hash.

    coordinator = "pool.example.org:7443"
    coordinator_key = "..."    # printed by 'cloister party-key --coordinator' where the coordinator runs
    method = "auto"
    k = 5
    epsilon = 1.0
    delta = 1e-6
    rows = 50000
    columns = ["age", "weight"]
    bounds = [[0, 120], [0, 300]]
    seed = 20241121
    oracle = "skellam"
    masks = "pairwise"

    [[party]]
    name = "north"
    key = "..."            # printed by 'cloister party-key'

Options of components stand under ``[with]`` and ``[set]``, as on the command line.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, cast, final

import attrs

from cloister._version import __version__
from cloister.core.defaults import DELTA
from cloister.core.errors import InvalidInput, UnknownName, cause
from cloister.core.plain_data import digest, parsed_toml
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.core.registry.compose import Composed
from cloister.core.registry.draft import Draft
from cloister.core.registry.making import drafted
from cloister.core.session import forecast_session
from cloister.federated.protocol.agreement import Agreement, Masks, Member
from cloister.federated.protocol.collusion import statement
from cloister.federated.protocol.outline import outlined
from cloister.federated.protocol.vectors import PoolRounds, channels_of, shape_bytes
from cloister.run.layers.histograms import SHARE
from cloister.run.request import PreparedRun, Request, prepare

ENTRIES = (
    "coordinator",
    "coordinator_key",
    "method",
    "k",
    "epsilon",
    "delta",
    "rows",
    "columns",
    "bounds",
    "seed",
    "oracle",
    "masks",
    "party",
    "with",
    "set",
    "zoom",
    "scale",
    "describe",
    "describe_share",
    "test_noise_seed",
)
REQUIRED = ("k", "epsilon", "rows", "columns", "bounds", "seed", "coordinator_key", "party")
SEEDED_WARNING = (
    "not private: seeded. The plan has a test_noise_seed, with which the noise can be repeated and subtracted: it "
    "protects nobody, whatever masks hide."
)
AGREED_ENTRIES = tuple(name for name in ENTRIES if name != "coordinator")
"""Entries that must be equal everywhere; the coordinator's address may differ, through another network say."""
ORACLES = ("skellam", "masked-gaussian")
"""The default, with which nobody knows the noise, so that the coordinator learns no more from a published result than
others do; and the one whose noise the coordinator draws.
"""
DEFAULTS: dict[str, Any] = {
    "method": "auto",
    "delta": DELTA,
    "oracle": ORACLES[0],
    "masks": "pairwise",
    "with": {},
    "set": {},
    "zoom": "off",
    "scale": "none",
    "describe": [],
    "describe_share": SHARE,
}
"""Values of entries that a plan leaves out."""


@final
@attrs.frozen(eq=False)
class FederatedPlan:
    """Plan that has been read and checked.

    Args:
        request: as written.
        plan: the request, prepared.
        agreement: what all parties and the coordinator must hold alike.
        coordinator: "host:port", or empty.
        test_noise_seed: makes the noise repeatable; for tests alone.
    """

    request: Request
    plan: PreparedRun
    agreement: Agreement
    coordinator: str
    test_noise_seed: int | None

    @cached_property
    def script(self) -> PoolRounds:
        """Shape and noise of every round, from a forecast: all that a coordinator needs."""
        assert self.request.seed is not None
        session = forecast_session(self.plan.composed.value, self.plan.problem, PublicRng.from_seed(self.request.seed))
        return PoolRounds(session.rounds, session.agreed_sizes, self.agreement.parties)

    @property
    def max_message_bytes(self) -> int:
        """Upper bound on the bytes of any message of a run."""
        shapes = (shape_bytes(shape) for shape, _ in self.script.expected(self.noise))
        return 2**20 + 2 * max(shapes, default=0)

    @property
    def noise(self) -> NoiseRng:
        return NoiseRng.secret() if self.test_noise_seed is None else NoiseRng.for_tests(self.test_noise_seed)

    @property
    def shares(self) -> int:
        """Smallest number of noise shares over all questions; 1: the coordinator draws a question's noise."""
        return min(c.shares for round in self.script.rounds for c in channels_of(round, self.agreement.parties))

    @property
    def trust(self) -> tuple[str, ...]:
        """Who learns what under which collusion (``protocol.collusion``), for the least protected question."""
        if self.test_noise_seed is not None:
            return (SEEDED_WARNING,)
        colluding = [
            int(part.value.colluding)
            for _, part in _components(self.plan.composed)
            if "colluding" in part.config()["options"]
        ]
        return statement(self.agreement.masks, self.shares, min(colluding, default=0))


def read_pool_plan(path: Path, not_private: bool = False) -> FederatedPlan:
    """Read and check a plan.

    Args:
        path: the file.
        not_private: accept repeatable noise; nobody else's plan can allow it.

    Raises:
        InvalidInput: it is unreadable, incomplete or contradictory, or its noise is repeatable without ``not_private``.
    """
    try:
        facts = parsed_toml(path.read_bytes())
    except OSError as error:
        raise InvalidInput(f"cannot read {path}: {cause(error)}") from error
    except ValueError as error:
        raise InvalidInput(f"{path} is not valid TOML: {error}") from error
    pool = pool_plan(facts)
    if pool.test_noise_seed is not None and not not_private:
        raise InvalidInput(
            "the plan has a test_noise_seed, with which every reader can subtract the noise: remove it, or for a "
            "trial on rows that are not secret allow it with --not-private"
        )
    return pool


def pool_plan(facts: Mapping[str, Any]) -> FederatedPlan:
    """Return the plan in a table of facts. It may have repeatable noise, which ``read_pool_plan`` refuses.

    Raises:
        InvalidInput: it is incomplete or contradictory.
    """
    for name in facts:
        if name not in ENTRIES:
            raise UnknownName("entry", name, ENTRIES, "(in the plan)")
    missing = [name for name in REQUIRED if name not in facts]
    if missing:
        raise InvalidInput(f"the plan has no {', '.join(missing)}")
    members = _members(facts["party"])
    facts = {**DEFAULTS, **facts}
    oracle = facts["oracle"]
    if oracle not in ORACLES:
        raise InvalidInput(f"oracle is '{oracle}': choose {' or '.join(ORACLES)}")
    method = str(facts["method"])
    draft = with_pool_oracles(method, _table(facts, "with"), _table(facts, "set"), len(members), oracle)
    seed, test_seed, columns = facts["seed"], facts.get("test_noise_seed"), facts["columns"]
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise InvalidInput(f"seed is {seed!r}: give a whole number, which everybody may know")
    if test_seed is not None and (isinstance(test_seed, bool) or not isinstance(test_seed, int)):
        raise InvalidInput(f"test_noise_seed is {test_seed!r}: leave it out, or for tests give a whole number")
    if not isinstance(columns, list) or not all(isinstance(column, str) for column in columns):
        raise InvalidInput(f"columns is {columns!r}: give a list of names")
    request = Request(
        k=facts["k"],
        method=draft,
        epsilon=facts["epsilon"],
        delta=facts["delta"],
        bounds=facts["bounds"],
        rows=facts["rows"],
        seed=seed,
        trust="Aggregated",
        zoom=facts["zoom"],
        scale=facts["scale"],
        describe=facts["describe"],
        describe_share=facts["describe_share"],
    )
    plan = prepare(request, columns)
    if plan.composed.trust != "Aggregated":
        raise InvalidInput(
            f"the method as composed is {plan.composed.trust}: parties pool with oracles of Aggregated trust only"
        )
    masks = cast(Masks, facts["masks"])
    _check_shares(plan, masks)
    agreement = Agreement(
        digest((plan.digest(), seed, test_seed)),
        members,
        masks,
        _key(facts["coordinator_key"]),
        outlined({name: facts.get(name) for name in AGREED_ENTRIES} | {"cloister's version": __version__}),
    )
    return FederatedPlan(request, plan, agreement, str(facts.get("coordinator", "")), test_seed)


def with_pool_oracles(
    method: str, components: Mapping[str, Any], options: Mapping[str, Any], parties: int, oracle: str
) -> Draft:
    """Return the draft of a method, completed for pooling.

    Every open slot for an oracle gets ``oracle``, and the oracles the number of parties, which sets the noise shares
    and the ring.

    Raises:
        UnknownName: there is no such method.
    """
    draft = drafted(method, components, options)
    filled = {**{path: oracle for path, _ in draft.open_oracles()}, **components}
    asking = {f"{slot}.parties": parties for slot, name in filled.items() if name in ORACLES}
    return attrs.evolve(draft, names=filled, options={**asking, **options})


def _check_shares(plan: PreparedRun, masks: Masks) -> None:
    """Check that under shared masks each party's own share of the noise is all that the guarantee counts on.

    With a shared secret, a party and the coordinator together can unmask every other party's message.

    Raises:
        InvalidInput: it is only a part.
    """
    for name, part in _components(plan.composed):
        if masks == "shared" and part.spec.name == "skellam" and part.value.parties - part.value.colluding > 1:
            raise InvalidInput(
                f"masks are shared and '{name}' draws noise in shares: a party and the coordinator together would "
                f"unmask another party's message with one share alone. Choose pairwise masks, or colluding = "
                f"{part.value.parties - 1}"
            )


def _components(composed: Composed, path: str = "") -> Iterator[tuple[str, Composed]]:
    """Yield the components in the slots, and recursively in their slots, by path."""
    for name, part in composed.inner.items():
        yield f"{path}{name}", part
        yield from _components(part, f"{path}{name}.")


def _members(parties: Any) -> tuple[Member, ...]:
    try:
        return tuple(Member(str(p["name"]), bytes.fromhex(p.get("key", ""))) for p in parties)
    except (TypeError, KeyError, ValueError, AttributeError):
        raise InvalidInput(
            "every [[party]] of the plan needs a name, and for pairwise masks a key as 'cloister party-key' prints it"
        ) from None


def _key(text: Any) -> bytes:
    try:
        return bytes.fromhex(text)
    except (TypeError, ValueError):
        raise InvalidInput(
            f"coordinator_key is {text!r}: give what 'cloister party-key --coordinator' prints where the coordinator "
            f"runs"
        ) from None


def _table(facts: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return a table of paths to values; nested tables become paths with dots."""
    table = facts[name]
    if not isinstance(table, Mapping):
        raise InvalidInput(f"[{name}] of the plan must be a table")
    return dict(_flat(table))


def _flat(table: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{path}{key}.")
        else:
            yield f"{path}{key}", value
