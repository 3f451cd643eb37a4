"""How little shuffled shares say beside their sum (Ishai, Kushilevitz, Ostrovsky, Sahai 2006), with its constants.

Each of n users cuts a number in Z_q, q = 2^w, into m shares, uniform but for their sum. Whoever sees all n m shares in
random order learns the sum of the numbers. What else? For two inputs x, x' of one sum let SD be the statistical
distance of the two laws of the multiset.

**Uniform inputs, M shares.** A multiset is a vector u of n M uniform numbers, dealt out to the users by a random
partition pi. Given u, the chance that two independent partitions give every user the same sum is, over u,
E[q^-(n - C)]: an edge from the owner of a number under pi to its owner under pi' makes a random graph on the n users,
the n equations are its incidence matrix, which is totally unimodular with rank n - C for C components. By Cauchy and
Schwarz the inputs given the multiset are, in the mean, within sqrt(B) / 2 of uniform over those of their sum, with
B = E[q^(C - 1)] - 1.

**Any inputs, m = M + 1 shares.** The first share z is uniform and the rest encodes x - z, which is uniform too. Even
whoever is told which shares are first ones sees the multisets of x - z and x' - z, of one sum, each within sqrt(B) / 2
of the mean over that sum. So

    SD <= sqrt(B),      B = E[q^(C - 1)] - 1 at M = m - 1.

**B.** q^C is how many ways there are to colour the users with q colours so that every component has one. A set of s
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

B is about q n / binom(n M, M), some q (e n)^-M n: every share more brings log2(n) + 1.4 bits of B. Balle, Bell, Gascon,
Nissim (2020, Private summation in the multi-message shuffle model; 2019, Improved summation from shuffling) bound the
same graph with other constants: a distance of 2^-nu needs m = ceil((2 nu + log2 q) / (log2 n - log2 e)) + 2 shares
(n >= 19), Ghazi, Manurangsi, Pagh, Velingker (2020, Private aggregation from fewer anonymous messages)
O(1 + (nu + log q) / log n). The bound above asks for one to three shares less.

**What a distance costs.** Let I be the ideal mechanism, which shows noisy sums, and M what the shares show, within t of
it. Thin I(D) out: keep an outcome y with chance g(y) = min(1, M(D) / I(D), M(D') / I(D')). What is kept is below M(D),
and of D' below M(D'); both thinned laws are I(D) and I(D') after the same post-processing, so that they are as far
apart as those, in any measure. What is lost of I(D) has probability at most t + (the chance under I(D) of what has
chance t under I(D')). If I is mu-GDP, the latter is at most Phi(Phi^-1(t) + mu). So
``Event.delta`` = t + Phi(Phi^-1(t) + mu) keeps the promise of ``cloister.accounting.composition`` in both directions,
though a row is replaced, and deltas add over a run of any epsilon. (With (eps, delta) in place of mu this reads
(1 + e^eps) t + delta.)
"""

from __future__ import annotations

import math
from statistics import NormalDist

from cloister.accounting.conversions import largest

MIN_USERS = 19
"""Fewer than this do not mix."""

MAX_SHARES = 512
"""Per number: where more would be needed there is something wrong with the plan."""


def log2_distance(users: int, bits: int, shares: int) -> float:
    """Log2 of the bound on the statistical distance, at most 0.

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
        left = n - k
        grown = log_q + math.log(left) + math.log(left - 1) - _log_binomial(left, dealt, 1)
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
    rest = math.log(n)
    logs = (log_q + one, log_q + two, math.log(2) + third, rest + (2 - half) * math.log(2) + third, rest + last)
    most = max(logs)
    total = most + math.log(sum(math.exp(x - most) for x in logs))
    return min(0.0, (total / 2 + 1e-3) / math.log(2))  # 1e-3: more than rounding may be


def _log_binomial(users: int, dealt: int, some: int) -> float:
    """log binom(users * dealt, some * dealt)."""
    total, low = users * dealt, some * dealt
    return math.fsum(math.log(total - j) for j in range(low)) - math.lgamma(low + 1)


def enough_shares(users: int, bits: int, security: float) -> int | None:
    """The fewest shares per number whose distance is at most 2^-security; None if there are none."""
    for shares in range(5, MAX_SHARES):
        if log2_distance(users, bits, shares) <= -security:
            return shares
    return None


def price(distance: float, mu: float) -> float:
    """The delta that a statistical distance adds to a mu-GDP mechanism, up to a discreteness that costs less than 0.1%.

    Rounded up: the law of discrete noise is within e^(1e-3) of the rounded Gaussian, but for tails far below 1e-30.
    """
    far = NormalDist().inv_cdf(min(0.5, 1.001 * distance + 1e-30)) + mu
    return distance + 1.001 * 0.5 * math.erfc(-far / math.sqrt(2)) + 1e-30


def most_distance(delta: float, mu: float) -> float:
    """The largest statistical distance that this delta pays for; 0 if it pays for none."""
    return largest(lambda t: t < 1 and price(t, mu) <= delta) if delta > 1e-25 else 0.0
