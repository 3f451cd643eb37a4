"""Projections of points and boxes onto a plane.

A point x is drawn at (x - origin) P, with the columns of P orthonormal: P picks two columns, or is a public projection.
A box is the Minkowski sum of its sides, so its image is the sum of their images: a polygon with twice as many corners
as there are sides with an image of positive length.
"""

from __future__ import annotations

import math
from typing import final

import attrs
import numpy as np

from cloister.core.domains import Ball, Box
from cloister.core.types import Floats

TREE = "the tree's public projection"


@final
@attrs.frozen(eq=False)
class View:
    """Public plane of a plot.

    Args:
        names: of its axes.
        origin: (d,).
        plane: (d, 2).
        projected: what the projection is; None if it picks two columns.
    """

    names: tuple[str, str]
    origin: Floats
    plane: Floats
    projected: str | None = None

    def of(self, points: Floats) -> Floats:
        """Project points (..., d) onto the plane (..., 2)."""
        return np.asarray((points - self.origin) @ self.plane, np.float64)

    def outlines(self, boxes: Floats) -> Floats:
        """Return the images (m, v, 2) of boxes (m, 2, d): polygons of the sides' images, in order of angle and back."""
        visible = np.flatnonzero(self.plane.any(axis=1))
        sides = self.plane[visible]
        turned = (sides[:, 1] < 0) | ((sides[:, 1] == 0) & (sides[:, 0] < 0))
        sides = np.where(turned[:, None], -sides, sides)
        order = np.argsort(np.arctan2(sides[:, 1], sides[:, 0]), kind="stable")
        steps = (boxes[:, 1] - boxes[:, 0])[:, visible[order], None] * sides[order]
        lowest = self.of(boxes.mean(axis=1)) - steps.sum(axis=1) / 2
        return np.asarray(lowest[:, None] + np.cumsum(np.concatenate([steps, -steps], axis=1), axis=1), np.float64)

    def outline(self, domain: Box | Ball) -> Floats:
        """Return the domain's image, a polygon (v, 2)."""
        if isinstance(domain, Box):
            return np.asarray(self.outlines(np.array([[domain.lower, domain.upper]]))[0], np.float64)
        angles = np.linspace(0, 2 * np.pi, 180, endpoint=False)
        return self.of(domain.middle) + domain.radius * np.column_stack([np.cos(angles), np.sin(angles)])


def principal(points: Floats) -> Floats:
    """Return the first two principal axes (d, 2) of points (k, d) around 0; the largest entry of each is positive."""
    scale = np.abs(points).max(initial=0.0) or 1.0
    axes = np.linalg.svd(points / scale, full_matrices=False)[2][:2].T
    if axes.shape[1] < 2:  # one centre: any second direction
        axes = np.linalg.qr(np.column_stack([axes, np.eye(len(axes), 2)]))[0][:, :2]
    largest = axes[np.abs(axes).argmax(axis=0), [0, 1]]
    return np.asarray(axes * np.where(largest < 0, -1.0, 1.0), np.float64)


def shade(weights: Floats, outlines: Floats) -> Floats:
    """Return shades (c,): 0 for cells without rows, 1 without area, else the rank of the density, in [0.1, 1]."""
    x, y = outlines[..., 0] - outlines[:, :1, 0], outlines[..., 1] - outlines[:, :1, 1]
    areas = np.abs((x * np.roll(y, -1, axis=1) - np.roll(x, -1, axis=1) * y).sum(axis=1)) / 2
    positive = (weights > 0) & (areas > 0)
    shade = np.where(weights > 0, 1.0, 0.0)  # a cell of one lattice step has no area
    if positive.any():
        values, ranks = np.unique(np.round(np.log(weights[positive]) - np.log(areas[positive]), 6), return_inverse=True)
        shade[positive] = 0.1 + 0.9 * (ranks + 1) / len(values)
    return shade


def rounded(value: float) -> float:
    """Return the largest of 1, 2, 5, 10, 20, 50 ... that does not exceed a positive value."""
    power = 10.0 ** math.floor(math.log10(value))
    return max((step * power for step in (1.0, 2.0, 5.0) if step * power <= value), default=power)
