"""The constants of predicted errors (plugins/methods/error_law.py), and how often the prediction picks the best method.

    python benchmarks/predicted.py --store cells.jsonl
    python benchmarks/predicted.py --forecasts          what the default lost, over what it had predicted

Candidates of ``auto`` run on generated mixtures and on six stored sets (CLOISTER_DATA). What each lost against
scikit-learn, over what one centre would lose, is regressed on n mu / k, d and k, with an effect of every set. Printed:
the law of each method, and for ``shrunk-lloyd``, whose rivals depend on it most, the one near it that picks best
beside the others as they stand in the library; NICV over scikit-learn's of the method that the laws pick and of the
one that was best, for laws that were fitted on all sets, and for ones fitted without the fifth of the sets that they
are judged on.

With ``--forecasts`` the default itself runs, on small tables, too, and what it lost of what one centre at the middle
loses is compared with what ``explain`` had said.
"""

from __future__ import annotations

import argparse
import math
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Final

import accuracy
import attrs
import calibration
import numpy as np
from accuracy import Cell
from scipy.optimize import differential_evolution

from cloister.accounting.budgeting import problem_of
from cloister.accounting.conversions import mu_of
from cloister.accounting.privacy_target import PrivacyTarget
from cloister.core.capabilities import predicted_error
from cloister.core.domains import Box
from cloister.core.errors import InvalidInput
from cloister.core.registry.compose import compose
from cloister.core.registry.registry import registry
from cloister.core.types import Floats
from cloister.lab.papers import sets as datasets
from cloister.lab.papers.hst import seeded
from cloister.metrics import k_median_cost, nicv
from cloister.run.fit import fit, source
from cloister.run.request import Request, prepare

REAL: Final = ("iris", "wine", "house", "s1", "digits8x8", "shuttle")
EPSILONS: Final = (0.1, 0.25, 0.5, 1.0)
RUNS: Final = 3
SOFT, PULL = 0.15, 0.01
"""Of ``moved``: how close two predictions are for either to be taken, in logarithms; and what keeps a law near."""

SEEN, MOST = 0.002, 6000
"""What is lost of what one centre loses, from which on a forecast is judged; and rows of a set for k-median."""

ONE_SET: Final = 1.0
"""Weight that keeps the effect of a set small, so that laws say how large errors are."""


@attrs.frozen
class Loss:
    """What a method lost in a cell. Args: data, method, epsilon, x (1, log q, log d, log k), scale (the law's part with
    k^(-2/d), as a logarithm), part (of what one centre loses), error (v, as a logarithm), ratio (NICV over
    scikit-learn's)."""

    data: str
    method: str
    epsilon: float
    x: tuple[float, ...]
    scale: float
    part: float
    error: float
    ratio: float


def losses(measured: Mapping[Cell, Sequence[float]]) -> list[Loss]:
    """Everything that was measured, against scikit-learn and one centre at the middle."""
    from sklearn.cluster import KMeans

    found, best = list[Loss](), dict[str, float]()
    for cell, values in measured.items():
        data = accuracy.data_of(cell.data)
        n, d = data.rows.shape
        if cell.data not in best:
            best[cell.data] = KMeans(data.k, n_init=3, random_state=0).fit(data.rows).inertia_ / n  # type: ignore[arg-type]
        reference, middle = best[cell.data], nicv(data.rows, np.zeros((1, d)))
        lost, most = (float(np.mean(values)) - reference) / d, (middle - reference) / d
        part = min(max(lost / most, 1e-6), 0.95)
        q = n * mu_of(cell.epsilon, datasets.delta(n)) / data.k
        x = (1.0, math.log(q), math.log(d), math.log(data.k))
        error = math.log(max(part / (1 - part) * most, 1e-7))
        found.append(
            Loss(
                cell.data, cell.method, cell.epsilon, x, -2 / d * x[3], part, error, float(np.mean(values)) / reference
            )
        )
    return found


def laws(lost: Sequence[Loss], methods: Sequence[str]) -> dict[str, Floats]:
    """Per method (log factor, -power, columns, groups): weighted least squares; small losses decide less."""
    sets = sorted({loss.data for loss in lost})
    width = 4 * len(methods) + len(sets)
    rows, targets = list[Floats](), list[float]()
    for loss in lost:
        row, at = np.zeros(width), 4 * methods.index(loss.method)
        row[at : at + 4] = loss.x
        row[4 * len(methods) + sets.index(loss.data)] = 1
        weight = (2 if loss.data in REAL else 1) * math.sqrt(min(1.0, max(loss.ratio - 1, 0.003) / 0.1))
        rows.append(weight * row)
        targets.append(weight * (loss.error - loss.scale))
    ridge = np.diag([0.02] * (4 * len(methods)) + [ONE_SET] * len(sets))
    solved = np.linalg.lstsq(np.vstack([*rows, ridge]), np.append(targets, np.zeros(width)), rcond=None)[0]
    return {method: solved[4 * i : 4 * i + 4] for i, method in enumerate(methods)}


def picked(lost: Sequence[Loss], law: Mapping[str, Floats], epsilon: float) -> tuple[list[float], list[float]]:
    """Logarithms of the ratios of the method that the laws pick and of the best, per set."""
    cells = defaultdict[str, list[Loss]](list)
    for loss in lost:
        if loss.epsilon == epsilon:
            cells[loss.data].append(loss)
    ours = [min(cell, key=lambda a: a.scale + float(np.dot(law[a.method], a.x))) for cell in cells.values()]
    best = [min(cell, key=lambda a: a.ratio) for cell in cells.values()]
    return [math.log(loss.ratio) for loss in ours], [math.log(loss.ratio) for loss in best]


def moved(lost: Sequence[Loss], method: str, law: Floats) -> Floats:
    """The law near a method's own by which ``auto`` picks best: what is picked, by a soft choice between the method and
    the best of the others' predictions, and ``PULL`` times the mean square by which its logarithms move."""
    mine = [loss for loss in lost if loss.method == method]
    others = defaultdict[tuple[str, float], list[tuple[float, float]]](list)
    for loss in lost:
        if loss.method != method:
            others[loss.data, loss.epsilon].append((standing(loss), math.log(loss.ratio)))
    x, scales = np.array([loss.x for loss in mine]), np.array([loss.scale for loss in mine])
    ratios = np.log([loss.ratio for loss in mine])
    values, theirs = np.array([min(others[loss.data, loss.epsilon]) for loss in mine]).T

    def cost(found: Floats) -> float:
        taken = 1 / (1 + np.exp((scales + x @ found - values) / SOFT))
        return float(np.mean(taken * ratios + (1 - taken) * theirs) + PULL * np.mean((x @ (found - law)) ** 2))

    best: Floats = differential_evolution(cost, [(v - 1.5, v + 1.5) for v in law], seed=0, tol=1e-8).x
    return best


def standing(loss: Loss) -> float:
    """The logarithm of the error that the library predicts for a cell today; infinite where the method cannot run."""
    data = accuracy.data_of(loss.data)
    n, d = data.rows.shape
    composed = compose(registry(), "Method", loss.method, {}, {})
    total = PrivacyTarget(loss.epsilon, datasets.delta(n))
    try:
        problem = problem_of(composed, total, data.k, Box((-1.0,) * d, (1.0,) * d), n)
        return math.log(predicted_error(composed.value, problem))
    except InvalidInput:
        return math.inf


def predicted(name: str, method: str, epsilon: float) -> float:
    """What ``explain`` says, of what one centre at the middle loses."""
    data = accuracy.data_of(name)
    n, d = data.rows.shape
    asked = Request(k=data.k, method=method, epsilon=epsilon, delta=datasets.delta(n), bounds=(-1, 1), rows=n)
    return prepare(asked, [f"x{j}" for j in range(d)]).error or 0.0


def of_median(names: Sequence[str], processes: int) -> list[tuple[float, float]]:
    """Parts that the default for k-median lost, and predicted, on sets that are not too large for it."""
    asked = [(name, eps) for name in names if len(accuracy.data_of(name).rows) <= MOST for eps in (*EPSILONS, 4.0)]
    with ProcessPoolExecutor(processes) as pool:
        lost = list(pool.map(lost_of_median, asked))
    return [(part, predicted(name, "auto-median", eps)) for part, (name, eps) in zip(lost, asked, strict=True)]


def lost_of_median(asked: tuple[str, float]) -> float:
    """The part of what one centre loses that runs of ``auto-median`` lose, beyond k-median++ without privacy."""
    name, epsilon = asked
    data = accuracy.data_of(name)
    n, d = data.rows.shape
    request = Request(
        k=data.k, method="auto-median", epsilon=epsilon, delta=datasets.delta(n), bounds=(-1.0, 1.0), rows=n
    )
    best = min(k_median_cost(data.rows, seeded(data.rows, data.k)) for _ in range(RUNS))
    cost = np.mean([k_median_cost(data.rows, fit(request, source(data.rows)).centers) for _ in range(RUNS)])
    return float((cost - best) / (k_median_cost(data.rows, np.zeros((1, d))) - best))


def told(pairs: Sequence[tuple[float, float]]) -> str:
    """How often what was lost lay how far from what was predicted, where it was more than ``SEEN``. Args: parts, lost
    and predicted."""
    of = np.array([(min(part, 0.95), said) for part, said in pairs if part > SEEN])
    odds = (of / (1 - of))[:, 0] / (of / (1 - of))[:, 1]
    low, middle, high = np.quantile(odds, [0.1, 0.5, 0.9])
    near = np.mean((of[:, 0] > 0.6 * of[:, 1]) & (of[:, 0] < 1.6 * of[:, 1]))
    return (
        f"odds of what was lost over those predicted, {len(of)} cells: half above {middle:.2f}, eight of ten between "
        f"{low:.2f} and {high:.2f}; {near:.0%} of parts within 0.6 to 1.6"
    )


def without(lost: Sequence[Loss], sets: Collection[str]) -> list[Loss]:
    return [loss for loss in lost if loss.data not in sets]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--forecasts", action="store_true")
    parser.add_argument("--store", type=Path, help="a folder of studies, to go on with")
    o = parser.parse_args()
    sets = [*(f"calibration {i}" for i in range(calibration.NUMBER)), *REAL]
    if o.forecasts:
        sets += [f"few {i}" for i in range(calibration.FEW)]
    methods = ["auto"] if o.forecasts else [s.name for s in registry().candidates("k-means") if s.name != "one-round"]
    cells = [Cell(name, method, eps, RUNS) for name in sets for method in methods for eps in EPSILONS]
    lost = losses(accuracy.run(cells, o.processes, o.store))
    if o.forecasts:
        print("k-means:", told([(loss.part, predicted(loss.data, loss.method, loss.epsilon)) for loss in lost]))
        print("k-median:", told(of_median(sets, o.processes)))
        return
    whole = laws(lost, methods)
    shown = {**whole, "shrunk-lloyd, moved": moved(lost, "shrunk-lloyd", whole["shrunk-lloyd"])}
    for method, law in shown.items():
        print(f"{method:<20} ErrorLaw({math.exp(law[0]):.3g}, {-law[1]:.3g}, {law[2]:.3g}, {law[3]:.3g})")
    folds = [sets[i::5] for i in range(5)]
    for epsilon in EPSILONS:
        ours, best = picked(lost, whole, epsilon)
        apart = [
            v
            for fold in folds
            for v in picked(without(lost, set(sets) - set(fold)), laws(without(lost, fold), methods), epsilon)[0]
        ]
        figures = (math.exp(float(np.mean(values))) for values in (ours, apart, best))
        print("epsilon {:g}: picked {:.3f}, picked on sets not fitted {:.3f}, best {:.3f}".format(epsilon, *figures))


if __name__ == "__main__":
    main()
