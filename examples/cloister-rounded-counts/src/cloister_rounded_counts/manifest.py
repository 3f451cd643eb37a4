"""What this plugin offers. Cloister reads it at every start: import nothing heavy here."""

from cloister.plugin import Spec, hookimpl


@hookimpl
def cloister_components() -> list[Spec]:
    target = "cloister_rounded_counts.oracle:RoundedCounts"
    return [
        Spec("rounded-counts", "FrequencyOracle", target, "counts with Laplace noise, rounded to a step", "Central")
    ]
