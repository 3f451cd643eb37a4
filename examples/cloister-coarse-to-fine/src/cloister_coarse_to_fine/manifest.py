"""What this plugin offers. Cloister reads it at every start: import nothing heavy here."""

from cloister.plugin import Spec, hookimpl


@hookimpl
def cloister_components() -> list[Spec]:
    target = "cloister_coarse_to_fine.method:CoarseToFine"
    return [Spec("coarse-to-fine", "Method", target, "k-means by counts of cells, then one round of noisy means")]
