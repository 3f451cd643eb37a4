"""``accuracy.py auto``: the default method beside our others, the rivals, scikit-learn and the midpoint.

Figures are NICV over scikit-learn's on the same rows (peers.py): 1 is non-private. A mark says what a cell misses:

    (o)  more than 1.05 times the best of our other methods, plus two standard errors
    (r)  more than the best rival, plus two standard errors
    (m)  more than one centre at the middle of the bounds
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
import peers

from cloister.core.registry.registry import registry
from cloister.lab.papers.sets import TWELVE
from cloister.metrics import Mean, mean_interval

EPSILONS: Final = (0.1, 0.25, 0.5, 1.0)
BOUNDS: Final = {0.1: 1.61, 0.25: 1.29, 0.5: 1.15, 1.0: 1.09}
"""Geometric means over the twelve sets that auto must keep to."""

NOT_RIVALS: Final = ("scikit-learn", "midpoint", "mean")
SLACK: Final = 1.05
Found: TypeAlias = Mapping[tuple[str, str, float], Sequence[float]]
"""NICV of each run, by set, method and epsilon."""


def others() -> list[str]:
    """Our other methods: all that auto picks from."""
    return [spec.name for spec in registry().candidates("k-means")]


def runs_of(n: int, scale: float) -> int:
    """How many runs a figure is the mean of."""
    return max(2, round(scale * (20 if n <= 20_000 else 10)))


def relative(found: Found, name: str, method: str, epsilon: float) -> Mean | None:
    """NICV over scikit-learn's; None: not measured."""
    values = found.get((name, method, epsilon))
    base = peers.PEERS[name]["scikit-learn"][epsilon][0]
    return None if values is None else mean_interval(np.asarray(values) / base)


def rival(name: str, epsilon: float) -> tuple[str, float, float]:
    """The best rival of a cell: its name, and its figure with its standard error over scikit-learn's."""
    row = {r: f[epsilon] for r, f in peers.PEERS[name].items() if r not in NOT_RIVALS}
    best, base = min(row, key=lambda r: row[r][0]), peers.PEERS[name]["scikit-learn"][epsilon][0]
    return best, row[best][0] / base, row[best][1] / base


def marks(found: Found, name: str, epsilon: float, methods: Iterable[str]) -> str:
    """What auto's cell misses."""
    mine = relative(found, name, "auto", epsilon)
    if mine is None:
        return ""
    near = [m for m in (relative(found, name, method, epsilon) for method in methods) if m is not None]
    told = ""
    if near:
        best = min(near, key=lambda m: m.value)
        both = float(np.hypot(mine.standard_error, SLACK * best.standard_error))
        told += "o" if mine.value > SLACK * best.value + 2 * both else ""
    _, bar, error = rival(name, epsilon)
    told += "r" if mine.value > bar + 2 * float(np.hypot(mine.standard_error, error)) else ""
    told += "m" if mine.value > peers.PEERS[name]["midpoint"][epsilon][0] / _base(name, epsilon) else ""
    return f" ({told})" if told else ""


def _base(name: str, epsilon: float) -> float:
    return peers.PEERS[name]["scikit-learn"][epsilon][0]


def table(found: Found, names: Sequence[str]) -> list[str]:
    """A row per set and epsilon, and the geometric means over the sets that are complete."""
    methods = [m for m in others() if any((name, m, e) in found for name in names for e in EPSILONS)]
    columns = ["set", "ε", "auto", *methods, "best rival", "midpoint"]
    lines = [f"| {' | '.join(columns)} |", f"| {' | '.join(['---'] * len(columns))} |"]
    for name in names:
        for epsilon in EPSILONS:
            figures = [relative(found, name, method, epsilon) for method in ("auto", *methods)]
            shown = ["-" if f is None else f"{f.value:.3g} ± {f.standard_error:.2g}" for f in figures]
            shown[0] += marks(found, name, epsilon, methods)
            best, value, _ = rival(name, epsilon)
            midpoint = peers.PEERS[name]["midpoint"][epsilon][0] / _base(name, epsilon)
            lines.append(f"| {name} | {epsilon:g} | {' | '.join(shown)} | {value:.3g} {best} | {midpoint:.3g} |")
    lines += ["", *_means(found, names, ("auto", *methods))]
    return lines


def _means(found: Found, names: Sequence[str], methods: Sequence[str]) -> list[str]:
    lines = [
        f"| geometric mean over {len(names)} sets | {' | '.join(map(str, EPSILONS))} |",
        "| --- | --- | --- | --- | --- |",
    ]
    for method in methods:
        shown = []
        for epsilon in EPSILONS:
            figures = [relative(found, name, method, epsilon) for name in names]
            values = [f.value for f in figures if f is not None]
            bound = BOUNDS[epsilon] if method == "auto" and set(names) == set(TWELVE) else np.inf
            mean = float(np.exp(np.mean(np.log(values)))) if len(values) == len(names) else np.nan
            shown.append("-" if np.isnan(mean) else f"{mean:.3f}" + (" (!)" if mean > bound else ""))
        lines.append(f"| {method} | {' | '.join(shown)} |")
    best = [float(np.exp(np.mean([np.log(rival(name, epsilon)[1]) for name in names]))) for epsilon in EPSILONS]
    return [*lines, f"| best rival of each cell | {' | '.join(f'{value:.3f}' for value in best)} |"]


def draw(found: Found, names: Sequence[str], path: Path) -> None:
    """NICV over scikit-learn's against epsilon, a panel per set: auto, the rivals, the midpoint."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    plt.rcParams.update({"svg.hashsalt": "cloister", "svg.fonttype": "none", "font.size": 8})
    rows = -(-len(names) // 4)
    figure, axes = plt.subplots(rows, min(4, len(names)), figsize=(11, 2.5 * rows), squeeze=False, sharex=True)
    colours = dict(
        zip(
            ("diffprivlib", "google", "SuLloyd*", "GLloyd*", "FastLloyd*", "tree"),
            plt.cm.tab10.colors[1:],
            strict=False,
        )
    )
    for axis, name in zip(axes.flat, names, strict=False):
        for other, figures in peers.PEERS[name].items():
            if other not in NOT_RIVALS:
                line = [figures[e][0] / _base(name, e) for e in EPSILONS]
                axis.plot(EPSILONS, line, marker=".", lw=0.9, color=colours[other], label=other)
        mine = [relative(found, name, "auto", e) for e in EPSILONS]
        shown: list[Any] = [
            (e, m.value, m.standard_error) for e, m in zip(EPSILONS, mine, strict=True) if m is not None
        ]
        axis.errorbar(*zip(*shown, strict=True), color="#D55E00", lw=2.2, marker="o", ms=4, capsize=2, label="auto")
        axis.axhline(
            peers.PEERS[name]["midpoint"][1.0][0] / _base(name, 1.0), ls=":", color="#595959", label="midpoint"
        )
        axis.axhline(1, ls="--", lw=0.8, color="#222222", label="scikit-learn, not private")
        axis.set(title=name, xscale="log", yscale="log", xlabel="ε")
        axis.set_xticks(EPSILONS, [f"{e:g}" for e in EPSILONS])
        axis.minorticks_off()
    handles = dict(zip(*reversed(axes[0][0].get_legend_handles_labels()), strict=True))
    figure.legend(handles.values(), handles.keys(), loc="lower center", ncols=len(handles), frameon=False)
    figure.supylabel("NICV over scikit-learn's")
    figure.tight_layout(rect=(0, 0.06, 1, 1))
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
