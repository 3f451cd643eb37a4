"""Which bucket a row is in, in SQL: the bucketings of ``docs/reference/format.md``.

Not compiled: ``nets``, whose points are found by sorting the remainders of each row and named by hashes that wrap
around at 2^64, which engines refuse as an overflow; and kinds of methods under local trust, which no curator asks with.
"""

from __future__ import annotations

import attrs
import ibis

from cloister.sql.arithmetic import integer
from cloister.sql.bundles import Described, Description, NotCompiled
from cloister.sql.cells import by_columns, by_grid, by_quadtree
from cloister.sql.centers import by_center, by_distance
from cloister.sql.directions import by_direction, by_shell, by_signs
from cloister.sql.located import Locate, Located, one_level
from cloister.sql.stage import Stage


def located(stage: Stage, cells: Description, known: Described) -> Located:
    """Lattice rows to bucket ids. Raises: NotCompiled: there is no SQL for such buckets, or it would be too long."""
    if cells["kind"] not in KINDS:
        raise NotCompiled(f"buckets of kind '{cells['kind']}' have no form in SQL")
    return KINDS[cells["kind"]](stage, cells, known)


def _one(stage: Stage, cells: Description, known: Described) -> Located:
    return one_level(stage, integer(0))


def _last(stage: Stage, cells: Description, known: Described) -> Located:
    found = located(stage, cells["of"], known)
    group, down = found.levels[-1]
    return attrs.evolve(found, ids=found.ids[group : group + 1], levels=((0, down),))


def _spared(stage: Stage, cells: Description, known: Described) -> Located:
    near = located(stage, cells["near"], known)
    found = located(near.stage, cells["of"], known)
    spared = found.stage[near.ids[0]].isin(cells["bad"])
    made, names = found.stage.add(*(ibis.ifelse(spared, -1, found.stage[name]) for name in found.ids))
    return attrs.evolve(found, stage=made, ids=tuple(names))


KINDS: dict[str, Locate] = {
    "one": _one, "grid": by_grid, "directions": by_direction, "signs": by_signs, "centers": by_center,
    "shells": by_shell, "distances": by_distance, "columns": by_columns, "last": _last, "spared": _spared,
    "quadtree": by_quadtree,
}  # fmt: skip
"""How each kind of bucketing is compiled."""
