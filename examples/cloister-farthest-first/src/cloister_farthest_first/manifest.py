"""What this plugin offers. Cloister reads it at every start: import nothing heavy here."""

from cloister.plugin import Spec, hookimpl


@hookimpl
def cloister_components() -> list[Spec]:
    target = "cloister_farthest_first.solver:FarthestFirst"
    return [Spec("farthest-first", "NonPrivateSolver", target, "k-means from heavy points far apart, no coin tossed")]
