"""Federated runs: parties pool masked sums that no other side can read (Diaa, Humphries and Kerschbaum), free of I/O.

``protocol`` holds state machines on bytes: ``agreement`` (what all agree on), ``messages`` (bytes), ``coordinator``
(adds, never unmasks) and ``party``. ``masking`` is the parties' alone: no module of the coordinator's may import it.
``streams`` serves both sides: the mask that a party shares with the coordinator, against everybody else who reads the
wire. ``journal`` keeps what must survive a crash, ``collusion`` states who learns what, by mode and by who colludes
with whom. ``transport`` carries the bytes between machines; ``plan`` is the file that people write, and ``population``
the run's view of it all.

Source: Diaa, Humphries, Kerschbaum 2024, Figure 1; pairwise masks: Bonawitz et al. 2017, section 4.
"""
