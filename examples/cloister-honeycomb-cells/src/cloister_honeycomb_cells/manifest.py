"""What this plugin offers. Cloister reads it at every start: import nothing heavy here."""

from cloister.plugin import Spec, hookimpl


@hookimpl
def cloister_components() -> list[Spec]:
    target = "cloister_honeycomb_cells.tree:HoneycombCells"
    return [Spec("honeycomb-cells", "TreeBuilder", target, "hexagons of equal size, for two columns")]
