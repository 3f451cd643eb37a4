"""What this plugin offers. Imports nothing heavy: the class is named as text."""

from cloister.plugin import Spec, hookimpl


@hookimpl
def cloister_components() -> list[Spec]:
    target = "cloister_rounded_counts.oracle:RoundedCounts"
    return [
        Spec("rounded-laplace", "FrequencyOracle", target, "counts with Laplace noise, rounded to a step", "Central")
    ]
