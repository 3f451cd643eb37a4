"""Trust models as marker types: who may see a row, and which data sets are neighbours.

A marker is a type, never an instance. Oracles, questions, rounds, populations and sessions carry one as a type
argument, so that type checkers flag a wrong combination. The TypeVars are *constrained*: a bound one would let
``Central | Local`` through.
"""

from __future__ import annotations

from typing import Literal, TypeAlias, TypeVar

from cloister.core.errors import UnknownName

Relation: TypeAlias = Literal["add-or-remove one row", "replace one row"]


class Trust:
    """Base class of the markers.

    Attributes:
        relation: neighbouring data sets.
        promise: one sentence for statements.
    """

    relation: Relation
    promise: str


class Central(Trust):
    """Trust model in which a curator sees the rows and adds the noise."""

    relation: Relation = "add-or-remove one row"
    promise = (
        "Whoever runs cloister sees the rows; whoever gets the result does not learn whether any one row was there."
    )


class Aggregated(Trust):
    """Trust model in which parties pool sums that none of them can read alone."""

    relation: Relation = "add-or-remove one row"
    promise = "Each party sees its own rows; nobody sees another party's rows or an un-noised sum."


class Local(Trust):
    """Trust model in which every person randomises their own row before it leaves the device."""

    relation: Relation = "replace one row"
    promise = "Nobody but the person herself sees her row; every report is private by itself."


class Shuffled(Trust):
    """Trust model in which every person randomises a little, and a shuffler hides who sent what."""

    relation: Relation = "replace one row"
    promise = "Nobody but the person herself sees her row; the stated guarantee needs an honest shuffler."


T = TypeVar("T", Central, Local, Shuffled, Aggregated)
"""Trust model of a method that works under any: that of all its slots, and of its session."""
T_co = TypeVar("T_co", Central, Local, Shuffled, Aggregated, covariant=True)
T_contra = TypeVar("T_contra", Central, Local, Shuffled, Aggregated, contravariant=True)

TRUSTS: dict[str, type[Trust]] = {t.__name__: t for t in (Central, Local, Shuffled, Aggregated)}


def trust_named(name: str | None) -> str | None:
    """Return a trust marker's name, given in any case.

    Raises:
        UnknownName: there is no such trust model.
    """
    if name is not None and str(name).capitalize() not in TRUSTS:
        raise UnknownName("trust", str(name), (t.lower() for t in TRUSTS))
    return None if name is None else name.capitalize()
