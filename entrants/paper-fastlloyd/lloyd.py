"""SuLloyd, GLloyd and FastLloyd, written from the papers in NumPy: an entrant of `cloister bench`, without cloister.

Sources: Diaa, Humphries, Kerschbaum 2024 (arXiv 2405.02437), Algorithm 1, equations 7 to 9, 19 to 25 and 29 to 33; Su,
Cao, Li, Bertino, Jin 2016, for the split and the number of rounds of SuLloyd. A row is added or removed; all rows are
clipped to the public bounds and scaled to [-1, 1].

Three places where the papers leave something open: a cluster whose noisy count is below 1 keeps its centre; folding
reflects at both bounds (period twice the width); the number of rounds follows the public number of rows. The noise is
NumPy's, in floating point: the last bits of a released number can reveal more than the proofs allow.
"""

import json
import math
import os
import sys

import numpy as np

RHO = 0.225
"""Expected coordinate of a centre (Su et al.)."""


def mu_of(epsilon, delta):
    """The largest mu of Gaussian differential privacy that is (epsilon, delta) (Balle and Wang 2018), by bisection."""

    def spent(mu):
        def phi(x):
            return math.erfc(-x / math.sqrt(2)) / 2

        return phi(mu / 2 - epsilon / mu) - math.exp(epsilon) * phi(-mu / 2 - epsilon / mu)

    low, high = 1e-9, 100.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if spent(middle) <= delta else (low, middle)
    return low


def packed(k, d, rng):
    """Centres (k, d) in [-1, 1], far from each other and from the border: section 5.3.1."""
    low, high, best = 0.0, 1.0, rng.uniform(-1, 1, (k, d))
    for _ in range(12):
        radius, chosen = (low + high) / 2, []
        for _ in range(k):
            for _ in range(100):
                point = rng.uniform(radius - 1, 1 - radius, d)
                if all(np.linalg.norm(point - other) >= 2 * radius for other in chosen):
                    chosen.append(point)
                    break
        if len(chosen) == k:
            low, best = radius, np.array(chosen)
        else:
            high = radius
    return best


def schedule(method, n, d, k, epsilon, delta):
    """Rounds, noise scales of sums (in units of their sensitivity) and of counts, and the budget's lines."""
    if method == "sulloyd":
        split = (4 * d * RHO**2) ** (1 / 3)
        least = math.sqrt(500 * k**3 * (d + split) ** 3) / n
        rounds = int(min(max(epsilon / least, 2), 7))
        each = epsilon / rounds / (d + split)
        lines = [("sums", {"epsilon": d * each}), ("counts", {"epsilon": split * each})]
        return rounds, 1 / each, 1 / (split * each), lines
    sigma = 1 / mu_of(epsilon, delta)
    if method == "glloyd":
        ratio = math.sqrt(math.sqrt(d) / (2 * RHO))
        limit = n**2 * 0.004 / (k**3 * d * sigma**2 * (2 * RHO + math.sqrt(d)) ** 2)
    else:
        ratio = (4 * d) ** 0.25
        radius = 0.8 * math.sqrt(d) / k ** (1 / d)
        limit = 4 * n**2 * 0.004 / (k**3 * radius**2 * sigma**2 * (1 + math.sqrt(4 * d)) ** 2)
    rounds = int(min(max(limit, 2), 7))
    sums, counts = sigma * math.sqrt(rounds * (1 + 1 / ratio**2)), sigma * math.sqrt(rounds * (1 + ratio**2))
    return rounds, sums, counts, [("sums", {"mu": 1 / sums}), ("counts", {"mu": 1 / counts})]


def cluster(method, rows, k, plan, start, noise):
    """Centres (k, d) of rows in [-1, 1]."""
    rounds, sum_scale, count_scale, _ = plan
    centers, d = start, rows.shape[1]
    draw = noise.laplace if method == "sulloyd" else noise.normal
    for number in range(rounds):
        square = (rows**2).sum(1)[:, None] - 2 * rows @ centers.T + (centers**2).sum(1)
        nearest = square.argmin(1)
        radius = math.inf
        if method == "fastlloyd":
            radius = math.sqrt(d) * (1 if number == 0 else 0.8 / k ** (1 / d))
        inside = square[np.arange(len(rows)), nearest] < radius**2
        counts = np.bincount(nearest[inside], minlength=k) + draw(0, count_scale, k)
        offsets = rows[inside] - (centers[nearest[inside]] if method == "fastlloyd" else 0)
        sums = np.zeros((k, d))
        np.add.at(sums, nearest[inside], offsets)
        sensitivity = {"sulloyd": 1.0, "glloyd": math.sqrt(d), "fastlloyd": radius}[method]
        sums += draw(0, sum_scale * sensitivity, (k, d))
        moved = sums / np.maximum(counts, 1)[:, None]
        if method == "fastlloyd":
            length = np.linalg.norm(moved, axis=1, keepdims=True)
            moved = centers + moved * np.minimum(1, radius / np.maximum(length, 1e-300))
            moved = np.abs((moved + 1 + 2) % 4 - 2) - 1  # fold at both bounds
        else:
            moved = np.clip(moved, -1, 1)
        centers = np.where(counts[:, None] >= 1, moved, centers)
    return centers


def main():
    method, given = sys.argv[1], {name: os.environ[f"BENCH_{name}"] for name in ("K", "N", "EPSILON", "DELTA", "SEED")}
    low, high = np.loadtxt(os.environ["BENCH_BOUNDS"], delimiter=",", ndmin=2).T
    rows = np.clip(2 * (np.load(os.environ["BENCH_ROWS_NPY"]) - low) / (high - low) - 1, -1, 1)
    k, n, d = int(given["K"]), int(given["N"]), rows.shape[1]
    plan = schedule(method, n, d, k, float(given["EPSILON"]), float(given["DELTA"]))
    public, noise = np.random.default_rng(int(given["SEED"])), np.random.default_rng()
    releases = [
        cluster(method, rows, k, plan, packed(k, d, public), noise) for _ in range(int(os.environ["BENCH_REPEATS"]))
    ]
    centers = [(low + (release + 1) / 2 * (high - low)).tolist() for release in releases]
    statement = [{"mechanism": name, "times": plan[0], **amount} for name, amount in plan[3]]
    with open(os.environ["BENCH_OUT"], "w") as file:
        json.dump({"centers": centers if len(centers) > 1 else centers[0], "statement": statement}, file)


main()
