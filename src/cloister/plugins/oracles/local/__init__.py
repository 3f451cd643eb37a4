"""Local oracles: every person randomises her own answer, and nobody else ever sees her row.

One idea per file: ``randomised_response`` (exact coins, k-ary response), ``hashing`` (public hashes, and the response
on them), ``reports`` (what leaves a person, and how a row in several buckets is paid for), ``question`` (both halves of
any question), ``counts.channel`` and ``vectors.channel`` (those of counts and of vector sums); then one per mechanism.
"""
