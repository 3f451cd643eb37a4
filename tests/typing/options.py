"""A component's options may be left out: they have defaults."""

from __future__ import annotations

from typing import assert_type

from stubs import CentralCounts, CentralSums

from cloister.core.trust import Central
from cloister.plugins.methods.lloyd import Lloyd
from cloister.plugins.methods.sphere_packing import SpherePacking
from cloister.plugins.solvers.plus_plus import KMeansPlusPlus

assert_type(Lloyd(start=SpherePacking(), counts=CentralCounts(), sums=CentralSums()), Lloyd[Central])
assert_type(Lloyd(start=SpherePacking(), counts=CentralCounts(), sums=CentralSums(), rounds=5), Lloyd[Central])
KMeansPlusPlus()
KMeansPlusPlus(starts=3)
