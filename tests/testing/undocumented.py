"""An oracle of which nothing is said."""

from __future__ import annotations

from tests.testing.caught import caught_by
from tests.testing.honest import HonestCounts


@caught_by("the_guarantee_is_documented")
class Undocumented(HonestCounts):
    """Counts."""
