"""Small sums over released points."""

from __future__ import annotations

import numpy as np

from cloister.plugins.methods.post_processing import james_stein


def test_a_step_is_shortened_by_what_noise_alone_gives_it() -> None:
    squares, noise = np.array([4.0, 2.0, 1.0, 0.0, 0.0, 1e-320]), np.array([1.0, 2.0, 3.0, 1e300, 0.0, 1e300])
    assert np.array_equal(james_stein(squares, noise), [0.75, 0.0, 0.0, 0.0, 1.0, 0.0])  # and no warning of an overflow
