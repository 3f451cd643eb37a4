"""Program that runs a method of cloister as an entrant. Its argument is the method, with its options."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from cloister.core.errors import CloisterError
from cloister.lab.comparing.contenders import Contender
from cloister.run.fit import fit, source
from cloister.run.request import Request
from cloister.run.result import Result
from cloister.run.statement import PrivacyStatement

KEYS = {"pure": "epsilon", "zcdp": "rho"}
"""Key of a mechanism's amount in a statement, by its measure; mu^2 becomes ``mu``."""


def main() -> None:
    """Run the method that the first argument names on what the environment tells."""
    method, environment = sys.argv[1], os.environ
    rows = np.load(environment["BENCH_ROWS_NPY"])
    results = [one_release(method, rows, environment, i) for i in range(int(environment["BENCH_REPEATS"]))]
    centers = [result.centers.tolist() for result in results]
    Path(environment["BENCH_OUT"]).write_text(json.dumps(centers[0] if len(centers) == 1 else centers))
    Path(environment["BENCH_STATEMENT"]).write_text(json.dumps(stated(results[0].privacy)))


def one_release(method: str, rows: Any, environment: Mapping[str, str], number: int) -> Result:
    """Return the result of one run. Args: number (of the release, which changes the public choices)."""
    contender, bounds = Contender.of(method), np.loadtxt(environment["BENCH_BOUNDS"], delimiter=",", ndmin=2)
    delta = float(environment["BENCH_DELTA"]) if contender.delta is None else contender.delta
    request = Request(
        k=int(environment["BENCH_K"]),
        method=contender.draft,
        epsilon=float(environment["BENCH_EPSILON"]),
        delta=delta,
        bounds=[(low, high) for low, high in bounds.tolist()],
        rows=int(environment["BENCH_N"]),
        trust=contender.trust,
        not_private=True,
        seed=int(environment["BENCH_SEED"]) + number,
        zoom="off",
    )
    return fit(request, source(rows, threads=1))


def stated(privacy: PrivacyStatement) -> list[dict[str, Any]]:
    """Return the mechanisms of a run as entrants state them; one line where people answered different questions."""
    if not privacy.protects:
        return []
    if any(spend.users != 1.0 or spend.measure == "exact" for spend in privacy.spends) or privacy.trust == "Shuffled":
        return [{"mechanism": "the whole run", "epsilon": privacy.epsilon, "delta": privacy.delta}]
    lines = list[dict[str, Any]]()
    for spend in privacy.spends:
        amount = {"mu": spend.amount**0.5} if spend.measure == "gaussian" else {KEYS[spend.measure]: spend.amount}
        line = {"mechanism": f"round {spend.round + 1}, {spend.question}: {spend.mechanism}", **amount}
        lines.append({**line, "delta": spend.delta} if spend.delta else line)
    return lines


if __name__ == "__main__":
    try:
        main()
    except CloisterError as error:
        sys.exit(f"cloister: {error}")
