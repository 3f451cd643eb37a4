"""The fixtures of the tests of engines: what is read here is read on each of them."""

from tests.rows.workers.conftest import many, shared

__all__ = ["many", "shared"]
