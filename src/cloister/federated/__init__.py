"""Parties that pool what they cannot read: the masked aggregation of Diaa, Humphries and Kerschbaum, free of I/O.

``protocol`` holds state machines on bytes: ``agreement`` (what all agree on), ``messages`` (bytes), ``coordinator``
(adds, never unmasks) and ``party``; ``keys``, ``masking`` and ``unmasking`` are the parties' alone, and no module of
the coordinator's may import them. ``streams`` and ``coordinator_masks`` serve both sides: the mask that a party shares
with the coordinator, against everybody else who reads the wire. ``journal`` keeps what must survive a crash.
``transport`` carries the bytes between machines; ``plan`` is the file that people write, and ``population`` the run's
view of it all.

Who learns what, in the words of Diaa et al. 2024, section 3, by mode and by who colludes with whom:
``protocol.collusion``.

Source: Diaa, Humphries, Kerschbaum 2024, Figure 1; pairwise masks: Bonawitz et al. 2017, section 4.
"""
