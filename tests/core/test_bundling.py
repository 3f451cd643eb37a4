"""Descriptions of public objects for devices that run no Python."""

from __future__ import annotations

import attrs
import numpy as np
import pytest

from cloister.core.buckets import BundleArrays, described, integers
from cloister.core.errors import Refused
from tests.reference_client.words import opened


def test_a_device_reads_the_arrays_that_were_stored() -> None:
    for values, kind in (
        (np.array([[-(2**31), 2**31 - 1], [0, 7]]), "i4"),
        (np.array([2**31, -(2**62)]), "i8"),
        (np.array([0.1, -0.0, 1e300]), "f8"),
        (np.empty((0, 3, 2), np.int64), "i4"),
    ):
        arrays = BundleArrays()
        arrays.add(np.array([1]))
        place = arrays.add(values)
        assert (place["type"], place["at"] % 8) == (kind, 0)
        assert opened(place, bytes(arrays.content)) == values.tolist()


def test_integers_that_many_readers_would_round_are_text() -> None:
    assert integers([0, 2**53 - 1, 2**53, -(2**60)]) == [0, 2**53 - 1, str(2**53), str(-(2**60))]


def test_an_object_that_cannot_be_described_is_refused_with_what_to_do() -> None:
    @attrs.frozen
    class Strange:
        pass

    with pytest.raises(Refused, match=r"Strange cannot be described .* ask the author of its plugin"):
        described(Strange(), BundleArrays())
