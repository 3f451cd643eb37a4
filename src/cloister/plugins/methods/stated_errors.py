"""What a method states of its figures: standard errors of released sizes and centres, from released values alone.

A size is compared with the rows nearest to the released centre, and a centre with the mean of those rows. So an error
covers the noise, and what lies between a figure and what it stands for:

* Centres were moved after their rows were counted, by released steps. Of two groups of n and m rows whose centres are
  D apart, about sqrt(n m) / D rows lie in a layer of width 1 between them; where their border moves, by half the steps'
  lengths together, so many change sides. The next step of a centre would be shorter: a part ``UNFINISHED`` of this
  one, in the columns it went along and, as far as anyone knows, in all of them.
* Steps are shrunk, which trades noise for bias: never for more of it than the noise that is stated (James and Stein).
* Clipping takes off a mean what rows beyond the radius are farther out: ``CLIPPED`` of the radius, in any direction.
* Sizes that were moved to add up to the public number of rows are off by as much as they were moved.
* A cell at the border of two groups is divided by volume, as if its rows fell on one side or the other by chance, half
  of them together (``BORDER``). What cells hold that noise hides is left out: ``HIDDEN`` standard errors each.

The parts are calibrated on generated mixtures, s1 and house: 95 of 100 figures are within two standard errors there.
Nothing here is a bound: rows too few to show above the noise, or far beyond a radius, are not covered.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cloister.core.boxes import evenly_in
from cloister.core.clustering import Coreset
from cloister.core.types import Floats
from cloister.plugins.methods.post_processing import nearest

UNFINISHED = 0.5
CLIPPED = 0.02
BORDER = 0.5
HIDDEN = 0.5

POINTS = 2**15
"""About how many points stand for all cells, at most 32 for each."""


def of_steps(
    sizes: Floats, counted: Floats, count_errors: Floats, centers: Floats, steps: Floats, noise: Floats, radii: Floats
) -> dict[str, Any]:
    """Errors after a round of counts and of sums of offsets.

    Args:
        sizes: (k,) as they are released. counted: (k,) as they were counted. count_errors: (k,) of these.
        centers: (k, d) as they are released. steps: (k, d) that they went last.
        noise: (k,) standard errors of a coordinate of the steps. radii: (k,) that offsets were clipped to.
    """
    lengths = np.linalg.norm(steps, axis=1)
    moved = np.abs(sizes - np.maximum(counted, 0.0))
    along = UNFINISHED * np.sqrt((steps**2 + (lengths**2 / steps.shape[1])[:, None]) / 2)
    fixed = np.hypot(noise, CLIPPED * radii)[:, None]
    sides = crossed(np.maximum(sizes, 0.0), centers, lengths)
    return {"weights_error": np.sqrt(count_errors**2 + moved**2 + sides**2), "centers_error": np.hypot(along, fixed)}


def crossed(sizes: Floats, centers: Floats, lengths: Floats) -> Floats:
    """How many rows (k,) of each group changed sides when centres (k, d) moved so far, but for noise."""
    squares = ((centers[:, None] - centers) ** 2).sum(axis=2)
    shifts = (lengths[:, None] + lengths) / 2
    layers = shifts / np.maximum(np.sqrt(squares), np.maximum(shifts, 1e-300))
    np.fill_diagonal(layers, 0.0)
    return np.asarray(np.sqrt(sizes * (layers**2 @ sizes)), np.float64)


def sizes_of(cells: Coreset, centers: Floats, left_out: Floats) -> tuple[Floats, Floats]:
    """Rows (k,) nearest to each centre by released counts of cells, and their standard errors (k,).

    A cell that two groups share is divided by volume.

    Args: left_out (p, d), middles of cells that seem to hold no rows.
    """
    assert cells.cells is not None  # boxes
    parts = divided(cells.cells, centers)
    noise = np.zeros(len(cells.weights)) if cells.errors is None else cells.errors.weights
    sizes = cells.weights @ parts
    border = (BORDER * cells.weights) ** 2 @ (parts * (1 - parts))
    hidden = np.bincount(nearest(left_out, centers), minlength=len(centers)) * (HIDDEN * noise.max()) ** 2
    return np.maximum(sizes, 0.0), np.sqrt(noise**2 @ parts**2 + border + hidden)


def divided(cells: Floats, centers: Floats) -> Floats:
    """Which part (m, k) of each cell's volume is nearest to each centre. Args: cells (m, 2, d), corners."""
    points = evenly_in(cells, POINTS)
    n, m, d = points.shape
    groups = nearest(points.reshape(-1, d), centers).reshape(n, m)
    parts = np.zeros((m, len(centers)))
    for each in groups:
        parts[np.arange(m), each] += 1 / n
    return parts
