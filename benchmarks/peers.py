"""What other programs reached on the twelve sets, as this project measured it once: the figures in ``peers.csv``.

One machine, one NICV function for all (cost / n to the nearest released centre), columns scaled to [-1, 1],
delta = 1 / (n ln n). ``diffprivlib`` 0.6.6 and ``google`` are those packages as published. Methods with a star are the
FastLloyd authors' code with the noise of sums and counts drawn independently: as published they share one stream, so
that the noise can be taken off, and their figures are not comparable. ``tree`` is the noise and dynamic program of
Cohen-Addad et al. 2022 with the depth picked after the fact. birch2_25k was measured on another sample of the set.
scikit-learn, midpoint and mean release no noise. ``cloister bench run entrants/field.toml`` measures such figures anew.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Final, TypeAlias

Figure: TypeAlias = tuple[float, float]
"""Mean and standard error of the NICV."""

PEERS: Final[dict[str, dict[str, dict[float, Figure]]]] = {}
"""``PEERS[set][method][epsilon] = (mean, standard error)``."""

with Path(__file__).with_name("peers.csv").open(encoding="utf-8") as _file:
    for _row in csv.DictReader(_file):
        _figures = PEERS.setdefault(_row["set"], {}).setdefault(_row["method"], {})
        _figures[float(_row["epsilon"])] = float(_row["nicv"]), float(_row["standard_error"])
