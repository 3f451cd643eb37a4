"""Components that cloister itself offers (``hook`` passes it on as every plugin does). Imports nothing heavy."""

from __future__ import annotations

from cloister.core.registry.components import Spec
from cloister.plugins.methods.manifest import CHANG, COHEN, methods
from cloister.plugins.oracles.manifest import oracles

TREES = "cloister.plugins.trees"


def components() -> list[Spec]:
    """Methods first, then what fills their slots, and where rows are."""
    return [
        *methods(),
        *oracles(),
        *_trees(),
        *_solvers(),
        Spec(
            "arrays",
            "Population",
            "cloister.plugins.populations.arrays:Arrays",
            "rows in memory: NumPy, pandas, polars",
        ),
        Spec("files", "Population", "cloister.plugins.populations.files:Files", "rows in files, a chunk at a time"),
        Spec(
            "sql",
            "Population",
            "cloister.plugins.populations.sql_table:SqlTable",
            "rows in a database, whose engine does the passes",
        ),
        Spec(
            "parties",
            "Population",
            "cloister.plugins.populations.parties:Parties",
            "organisations that pool masked sums, in one process",
            "Aggregated",
        ),
    ]


def _trees() -> list[Spec]:
    """How methods cut the space into cells."""
    return [
        Spec(
            "spread-cells",
            "TreeBuilder",
            f"{TREES}.spread_cells:SpreadCells",
            "flat partition by direction, in any dimension",
        ),
        Spec("simhash", "TreeBuilder", f"{TREES}.simhash:SimHash", "binary tree of sign bits", paper=CHANG),
        Spec(
            "net-tree",
            "TreeBuilder",
            f"{TREES}.net_tree:NetTree",
            "lattice nets of halving radii over a random projection",
            paper=CHANG,
        ),
        Spec("grid", "TreeBuilder", f"{TREES}.grid:Grid", "equal cells, in up to three dimensions"),
        Spec(
            "shifted-quadtree",
            "TreeBuilder",
            f"{TREES}.quadtree:ShiftedQuadtree",
            "binary tree of boxes with random cuts, over few columns or a random projection",
            paper=COHEN,
        ),
        Spec(
            "simhash-nodes",
            "TreeBuilder",
            f"{TREES}.simhash:SimHash",
            "512 nodes by nine sign bits",
            paper=COHEN,
            presets={"depth": 9},
        ),
    ]


def _solvers() -> list[Spec]:
    """Centres of released points, or on a tree's released counts."""
    return [
        Spec(
            "kmeans++",
            "NonPrivateSolver",
            "cloister.plugins.solvers.plus_plus:KMeansPlusPlus",
            "weighted k-means on released points",
            paper="Arthur, Vassilvitskii (2007)",
        ),
        Spec(
            "ward",
            "NonPrivateSolver",
            "cloister.plugins.solvers.ward:Ward",
            "Ward's clustering with noise taken off distances, exchange, shrinking",
            paper="Ward (1963)",
        ),
        Spec(
            "tree-program",
            "NonPrivateSolver",
            "cloister.plugins.solvers.tree_program:TreeProgram",
            "the best centres on a tree metric, exactly",
            paper=COHEN,
        ),
        Spec(
            "tree-program-means",
            "NonPrivateSolver",
            "cloister.plugins.solvers.tree_program:TreeProgram",
            "the same for squared distances",
            paper=COHEN,
            presets={"power": 2},
        ),
        Spec(
            "reverse-greedy",
            "NonPrivateSolver",
            "cloister.plugins.solvers.reverse_greedy:ReverseGreedy",
            "drops released points one by one",
            paper="Chrobak, Kenyon, Young (2006); " + COHEN,
        ),
        Spec(
            "kmedian++",
            "NonPrivateSolver",
            "cloister.plugins.solvers.plus_plus:KMedianPlusPlus",
            "weighted k-median on released points",
            paper="Arthur, Vassilvitskii (2007); Weiszfeld (1937)",
        ),
    ]
