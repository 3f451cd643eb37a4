"""The pictures of docs/explanation/side_by_side.md: methods beside one another on shapes that people know.

    python docs/_figures/side_by_side.py            all, into docs/explanation
    python docs/_figures/side_by_side.py --quick    few rows and runs, to see that all of it runs

Noise is seeded, so that the pictures are the same each time.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Final

import drawing
import numpy as np
from sklearn import cluster, datasets
from sklearn.metrics import adjusted_rand_score
from traced import Run

from cloister.metrics import cost

DOCS = Path(__file__).parents[1]
SHOWN, EPSILONS = (0.1, 0.3, 1.0), (0.03, 0.1, 0.3, 1.0, 3.0)
"""Values of epsilon that have panels, and those of the lines."""

PANELS: Final = ("auto", "fastlloyd", "tree-coreset-lsh")
COLOURS: Final = {
    "auto": drawing.ORANGE,
    "fastlloyd": drawing.BLUE,
    "tree-coreset-lsh": drawing.GREEN,
    "su-lloyd": drawing.PURPLE,
}
"""Methods of the lines, and of the panels the first three."""

SLACK = 1.25
"""Bounds are public and seldom tight: here they are a quarter wider than the rows."""

DRAWN = 500
"""Rows of a panel: as many as can be told apart."""


@dataclass(frozen=True)
class Shape:
    """Generated rows within bounds of -1 and 1.

    Attributes: name, rows (n, d), groups (n,) that they were drawn from, k.
    """

    name: str
    rows: Any
    groups: Any
    k: int

    @classmethod
    def of(cls, name: str, k: int, drawn: tuple[Any, Any]) -> Shape:
        """Scale rows into the bounds. Args: drawn (rows, and their groups)."""
        rows, groups = drawn
        middle, half = (rows.max(0) + rows.min(0)) / 2, np.ptp(rows, 0).max() / 2
        return cls(name, (rows - middle) / (SLACK * half), groups, k)

    @cached_property
    def exact(self) -> Any:
        """Centres of scikit-learn's k-means."""
        return cluster.KMeans(self.k, n_init=10, random_state=0).fit(self.rows).cluster_centers_

    @cached_property
    def plane(self) -> tuple[Any, Any]:
        """A middle (d,) and axes (2, d) to draw rows on: the first two principal components if d is above two."""
        if self.rows.shape[1] == 2:
            return np.zeros(2), np.eye(2)
        middle = self.rows.mean(axis=0)
        axes = np.linalg.svd(self.rows - middle, full_matrices=False)[2][:2]
        return middle, 0.95 * axes / np.abs((self.rows - middle) @ axes.T).max()

    def labels(self, centers: Any) -> Any:
        """The nearest centre of each row (n,)."""
        return ((self.rows[:, None] - centers) ** 2).sum(axis=2).argmin(axis=1)

    def judged(self, centers: Any) -> tuple[float, float]:
        """Cost over that of k-means, and the adjusted Rand index of labels and groups."""
        over = cost(self.rows, centers) / cost(self.rows, self.exact)
        return over, float(adjusted_rand_score(self.groups, self.labels(centers)))


def shapes(n: int) -> list[Shape]:
    """Five shapes of n rows."""
    places = np.array([[-8, 6], [7, 7], [-1, -1], [5, -8]])
    sizes = [n * share // 100 for share in (60, 25, 10, 5)]
    wide = np.random.default_rng(5).normal(size=(6, 16))
    stretched, groups = datasets.make_blobs(n, random_state=170)
    return [
        Shape.of("blobs", 4, datasets.make_blobs(n, centers=places, cluster_std=1.2, random_state=0)),
        Shape.of("unequal", 4, datasets.make_blobs(sizes, centers=places, cluster_std=1.2, random_state=0)),
        Shape.of("stretched", 3, (stretched @ [[0.6, -0.6], [-0.4, 0.8]], groups)),
        Shape.of("moons", 2, datasets.make_moons(n, noise=0.06, random_state=0)),
        Shape.of("16 columns", 6, datasets.make_blobs(n, centers=wide, cluster_std=0.4, random_state=0)),
    ]


class Pictures:
    """All pictures of the page. Args: n (rows), repeats (runs of a mean), folder."""

    def __init__(self, n: int, repeats: int, folder: Path) -> None:
        self.shapes, self.repeats, self.folder = shapes(n), repeats, folder

    @cache  # noqa: B019, one object in a short program
    def runs(self, place: int, method: str, epsilon: float) -> tuple[list[Any], Any]:
        """Centres of all runs, the cheapest first, and what each is judged (repeats, 2)."""
        shape = self.shapes[place]
        found = [run.centers for run in Run.several(shape.rows, shape.k, method, epsilon, range(self.repeats))]
        judged = np.array([shape.judged(centers) for centers in found])
        order = np.argsort(judged[:, 0])
        return [found[i] for i in order], judged[order]

    def save(self, figure: Any, name: str) -> None:
        drawing.save(figure, self.folder / f"side_by_side_{name}.png")

    def panels(self, epsilon: float) -> None:
        """All shapes and methods at one epsilon: the run of median cost, the means under it."""
        figure, axes = drawing.panels(len(self.shapes), 1 + len(PANELS), 7.6)
        for row, (place, shape) in zip(axes, enumerate(self.shapes), strict=True):
            _drawn(row[0], shape, shape.exact, np.array([shape.judged(shape.exact)]))
            row[0].set_ylabel(shape.name)
            for axis, method in zip(row[1:], PANELS, strict=True):
                found, judged = self.runs(place, method, epsilon)
                _drawn(axis, shape, found[len(found) // 2], judged)
        for axis, name in zip(axes[0], ("k-means", "auto", "fastlloyd", "tree-coreset"), strict=True):
            axis.set_title(name)
        self.save(figure, f"{epsilon:g}".replace(".", ""))

    def lines(self) -> None:
        """Cost over that of k-means against epsilon, of more methods."""
        figure, axes = drawing.panels(3, 2, 7.6)
        for axis, (place, shape) in zip(axes.flat, enumerate(self.shapes), strict=False):
            for method, colour in COLOURS.items():
                means = [self.runs(place, method, epsilon)[1][:, 0].mean() for epsilon in EPSILONS]
                axis.plot(
                    EPSILONS, means, marker="o", ms=3.5, lw=2 if method == "auto" else 1.4, color=colour, label=method
                )
                print(f"{shape.name}, {method}: {' '.join(f'{mean:.2f}' for mean in means)}")
            middle = shape.judged(np.zeros((1, shape.rows.shape[1])))[0]
            axis.axhline(middle, ls="--", color="#555555", label="one centre in the middle")
            axis.axhline(1, ls=":", color="#555555", label="k-means")
            axis.set(xscale="log", yscale="log", title=shape.name, ylim=(0.9, 1.8 * middle))
            axis.set_xticks(EPSILONS, [f"{epsilon:g}" for epsilon in EPSILONS], fontsize=9)
            ticks = [tick for tick in (1, 2, 5, 10, 20, 50) if tick < 1.8 * middle]
            axis.set_yticks(ticks, [f"{tick}" for tick in ticks])
            axis.minorticks_off()
        axes.flat[-1].axis("off")
        axes.flat[-1].legend(*axes.flat[0].get_legend_handles_labels(), loc="center", frameon=False, fontsize=10)
        figure.supxlabel("ε", fontsize=11)
        figure.supylabel("mean cost over that of k-means", fontsize=11)
        self.save(figure, "lines")

    def draw(self) -> None:
        """Draw all of them."""
        for epsilon in SHOWN:
            self.panels(epsilon)
        self.lines()


def _drawn(axis: Any, shape: Shape, centers: Any, judged: Any) -> None:
    """Draw rows in the colour of their nearest centre. Args: judged (runs, 2)."""
    middle, axes = shape.plane
    some = np.random.default_rng(0).permutation(len(shape.rows))[:DRAWN]
    drawing.plane(axis, "")
    colours = shape.labels(centers)[some]
    drawing.rows(axis, (shape.rows[some] - middle) @ axes.T, c=colours, cmap="Set2", vmin=0, vmax=7, s=3)
    drawing.centers(axis, (centers - middle) @ axes.T, s=38, c="black", edgecolors="white", linewidths=0.7)
    over, rand = judged.mean(axis=0)
    axis.set_xlabel(f"{over:.2f} · {rand:.2f}", labelpad=2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="few rows and runs")
    parser.add_argument("--folder", type=Path, default=DOCS / "explanation", help="folder to write to")
    given = parser.parse_args()
    n, repeats = (200, 1) if given.quick else (3000, 5)
    Pictures(n, repeats, given.folder).draw()


if __name__ == "__main__":
    main()
