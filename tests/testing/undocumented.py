"""An oracle of which nothing is said."""

from __future__ import annotations

from tests.testing.honest import HonestCounts


class Undocumented(HonestCounts):
    """Counts."""
