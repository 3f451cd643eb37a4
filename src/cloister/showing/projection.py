"""Projections of rows and boxes onto a plane.

A point x is drawn at (x - origin) P, the two columns of P orthonormal. P picks two columns, or is a public projection.
A box is the (Minkowski) sum of its sides, so that its image is the sum of their images: a polygon with twice as many
corners as there are sides that can be seen.
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
    """A public plane. Args: names (of its axes), origin (d,), plane (d, 2), projected (by what; None: two columns)."""

    names: tuple[str, str]
    origin: Floats
    plane: Floats
    projected: str | None = None

    def of(self, points: Floats) -> Floats:
        """Project points (..., d) onto the plane (..., 2)."""
        return np.asarray((points - self.origin) @ self.plane, np.float64)

    def outlines(self, boxes: Floats) -> Floats:
        """Polygons (m, v, 2), the images of boxes (m, 2, d): the sides' images in order of angle, there and back."""
        seen = np.flatnonzero(self.plane.any(axis=1))
        sides = self.plane[seen]
        turned = (sides[:, 1] < 0) | ((sides[:, 1] == 0) & (sides[:, 0] < 0))
        sides = np.where(turned[:, None], -sides, sides)
        order = np.argsort(np.arctan2(sides[:, 1], sides[:, 0]), kind="stable")
        steps = (boxes[:, 1] - boxes[:, 0])[:, seen[order], None] * sides[order]
        lowest = self.of(boxes.mean(axis=1)) - steps.sum(axis=1) / 2
        return np.asarray(lowest[:, None] + np.cumsum(np.concatenate([steps, -steps], axis=1), axis=1), np.float64)

    def outline(self, domain: Box | Ball) -> Floats:
        """The polygon (v, 2) that is the domain's image."""
        if isinstance(domain, Box):
            return np.asarray(self.outlines(np.array([[domain.lower, domain.upper]]))[0], np.float64)
        angles = np.linspace(0, 2 * np.pi, 180, endpoint=False)
        return self.of(domain.middle) + domain.radius * np.column_stack([np.cos(angles), np.sin(angles)])


def principal(points: Floats) -> Floats:
    """Orthonormal (d, 2): the directions in which points (k, d) around 0 vary most, signed so that the largest entry of
    each is positive."""
    scale = np.abs(points).max(initial=0.0) or 1.0
    found = np.linalg.svd(points / scale, full_matrices=False)[2][:2].T
    if found.shape[1] < 2:  # one centre: any second direction
        found = np.linalg.qr(np.column_stack([found, np.eye(len(found), 2)]))[0][:, :2]
    largest = found[np.abs(found).argmax(axis=0), [0, 1]]
    return np.asarray(found * np.where(largest < 0, -1.0, 1.0), np.float64)


def shade(weights: Floats, outlines: Floats) -> Floats:
    """Shades (c,): 0 for cells without rows, else the rank of the rows per area, in [0.1, 1]; 1 without area."""
    x, y = outlines[..., 0] - outlines[:, :1, 0], outlines[..., 1] - outlines[:, :1, 1]
    areas = np.abs((x * np.roll(y, -1, axis=1) - np.roll(x, -1, axis=1) * y).sum(axis=1)) / 2
    some = (weights > 0) & (areas > 0)
    shade = np.where(weights > 0, 1.0, 0.0)  # a cell of one lattice step has no area
    if some.any():
        values, ranks = np.unique(np.round(np.log(weights[some]) - np.log(areas[some]), 6), return_inverse=True)
        shade[some] = 0.1 + 0.9 * (ranks + 1) / len(values)
    return shade


def rounded(value: float) -> float:
    """The largest of 1, 2, 5, 10, 20, 50 ... that is at most a positive value."""
    power = 10.0 ** math.floor(math.log10(value))
    return max((step * power for step in (1.0, 2.0, 5.0) if step * power <= value), default=power)
