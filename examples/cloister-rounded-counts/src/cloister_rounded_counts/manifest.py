"""What this plugin offers. Imports nothing heavy: the class is named as text."""

from __future__ import annotations

from collections.abc import Iterable

from cloister.plugin import Spec, hookimpl


@hookimpl
def cloister_components() -> Iterable[Spec]:
    target = "cloister_rounded_counts.oracle:RoundedCounts"
    return [
        Spec(
            "rounded-laplace",
            "FrequencyOracle",
            target,
            "counts with Laplace noise, rounded to a public step",
            "Central",
        )
    ]
