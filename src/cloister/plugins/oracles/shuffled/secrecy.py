"""Bound on what shuffled shares reveal beside their sum (Ishai, Kushilevitz, Ostrovsky, Sahai 2006), with constants.

Each of n users splits a number in Z_q, q = 2^w, into m shares, uniform but for their sum. Whoever sees all n m shares
in random order learns the sum of the numbers. For two inputs x, x' of the same sum let SD be the statistical distance
of the two laws of the multiset of shares.

**Uniform inputs, M shares.** A multiset is a vector u of n M uniform numbers, dealt out to the users by a random
partition pi. The probability, over u, that two independent partitions give every user the same sum is E[q^-(n - C)]: an
edge from the owner of a number under pi to its owner under pi' makes a random graph on the n users, and the n equations
are its incidence matrix, which is totally unimodular with rank n - C for C components. By Cauchy and Schwarz the inputs
given the multiset are, in the mean, within sqrt(B) / 2 of uniform over those of their sum, with B = E[q^(C - 1)] - 1.

**Any inputs, m = M + 1 shares.** The first share z is uniform and the others encode x - z, which is uniform too. Even
an observer who knows which shares are first ones sees the multisets of x - z and x' - z, of the same sum, each within
sqrt(B) / 2 of the mean over that sum. So

    SD <= sqrt(B),      B = E[q^(C - 1)] - 1 at M = m - 1.

**B.** q^C is the number of ways to colour the users with q colours so that each component has one colour. A set of s
users is closed with probability (s M)! ((n - s) M)! / (n M)!, so with a_s = (s M)! / s!

    B = sum over k >= 1 of binom(q, k + 1) / q * sum over s_0 + ... + s_k = n, all s_i >= 1,
        of a_(s_0) ... a_(s_k) / a_n.

Here binom(q, k + 1) / q <= q^k / (k + 1)!, and a is log-convex (a_(s+1) / a_s = M (s M + 1) ... (s M + M - 1) grows).
k = 1: two terms n / binom(n M, M), and n - 3 that are at most binom(n, 2) / binom(n M, 2 M). k >= 2: by log-convexity a
product is at most a_1^k a_(n-k), and there are binom(n - 1, k) of them, together at most

    T_k = q^k / (k + 1)! * binom(n - 1, k) (M!)^k a_(n-k) / a_n,
    T_(k+1) / T_k = q N (N - 1) / (binom(N M, M) (k + 1) (k + 2)),      N = n - k.

The ratio is log-convex in k (for M >= 4: of log binom(N M, M) = sum of log(N M - j) up to constants, the term j = 0 is
log N, and the others are together more concave than log(N - 1)). So if it is at most 1/2 at k = 2 and at
h = floor(n / 2), it is so between, T_2 + ... + T_h is at most 2 T_2, and T falls and then rises beyond: at most n
(2^(2 - h) T_2 + T_(n-1)), T_(n-1) = q^(n-1) (M!)^n / (n M)!.

B is about q n / binom(n M, M), or q (e n)^-M n: every additional share takes log2(n) + 1.4 bits off B. Balle, Bell,
Gascon, Nissim (2020, Private summation in the multi-message shuffle model; 2019, Improved summation from shuffling)
bound the same graph with other constants: a distance of 2^-nu needs m = ceil((2 nu + log2 q) / (log2 n - log2 e)) + 2
shares (n >= 19), Ghazi, Manurangsi, Pagh, Velingker (2020, Private aggregation from fewer anonymous messages)
O(1 + (nu + log q) / log n). The bound above needs one to three shares fewer.

**The delta of a distance.** Let I be the ideal mechanism, which releases noisy sums, and M the one that releases
shares, within t of it. Thin I(D) out: keep an outcome y with probability g(y) = min(1, M(D) / I(D), M(D') / I(D')). The
result is below M(D), and for D' below M(D'); both are I(D) and I(D') after the same post-processing, so that they are
as far apart as those, in any measure. The discarded part of I(D) has probability at most t + (the probability under
I(D) of an event of probability t under I(D')). If I is mu-GDP, the latter is at most Phi(Phi^-1(t) + mu). So
``Event.delta`` = t + Phi(Phi^-1(t) + mu) keeps the promise of ``cloister.accounting.composition`` in both directions,
though a row is replaced, and deltas add over a run of any epsilon. (With (eps, delta) in place of mu this reads
(1 + e^eps) t + delta.)
"""

from __future__ import annotations

import math
from statistics import NormalDist

from cloister.accounting.conversions import largest

MIN_USERS = 19
"""Smallest number of honest users for which shares are used."""

MAX_SHARES = 512
"""Limit of shares per number: a plan that needs more is refused."""


def log2_distance(users: int, bits: int, shares: int) -> float:
    """Return log2 of the bound on the statistical distance, at most 0.

    Args:
        users: n, all honest.
        bits: w, of a ring of q = 2^w numbers.
        shares: m, at least 2.
    """
    n, dealt = users, shares - 1
    if n < MIN_USERS or dealt < 4:
        return 0.0
    log_q = bits * math.log(2)

    def log_ratio(k: int) -> float:
        remaining = n - k
        grown = log_q + math.log(remaining) + math.log(remaining - 1) - _log_binomial(remaining, dealt, 1)
        return grown - math.log(k + 1) - math.log(k + 2)

    half = n // 2
    if max(log_ratio(2), log_ratio(half)) > -math.log(2):
        return 0.0
    pairs = math.log(n / 2) + math.log(n - 1)
    one = math.log(n) - _log_binomial(n, dealt, 1)
    two = math.log((n - 3) / 2) + pairs - _log_binomial(n, dealt, 2)
    third = math.log(n - 1) + log_q + one - math.log(2)  # T_1: binom(n - 1, 1) q / 2 * n / binom(n M, M)
    third += log_ratio(1)
    last = (n - 1) * log_q + n * math.lgamma(dealt + 1) - math.lgamma(n * dealt + 1)
    log_n = math.log(n)
    logs = (log_q + one, log_q + two, math.log(2) + third, log_n + (2 - half) * math.log(2) + third, log_n + last)
    largest_log = max(logs)
    total = largest_log + math.log(sum(math.exp(x - largest_log) for x in logs))
    return min(0.0, (total / 2 + 1e-3) / math.log(2))  # 1e-3: above any rounding error


def _log_binomial(users: int, dealt: int, chosen: int) -> float:
    """Return log binom(users * dealt, chosen * dealt)."""
    total, low = users * dealt, chosen * dealt
    return math.fsum(math.log(total - j) for j in range(low)) - math.lgamma(low + 1)


def enough_shares(users: int, bits: int, security: float) -> int | None:
    """Return the smallest number of shares whose distance is at most 2^-security, or None."""
    for shares in range(5, MAX_SHARES):
        if log2_distance(users, bits, shares) <= -security:
            return shares
    return None


def delta_of_distance(distance: float, mu: float) -> float:
    """Return the delta that a statistical distance adds to a mu-GDP mechanism, rounded up.

    Discreteness costs less than 0.1%: the law of discrete noise is within e^(1e-3) of the rounded Gaussian, but for
    tails far below 1e-30.
    """
    far = NormalDist().inv_cdf(min(0.5, 1.001 * distance + 1e-30)) + mu
    return distance + 1.001 * 0.5 * math.erfc(-far / math.sqrt(2)) + 1e-30


def max_distance(delta: float, mu: float) -> float:
    """Return the largest statistical distance that this delta pays for, or 0."""
    return largest(lambda t: t < 1 and delta_of_distance(t, mu) <= delta) if delta > 1e-25 else 0.0
