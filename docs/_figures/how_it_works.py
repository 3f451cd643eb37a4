"""The pictures of docs/explanation/how_it_works.md: one data set, and what each method learns of it round by round.

    python docs/_figures/how_it_works.py            all, into docs/explanation
    python docs/_figures/how_it_works.py --quick    few rows and runs, to see that all of it runs

Noise is seeded, so that the pictures are the same each time. A real run never seeds it.
"""

from __future__ import annotations

import argparse
from functools import cache
from pathlib import Path
from typing import Any, Final

import drawing
import numpy as np
from sklearn.cluster import KMeans
from traced import Run

from cloister.core.encoding import encode_lattice
from cloister.core.randomness import NoiseRng
from cloister.metrics import cost
from cloister.run.request import Request, prepare

HERE = Path(__file__).parents[1] / "explanation"
K: Final = 5
EPSILON, TIGHT, LOCAL = 0.5, 0.05, 4.0
"""Epsilon of the pictures, of the one with a twentieth of it, and of people who trust nobody."""

MISSED = 1.5
"""Cost, over that of k-means, from which a run has missed a group: two near ones share a centre."""

METHODS = {"grid-means": 1, "radius-means": 2, "shrunk-lloyd": 2, "hst-means": 1}
"""Methods, and the seed of the run that is drawn of each."""


def town(n: int) -> Any:
    """Rows (n, 2): five groups of unequal sizes and widths."""
    g = np.random.default_rng(3)
    places = np.array([[-0.55, 0.5], [0.5, 0.55], [-0.15, -0.1], [0.6, -0.45], [-0.6, -0.65]])
    groups = g.choice(K, n, p=[0.3, 0.25, 0.2, 0.15, 0.1])
    widths = np.array([0.11, 0.13, 0.08, 0.1, 0.07])[groups]
    return np.clip(places[groups] + widths[:, None] * g.normal(size=(n, 2)), -1, 1)


class Pictures:
    """All pictures of the page. Args: n (rows), repeats (runs that a mean cost is of), folder (to write to)."""

    def __init__(self, n: int, repeats: int, folder: Path) -> None:
        self.rows, self.repeats, self.folder = town(n), repeats, folder
        self.exact = KMeans(K, n_init=10, random_state=0).fit(self.rows)

    @cache  # noqa: B019, one object in a short program
    def run(self, method: str, seed: int = 1) -> Run:
        """A run; of ``grid-means`` with the noise that ``auto`` picks for it."""
        return Run.of(self.rows, K, "auto" if method == "grid-means" else method, EPSILON, seed)

    @cache  # noqa: B019
    def local(self, seed: int = 1) -> Run:
        return Run.of(self.rows, K, "one-round", LOCAL, seed, trust="local", delta=0)

    def drawn(self, method: str) -> Run:
        return self.run(method, METHODS[method])

    def save(self, figure: Any, name: str) -> None:
        drawing.save(figure, self.folder / f"how_it_works_{name}.png")

    def noise(self) -> None:
        """The rows, and how one noisy count looks with one person and without her."""
        figure, ((left, right),) = drawing.panels(1, 2, 2.75)
        drawing.plane(left, f"{len(self.rows):,} rows, one per person")
        drawing.rows(left, self.rows)
        drawing.centers(left, self.exact.cluster_centers_)
        group = int(np.argmin(np.bincount(self.exact.labels_)))
        members = np.flatnonzero(self.exact.labels_ == group)
        person = self.rows[members[np.argmax(self.rows[members, 0])]]
        left.annotate("Ada", person, (person[0] + 0.25, person[1]), arrowprops={"arrowstyle": "-"}, va="center")
        noise = NoiseRng.for_tests(0).discrete_laplace(1 / EPSILON, 40_000)
        for n, colour, shift, label in (
            (len(members), drawing.BLUE, -0.2, "with Ada"),
            (len(members) - 1, drawing.ORANGE, 0.2, "without her"),
        ):
            values, times = np.unique(n + noise, return_counts=True)
            right.bar(values + shift, times / len(noise), 0.4, color=colour, label=label)
        right.set(xlim=(len(members) - 9, len(members) + 9), yticks=[], ylim=(0, 0.36), xlabel="released count")
        right.set_title(f"40,000 noisy counts, ε = {EPSILON:g}")
        right.legend(loc="upper left", frameon=False, ncols=1, fontsize=10, borderpad=0, handlelength=1)
        self.save(figure, "noise")

    def grid(self) -> None:
        """grid-means: exact and noisy cells, the centres of those that are kept, distances, and the last step."""
        run = self.drawn("grid-means")
        figure, axes = drawing.panels(2, 2, 5.75)
        exact, told = (run.painted(values, 0) for values in (run.exact(0), run.answers(0)))
        for axis, image, title in zip(
            axes[0], (exact, told), ("exact: nobody sees this", "round 1: noisy counts"), strict=True
        ):
            drawing.plane(axis, title)
            shown = drawing.cells(axis, image, exact.max())
        kept = run.clustering.details["cells"]
        last = len(run.session.rounds) - 1
        start, radii = run.centers_of(last), run.radii_of(last, len(run.session.rounds[last].parts) - 1)
        drawing.plane(axes[1, 0], "kept cells, five centres")
        for cell in kept:
            low, high = np.asarray(cell)
            axes[1, 0].add_patch(drawing.plt.Rectangle(low, *(high - low), fc="#9CC8E6", ec="white", lw=0.4))
        drawing.centers(axes[1, 0], start)
        drawing.plane(axes[1, 1], "last round: clipped sums")
        drawing.rows(axes[1, 1], self.rows)
        drawing.circles(axes[1, 1], start, radii)
        drawing.centers(axes[1, 1], start, c="white", s=45)
        drawing.centers(axes[1, 1], run.centers)
        figure.colorbar(shown, ax=axes, location="bottom", shrink=0.7, aspect=30, label="rows per cell (upper panels)")
        self.save(figure, "grid")

    def radius(self) -> None:
        """radius-means: middle and distances, shells, candidates, rounds."""
        run = self.drawn("radius-means")
        figure, axes = drawing.panels(2, 2, 5.75)
        (middle,), last = run.centers_of(1), len(run.session.rounds) - 1
        drawing.plane(axes[0, 0], "rounds 1 and 2: mean, rings")
        drawing.cells(axes[0, 0], run.painted(run.answers(1), 1))
        drawing.circles(axes[0, 0], [middle], run.clustering.details["radius"], ls="--", lw=1.6)
        drawing.centers(axes[0, 0], [middle])
        drawing.plane(axes[0, 1], "round 3: slices of shells")
        drawing.cells(axes[0, 1], run.painted(run.answers(2), 2), below=0.3)
        drawing.centers(axes[0, 1], [middle])
        candidates = run.centers_of(4)
        drawing.plane(axes[1, 0], "round 5: rows near candidates")
        drawing.cells(axes[1, 0], run.painted(run.answers(4), 4))
        drawing.centers(axes[1, 0], candidates, s=16, marker="o", c="black", linewidths=0)
        drawing.centers(axes[1, 0], run.centers_of(6)[:K])
        drawing.plane(axes[1, 1], f"rounds 6 to {last + 1}: Lloyd")
        self._path(axes[1, 1], run, 6)
        self.save(figure, "radius")

    def _path(self, axis: Any, run: Run, first: int) -> None:
        """Centres from round to round, and the radii of the last one."""
        asked = [i for i, opened in enumerate(run.session.rounds) if i >= first and len(opened.parts) == 2]
        path = np.array([*(run.centers_of(i)[:K] for i in asked), run.centers])
        drawing.rows(axis, run.rows)
        drawing.circles(axis, path[-2], run.radii_of(asked[-1], 1)[:K])
        for steps in np.moveaxis(path, 1, 0):
            axis.plot(*steps.T, color="black", lw=1.4, marker="o", ms=3.2, zorder=5)
        drawing.centers(axis, path[0], c="white", s=45)
        drawing.centers(axis, path[-1])

    def shrunk(self) -> None:
        """shrunk-lloyd: where it starts, its first round, its path, and the same with a tenth of epsilon."""
        run, tight = self.drawn("shrunk-lloyd"), Run.of(self.rows, K, "shrunk-lloyd", TIGHT, METHODS["shrunk-lloyd"])
        figure, axes = drawing.panels(2, 2, 5.75)
        drawing.plane(axes[0, 0], "rounds 1 and 2: mean, rings")
        drawing.cells(axes[0, 0], run.painted(run.answers(1), 1))
        start = run.centers_of(1)[:K]
        drawing.centers(axes[0, 0], start, c="white")
        drawing.plane(axes[0, 1], "round 3: counts and sums")
        counts, sums = run.answers(2, 0)[:K], run.sums_of(2, 1)[:K]
        drawing.cells(axes[0, 1], run.painted(run.answers(2, 0), 2), 2 * counts.max())
        drawing.arrows(axes[0, 1], start, start + sums / counts[:, None])
        for place, counted in zip(start, counts, strict=True):
            out = place + 0.55 * (place - start.mean(axis=0)) / np.linalg.norm(place - start.mean(axis=0))
            axes[0, 1].text(*out, f"{counted:.0f}", ha="center", va="center", zorder=8)
        drawing.plane(axes[1, 0], f"all rounds, ε = {EPSILON:g}")
        self._path(axes[1, 0], run, 2)
        drawing.plane(axes[1, 1], f"all rounds, ε = {TIGHT:g}")
        self._path(axes[1, 1], tight, 0 if len(tight.session.rounds[0].parts) == 2 else 1)
        self.save(figure, "shrunk")

    def tree(self) -> None:
        """hst-means: levels of its tree, leaves, candidates that are lifted, and the merged centres."""
        run = self.drawn("hst-means")
        figure, axes = drawing.panels(2, 2, 5.75)
        for axis, level in zip(axes[0], (2, 4), strict=True):
            image = run.painted(run.answers(0, level=level), 0, level)
            drawing.plane(axis, f"round 1: level {level + 1} of the tree")
            drawing.cells(axis, image, below=0.3)
            drawing.numbers(axis, image)
        drawing.plane(axes[1, 0], "round 2: rows near 30 candidates")
        drawing.cells(axes[1, 0], run.painted(run.answers(1), 1))
        drawing.centers(axes[1, 0], run.centers_of(1), s=16, marker="o", c="black", linewidths=0)
        drawing.plane(axes[1, 1], "merged, and one last round")
        self._path(axes[1, 1], run, 2)
        self.save(figure, "tree")

    def reports(self) -> None:
        """one-round: what one report says, what a hundred say, what all say, and the centres."""
        run, n = self.local(), len(self.rows)
        opened, noise, lattice = run.session.rounds[0], NoiseRng.for_tests(1), run.domain.snap(self.rows)
        figure, axes = drawing.panels(2, 2, 5.75)
        every = np.arange(opened.parts[0].cells.space.sizes[0])
        for axis, m in zip(axes.flat, (1, 100, n), strict=False):
            (report,) = encode_lattice(opened, lattice[:m], np.arange(m, dtype=np.uint64), noise)
            channel = opened.parts[0].channel
            values = channel.decode(channel.absorb(report), noise).at(every)
            drawing.plane(axis, f"{m:,} reports" if m > 1 else "one report")
            if m == 1:
                values = values - values.min()
                drawing.centers(axis, self.rows[:1], marker="o", s=40)
            drawing.cells(axis, run.painted(values, 0), below=0.3)
        drawing.plane(axes[1, 1], "what the server concludes")
        drawing.rows(axes[1, 1], self.rows)
        drawing.centers(axes[1, 1], run.centers)
        self.save(figure, "reports")

    def predicted(self) -> None:
        """What ``auto`` compares: errors that each method predicts from public figures, for two columns and sixteen."""
        figure, (axes,) = drawing.panels(1, 2, 3.4)
        epsilons = np.geomspace(0.03, 3, 9)
        colours = dict(zip(METHODS, (drawing.BLUE, drawing.ORANGE, drawing.GREEN, drawing.PURPLE), strict=True))
        for axis, columns in zip(axes, (2, 16), strict=True):
            errors = [self._candidates(columns, float(epsilon)) for epsilon in epsilons]
            for name, colour in colours.items():
                line = [(e, found[name]) for e, found in zip(epsilons, errors, strict=True) if name in found]
                if line:
                    axis.plot(*zip(*line, strict=True), color=colour, lw=2, label=name)
            axis.set(xscale="log", yscale="log", ylim=(2e-4, 3), xlabel="ε", title=f"{columns} columns")
            axis.set_xticks([0.03, 0.1, 0.3, 1, 3], ["0.03", "0.1", "0.3", "1", "3"])
            axis.minorticks_off()
        axes[0].set_ylabel("predicted error")
        axes[1].set_yticklabels([])
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False)
        self.save(figure, "predicted")

    def _candidates(self, columns: int, epsilon: float) -> dict[str, float]:
        """Return the least predicted error of each method, for as many rows of so many columns: nothing is read."""
        request = Request(k=K, epsilon=epsilon, delta=1e-6, bounds=(-1, 1), rows=len(self.rows), zoom="off")
        candidates = prepare(request, tuple(f"x{i}" for i in range(columns))).choice.candidates
        found = dict[str, float]()
        for candidate in candidates:
            if candidate.error is not None and np.isfinite(candidate.error):
                found[candidate.method] = min(candidate.error, found.get(candidate.method, np.inf))
        return found

    def together(self) -> None:
        """All methods: the run of median cost, and median and mean cost over that of k-means."""
        runs = {name: [self.run(name, seed) for seed in range(1, self.repeats + 1)] for name in METHODS}
        runs["one-round, ε = 4"] = [self.local(seed) for seed in range(1, self.repeats + 1)]
        best = cost(self.rows, self.exact.cluster_centers_) / len(self.rows)
        figure, axes = drawing.panels(2, 3, 4.4)
        shown = {"k-means": (self.exact.cluster_centers_, "1.00")}
        for name, group in runs.items():
            over = np.array([run.cost for run in group]) / best
            middle = int(np.argsort(over)[len(over) // 2])
            shown[name] = group[middle].centers, f"{over[middle]:.2f} (mean {over.mean():.2f})"
            print(f"| {name} | {over[middle]:.2f} | {over.mean():.2f} | {(over > MISSED).sum()} of {len(over)} |")
        for axis, (name, (found, costs)) in zip(axes.flat, shown.items(), strict=True):
            drawing.plane(axis, name)
            drawing.rows(axis, self.rows, s=1.5)
            drawing.centers(axis, found, s=50)
            axis.set_xlabel(costs)
        self.save(figure, "together")

    def draw(self) -> None:
        """Draw all of them."""
        for picture in (
            self.noise,
            self.grid,
            self.radius,
            self.shrunk,
            self.tree,
            self.reports,
            self.predicted,
            self.together,
        ):
            picture()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="few rows and runs")
    parser.add_argument("--folder", type=Path, default=HERE, help="folder to write to")
    given = parser.parse_args()
    n, repeats = (600, 2) if given.quick else (2000, 30)
    Pictures(n, repeats, given.folder).draw()


if __name__ == "__main__":
    main()
