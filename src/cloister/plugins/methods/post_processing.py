"""Post-processing of released points and sums: nearest centres, group sizes, shrinkage by known noise."""

from __future__ import annotations

import numpy as np

from cloister.plugin import Coreset, Domain, Floats, Ints


def nearest(points: Floats, centers: Floats) -> Ints:
    """Return the nearest centre (m,) of released points, ties to the lowest index."""
    squares = (centers**2).sum(axis=1) - 2 * points @ centers.T
    return np.asarray(squares.argmin(axis=1), np.int64)


def group_sizes(groups: Ints, counts: Floats, k: int) -> Floats:
    """Return the noisy rows (k,) of each group, with negative counts left out."""
    return np.asarray(np.bincount(groups, np.maximum(counts, 0.0), minlength=k), np.float64)


def means(cells: Coreset, centers: Floats) -> Floats:
    """Return the mean (k, d) of each centre's cells; a centre without cells stays."""
    groups, weights = nearest(cells.points, centers), np.maximum(cells.weights, 0.0)
    sizes = group_sizes(groups, weights, len(centers))[:, None]
    sums = np.zeros_like(centers)
    np.add.at(sums, groups, weights[:, None] * cells.points)
    return np.where(sizes > 0, sums / np.where(sizes > 0, sizes, 1.0), centers)


def pad_centers(centers: Floats, k: int) -> Floats:
    """Repeat the first centre until there are at least k.

    The shape of a round must not depend on answers. A row goes to the lowest index, so that copies have none.
    """
    return np.concatenate([centers, np.repeat(centers[:1], max(0, k - len(centers)), axis=0)])


def james_stein(squares: Floats, noise: Floats) -> Floats:
    """Return positive-part James-Stein factors, max(0, 1 - noise / square), of steps of these squared lengths."""
    return np.asarray(1.0 - noise / np.maximum(squares, np.maximum(noise, 1e-300)), np.float64)


def pooled_james_stein(steps: Floats, errors: Floats, weights: Floats | None = None) -> float:
    """Return one James-Stein factor for all steps, far better known than a factor for each.

    It is 1 - the energy of the noise over that of the steps, at least 0.

    Args:
        steps: (k, d).
        errors: (k,) standard errors of their coordinates.
        weights: (k,) of the steps.
    """
    w = np.ones(len(steps)) if weights is None else weights
    noise = np.asarray([(w * errors**2).sum() * steps.shape[1]])
    return float(james_stein(np.asarray([(w * (steps**2).sum(axis=1)).sum()]), noise)[0])


def project_to_simplex(counts: Floats, total: float) -> Floats:
    """Return the nearest counts (m,) that are not negative and add up to ``total``.

    They are the counts less one number, or 0.

    Source: Held, Wolfe, Crowder 1974 (the projection on a simplex).
    """
    falling = np.sort(counts)[::-1]
    excess = (falling.cumsum() - total) / np.arange(1, len(counts) + 1)
    return np.asarray(np.maximum(counts - excess[np.flatnonzero(falling >= excess)[-1]], 0.0), np.float64)


def empirical_bayes(squares: Floats, noise: Floats) -> Floats:
    """Return factors (m,) of steps of these squared lengths and noise energies: t / (t + noise).

    t is the energy of true steps, pooled over all of them, the better known ones first.

    Source: Efron and Morris 1973; Morris 1983 (the moment equation for t, in five steps).
    """
    true, power = 0.0, 1
    for _ in range(5):
        total = np.maximum(true + noise, 1e-300)
        weights = (total.min() / total) ** power
        true, power = max(0.0, float((weights * (squares - noise)).sum() / weights.sum())), 2
    return np.asarray(true / np.maximum(true + noise, 1e-300), np.float64)


def denoised(sums: Floats, errors: Floats) -> Floats:
    """Shrink sums (k, d), whose coordinates have these standard errors (k,), by what is known of their noise.

    The result is the mean of two matrix estimators, in units of its noise. Singular values s_i are multiplied by

        max(0, 1 - kd / |s|^2)                                     James and Stein: all by one factor,
        max(0, 1 - max(0, m - p - 1) / s_i^2 - b / |s|^2)          Efron and Morris: weak directions by more,

    with p, m the smaller and the larger of k and d, and b the rest of the noise's energy kd. Where there are many
    columns, noise is spread over all directions and centres lie along few. The first is right where nothing stands out,
    the second where something does; the mean was better than either, and than a threshold on singular values.

    Source: James and Stein 1961; Efron and Morris 1976 ('Multivariate empirical Bayes and estimation of covariance').
    """
    if not errors.all():  # without noise
        return sums
    left, values, right = np.linalg.svd(sums / errors[:, None], full_matrices=False)
    smaller, larger = sorted(sums.shape)
    excess = float(max(0, larger - smaller - 1))
    energy, squares = max(float((values**2).sum()), 1e-300), np.maximum(values**2, 1e-300)
    pooled = max(0.0, 1 - smaller * larger / energy)
    apart = np.maximum(0.0, 1 - excess / squares - smaller * (larger - excess) / energy)
    mixed: Floats = (left * (values * (pooled + apart) / 2)) @ right * errors[:, None]
    return mixed


def linear_shrinkage(errors: Floats, domain: Domain) -> Floats:
    """Return the part (k, 1) of a vector that noise of errors s (k,) per coordinate leaves: R^2 / (R^2 + d s^2).

    The best linear estimate of a vector that points anywhere in the domain, R^2 a third of the squared half diameter
    (a box's mean square). Noise a tenth as wide as the domain costs 3% of a vector, noise as wide three quarters.
    """
    spread = (domain.diameter / 2) ** 2 / 3
    return np.asarray(spread / (spread + domain.dimension * errors**2), np.float64)[:, None]


def towards_middle(centers: Floats, errors: Floats, domain: Domain) -> Floats:
    """Move centres (k, d) towards the domain's middle by the noise of their standard errors (k,).

    Where noise is wider than the domain, all centres are one in the middle: nobody does worse than that.
    """
    moved: Floats = domain.middle + linear_shrinkage(errors, domain) * (centers - domain.middle)
    return moved


def middle_shrinkage(errors: Floats, rows: float) -> float:
    """Return the factor of centres' distances from the domain's middle, by the errors (m,) of all counts.

    It is n^2 over the squares of all errors, at most 1, and public.
    """
    noise = float((errors**2).sum())
    return min(1.0, rows**2 / noise) if noise else 1.0


def place_clusters(centers: Floats, points: Coreset, domain: Domain) -> tuple[Floats, Floats]:
    """Place clusters of released points: return their centres (k, d) in the domain and noisy rows (k,).

    A centre is a sum over a count, each of known noise: it is moved to the domain's middle by that of its points' sums.

    Args:
        centers: (k, d), relative to the domain's middle as the points are.
        domain: of the rows.
        points: those of no weight, which solvers leave out, count nowhere, but in a cluster that has no others.
    """
    k, groups = len(centers), nearest(points.points, centers)
    weights, errors = group_sizes(groups, points.weights, k), np.zeros(k)
    if points.errors is not None:
        heavy = (points.weights > 0) | (weights[groups] == 0)
        noise = np.bincount(groups[heavy], points.errors.sums[heavy] ** 2, minlength=k)
        errors = (np.sqrt(noise) / np.maximum(weights, 1.0))[nearest(centers, centers)]  # of repeated centres too
    return towards_middle(domain.truncate(centers + domain.middle), errors, domain), weights
