"""Built-in components, which ``hook`` registers like a plugin's. Imports nothing heavy."""

from __future__ import annotations

from typing import TypeAlias

from cloister.plugin import Role, Spec
from cloister.plugins.methods.manifest import CHANG, COHEN, methods
from cloister.plugins.oracles.manifest import oracles

ARTHUR = "Arthur, Vassilvitskii (2007)"

Row: TypeAlias = tuple[str, str, str, str, dict[str, float]]
"""Name, class, summary, source and presets."""

TREES: tuple[Row, ...] = (
    ("spread-cells", "spread_cells:SpreadCells", "flat partition by direction, in any dimension", "", {}),
    ("simhash", "simhash:SimHash", "binary tree of sign bits", CHANG, {}),
    ("net-tree", "net_tree:NetTree", "lattice nets of halving radii over a random projection", CHANG, {}),
    ("grid", "grid:Grid", "equal cells, in up to three dimensions", "", {}),
    (
        "shifted-quadtree",
        "quadtree:ShiftedQuadtree",
        "binary tree of boxes with random cuts, over few columns or a random projection",
        COHEN,
        {},
    ),
    (
        "whole-quadtree",
        "quadtree:ShiftedQuadtree",
        "the same over all columns, counted from the root, with the paper's stopping rule",
        COHEN,
        {"top": 0, "dimensions": 60, "significance": 2**0.5},
    ),
    ("simhash-nodes", "simhash:SimHash", "512 nodes by nine sign bits", COHEN, {"depth": 9}),
)

SOLVERS: tuple[Row, ...] = (
    ("kmeans++", "plus_plus:KMeansPlusPlus", "weighted k-means on released points", ARTHUR, {}),
    (
        "ward",
        "ward:Ward",
        "Ward's clustering with noise taken off distances, exchange, shrinking",
        "Ward (1963)",
        {},
    ),
    ("tree-program", "tree_program:TreeProgram", "the best centres on a tree metric, exactly", COHEN, {}),
    ("tree-program-means", "tree_program:TreeProgram", "the same for squared distances", COHEN, {"power": 2}),
    (
        "reverse-greedy",
        "reverse_greedy:ReverseGreedy",
        "drops released points one by one",
        f"Chrobak, Kenyon, Young (2006); {COHEN}",
        {},
    ),
    (
        "kmedian++",
        "plus_plus:KMedianPlusPlus",
        "weighted k-median on released points",
        f"{ARTHUR}; Weiszfeld (1937)",
        {},
    ),
)

POPULATIONS: tuple[tuple[str, str, str, str | None, str], ...] = (
    ("arrays", "arrays:Arrays", "rows in memory: NumPy, pandas, polars", None, "memory"),
    ("files", "files:Files", "rows in files, a chunk at a time", None, "files"),
    ("sql", "sql_table:SqlTable", "rows in a database, whose engine does the passes", None, "databases"),
    ("parties", "parties:Parties", "organisations that pool masked sums, in one process", "Aggregated", "parties"),
)
"""Name, class, summary, trust and what it reads."""


def components() -> list[Spec]:
    """Return the methods, then the components of their slots, then the populations."""
    slots: tuple[tuple[Role, str, tuple[Row, ...]], ...] = (
        ("TreeBuilder", "trees", TREES),
        ("NonPrivateSolver", "solvers", SOLVERS),
    )
    return [
        *methods(),
        *oracles(),
        *(
            Spec(name, role, f"cloister.plugins.{folder}.{target}", summary, paper=paper, presets=presets)
            for role, folder, rows in slots
            for name, target, summary, paper, presets in rows
        ),
        *(
            Spec(name, "Population", f"cloister.plugins.populations.{target}", summary, trust, reads=reads)
            for name, target, summary, trust, reads in POPULATIONS
        ),
    ]
