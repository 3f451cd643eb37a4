"""Oracles under local trust: every person randomises her own answer, and nobody else ever sees her row.

Modules: ``coins`` (exact), ``randomised_response``, ``hashing`` (public hashes, and the response on them),
``packed_sets``, ``reports`` (and how a row in several buckets is paid for), ``question`` (the users' and the server's
half of any question), ``counts.channel`` and ``vectors.channel`` (those of counts and vector sums); then one per
mechanism.
"""
