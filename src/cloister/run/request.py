"""A caller's request, and the run planned for it from public figures, before any row is read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from numbers import Integral
from typing import Any

import attrs

from cloister._version import __version__
from cloister.accounting.privacy_target import PrivacyTarget
from cloister.core.budget import Budget
from cloister.core.capabilities import PredictsError, predicted_loss
from cloister.core.clustering import Problem
from cloister.core.defaults import DELTA
from cloister.core.domains import Ball, Box, plain
from cloister.core.errors import InvalidInput
from cloister.core.plain_data import digest
from cloister.core.questions import Round
from cloister.core.randomness import PublicRng
from cloister.core.registry.components import own_number
from cloister.core.registry.compose import Composed
from cloister.core.registry.draft import Draft
from cloister.core.registry.making import drafted
from cloister.core.registry.oracle_resolver import OracleResolver
from cloister.core.roles import FrequencyOracle
from cloister.core.session import Session, forecast
from cloister.core.trust import trust_named
from cloister.core.wrappers import ColumnNames
from cloister.rows.keywords import Texts, column_names, described
from cloister.rows.selection import Selection
from cloister.run.bounds import domain_for
from cloister.run.layers import levels
from cloister.run.layers.histograms import SHARE
from cloister.run.layers.layer import Scope
from cloister.run.layers.stack import Stack
from cloister.run.method_selection import (
    HOPELESS,
    NO_BETTER,
    MethodSelection,
    MethodSelector,
    Planned,
    check_chooses,
    number_of_centers,
)
from cloister.run.population import check_trust
from cloister.run.row_count import counted, counter_of, shares, with_count


@attrs.frozen(kw_only=True)
class Request:
    """Caller's request, all of it public. NumPy numbers become Python's own, so that results can be saved.

    Args:
        k: number of centres; or a range (fewest, most), also as text "2..20", of which the run chooses one
            (``run.method_selection``).
        method: draft of the method, as ``making.drafted`` makes it of a name with components and options; also a name
            alone, or a component, which is recorded by name (a class that is not registered runs in memory only).
            ``auto`` picks the method that predicts the least error.
        epsilon: nats, for the whole run.
        delta: probability, for the whole run; 0 if only pure noise is added.
        bounds: as ``cloister.run.bounds.domain_for`` takes them.
        rows: the public number of rows, a round figure; None: a noisy count, paid (``row_count``). With
            ``rows_per_user``, the number of rows kept.
        rows_per_user: public limit of rows kept per user (contribution bounding), in a guarantee for users, whom rows
            must name; None: the guarantee is for rows.
        zoom, scale: as ``cloister.run.layers.preprocessing`` takes them.
        not_private: allow components that give no guarantee.
        seed: of the run's public choices; by default a fresh one.
        trust: a trust model by name, whose oracles fill all slots that the draft leaves open; None: the method's own
            oracles.
        parties: number of parties that pool their rows, under Aggregated trust; 0: as options say.
        describe: columns that describe the groups, clustered or not.
        describe_words: column of texts whose keywords, of which no list is public, describe the groups.
        most_words: limit of keywords that count per row.
        describe_share: share of the budget for the description, half of it for keywords if columns are given too.
        laws: ``auto`` may take Laplace noise if that predicts less error, at the same (epsilon, delta). It costs more
            rho, in which some lifetimes compose.
        start: public centres to begin from, as ``cloister.run.layers.warm_start`` takes them; None: there are none.
    """

    k: int | tuple[int, int] = attrs.field(converter=number_of_centers)
    method: Draft = attrs.field(factory=lambda: drafted("auto"), converter=drafted)
    epsilon: float = attrs.field(converter=own_number)
    delta: float = attrs.field(default=DELTA, converter=own_number)
    bounds: Any = None
    rows: int | None = attrs.field(default=None, converter=own_number)
    rows_per_user: int | None = attrs.field(default=None, converter=own_number)
    zoom: str | float = attrs.field(default="auto", converter=own_number)
    scale: Any = None
    not_private: bool = False
    seed: int | None = attrs.field(default=None, converter=own_number)
    trust: str | None = attrs.field(default=None, converter=trust_named)
    parties: int = 0
    describe: Sequence[str] = attrs.field(default=(), converter=column_names)
    describe_words: str | None = None
    most_words: int | None = attrs.field(default=None, converter=own_number)
    describe_share: float = attrs.field(default=SHARE, converter=own_number)
    laws: bool = True
    start: Any = None

    @property
    def most(self) -> int:
        """Number of centres that the run is planned for."""
        return self.k[1] if isinstance(self.k, tuple) else self.k

    @property
    def fewest(self) -> int | None:
        """Least k of a range; None if k is one number."""
        return self.k[0] if isinstance(self.k, tuple) else None

    @property
    def composed(self) -> Composed:
        """Method before anything is chosen. Raises: CloisterError: it does not compose."""
        return OracleResolver(self.trust).filled(self.method)

    @property
    def described(self) -> list[str | Texts]:
        """Columns that describe the groups."""
        return described(self.describe, self.describe_words, self.most_words)


@attrs.frozen(eq=False)
class PreparedRun:
    """Checked plan of a run, before any row is read.

    Args:
        problem: the method's.
        composed: the method with the components in its slots.
        total: guarantee of the whole run.
        table: the rows' columns.
        budget: of the whole run.
        rows: public or counted number of rows; None: still to be counted.
        choice: how the method was picked, if it was.
        planned: makes the plan for a number of rows.
        counter: the oracle that counts the rows; None: their number is public.
    """

    problem: Problem
    composed: Composed
    total: PrivacyTarget
    table: Selection
    budget: Budget
    rows: int | None
    choice: MethodSelection | None
    planned: Callable[[int], Planned]
    counter: FrequencyOracle[Any] | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the rows' columns: clustered ones, those that only describe, then the column of keywords."""
        return (*self.names.features, *(f"words of {texts.column}" for texts in self.table.texts))

    @property
    def names(self) -> ColumnNames:
        """Names of the rows' columns, as the layers take them."""
        words = "".join(texts.column for texts in self.table.texts)
        return ColumnNames(self.table.without_keywords.features, self.table.recorded(), words)

    @property
    def levels(self) -> Sequence[levels.Level]:
        """Method and the layers around it, each with its problem."""
        return levels.levels(self.composed, self.problem)

    @property
    def clustered(self) -> tuple[str, ...]:
        """Names of the columns that centres have."""
        return self.table.clustered.features

    def digest(self) -> str:
        """Return a digest of the whole plan: a run is resumed only under the same one."""
        p = self.problem
        facts = (p.k, p.fewest, p.domain, self.rows, self.total, self.budget, self.columns)
        return digest((__version__, self.composed.config(), *facts))

    def forecast(self, seed: PublicRng) -> list[Round[Any]]:
        """Return the rounds that will be asked, each with its cost; before a count, for a likely number of rows."""
        return self.first_stage(seed) + forecast(self.composed.value, self.problem, seed)

    def first_stage(self, seed: PublicRng) -> list[Round[Any]]:
        """Return the round that counts the rows, unless their number is known."""
        session: Session[Any] = Session(self.problem, seed, forecasting=True)
        self.count_rows(session)
        return session.rounds

    def count_rows(self, session: Session[Any]) -> int:
        """Return the public number of rows, or ask for a noisy one."""
        if self.rows is not None:
            return self.rows
        assert self.counter is not None
        return counted(session, self.counter, shares(self.budget)[0], self.problem.k)

    @property
    def price(self) -> str:
        """Sentences on what the layers spend; empty if they spend nothing."""
        return " ".join(levels.prices(self.levels, self.names))

    @property
    def error(self) -> float | None:
        """Error that the method predicts from public figures, in parts of one centre's cost; None: it predicts none."""
        if self.choice is not None:
            return self.choice.error
        stack = self.levels
        method, problem = stack[0].composed, levels.clustering(stack).problem
        predicts = isinstance(method.value, PredictsError)
        return predicted_loss(method.value, problem, method.spec.objective) if predicts else None

    @property
    def warnings(self) -> Iterator[str]:
        """Warnings of a budget that is too small for the method or a layer."""
        yield from levels.warnings(self.levels)
        if self.choice is not None:
            yield from filter(None, [self.choice.warning])
        elif self.error is not None and self.error >= NO_BETTER:
            yield f"the predicted error of '{levels.method_of(self.composed).spec.name}' is {HOPELESS}"

    def describe(self) -> dict[str, Any]:
        """Return the problem as plain data."""
        stack = self.levels
        domain = levels.clustering(stack).problem.domain
        assert isinstance(domain, (Box, Ball))
        rows_per_user = self.total.rows_per_user
        facts: dict[str, Any] = {} if rows_per_user is None else {"rows per user": rows_per_user}
        if used := self.table.clustered.recorded():
            facts["categories"] = used
        facts |= levels.facts(stack, self.names)
        if self.problem.fewest is not None:
            facts["k_range"] = [self.problem.fewest, self.problem.k]
        return {"k": self.problem.k, "rows": self.rows, **facts, "bounds": plain(domain), "lattice unit": domain.unit}


def pooled_trust(parties: int, trust: str | None) -> str:
    """Return the trust model of parties that pool. Raises InvalidInput for one party, or another model."""
    if trust is not None and trust.lower() != "aggregated":
        raise InvalidInput(
            f"--pooled simulates parties under aggregated trust, and --trust is {trust}: leave out one of them"
        )
    if parties < 2:
        raise InvalidInput(
            "--pooled takes each path or pattern as one party's rows, and the noise depends on how many there are: "
            "give two parties or more"
        )
    return "aggregated"


def refuse_unregistered(composed: Composed, feature: str) -> None:
    """Raise InvalidInput if a class is not registered, so that the record which ``feature`` needs cannot name it."""
    if name := composed.unregistered:
        raise InvalidInput(
            f"{feature} records the method by registry names, and {name} has none: it runs in memory only. Offer it in "
            f"a plugin ('cloister new-plugin' writes one), or leave {feature} out"
        )


def _check_whole_numbers(request: Request) -> None:
    for name, value in (("k", request.most), ("rows", request.rows), ("seed", request.seed)):
        number: Any = value
        if number is not None and (isinstance(number, bool) or not isinstance(number, Integral)):
            raise InvalidInput(f"{name} is {value!r}: give a whole number")


def prepare(
    request: Request, columns: Sequence[str], only: str | None = None, chosen_columns: Selection | None = None
) -> PreparedRun:
    """Check all that does not depend on a row, and decide what the request leaves open (``run.method_selection``).

    Args:
        request: the request.
        columns: names of the rows' columns.
        only: the candidate of ``auto`` to take, whatever it predicts.
        chosen_columns: the selection from a table, which knows categories and booleans; None: plain columns.

    Raises:
        InvalidInput, UnknownName, WrongComposition: in one line that says what to do.
    """
    _check_whole_numbers(request)
    table = chosen_columns or Selection(tuple(columns)).with_described(request.described)
    request, stack = Stack.read(request, table)
    composed, kit = request.composed, request.method.kit
    if not composed.private and not request.not_private:
        raise InvalidInput(
            f"'{composed.spec.name}' as composed is NOT private: it releases exact answers. For a benchmark on rows "
            f"that are not secret, allow it with --not-private (not_private=True)"
        )
    domain = domain_for(request.bounds, table)
    total = PrivacyTarget(request.epsilon, request.delta, rows_per_user=request.rows_per_user)
    check_trust(total, composed.spec.name, composed.trust)
    # what suggests k is calibrated on Gaussian counts; and where rows are counted first, both stages add up in rho
    jointly = request.laws and request.rows is not None and request.fewest is None

    def planned(rows: int) -> Planned:
        scope = Scope(total, request.most, domain, rows, kit, request.trust, request.parties, jointly)
        layers = stack.placed(scope)
        selector = MethodSelector(layers.inside, request.fewest, layers.asks)
        method, _, choice = selector.chosen(request.method, composed, only)
        if request.fewest is not None:
            check_chooses(method, request.fewest, scope)
        method = layers.around(method)
        problem = scope.whole(method)
        levels.levels(method, problem)  # refuses what a layer cannot ask
        return method, attrs.evolve(problem, fewest=request.fewest), choice

    (chosen, problem, choice), budget = with_count(planned, total, request.most, request.rows)
    if budget.measure == "pure" and not budget.delta and chosen.trust != "Shuffled":
        total = attrs.evolve(total, delta=0.0)  # nothing needs more, and what is promised is what is paid
    counter = counter_of(kit, budget.measure) if request.rows is None else None
    return PreparedRun(problem, chosen, total, table, budget, request.rows, choice, planned, counter)
