"""Local oracles: every person randomises her own answer, and nobody else ever sees her row.

One idea per file: ``exact_probability`` (exact probabilities), ``randomised_response`` (k-ary randomised response),
``hashing`` (public hashes), ``levels`` (how a row that is in several buckets is paid for), ``reports`` (what leaves a
person, and how it adds up), ``question`` (the users' half of any question), ``channel`` (the server's half),
``counts.support`` (the one estimator of counts); then one file per mechanism.
"""
