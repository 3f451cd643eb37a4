"""The fixtures of the tests of engines: what is read here is read on each of them."""

from tests.rows.workers.conftest import many, paths, shared

__all__ = ["many", "paths", "shared"]
