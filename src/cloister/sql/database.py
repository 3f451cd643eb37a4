"""A connected engine: what is asked of it, in one snapshot, and how its failures are told."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, final

from cloister.core.errors import CloisterError, InvalidInput
from cloister.sql.dialects import dialect_of

ANSWER = 2**16
"""Rows that are fetched at once."""


class EngineFailed(InvalidInput):
    """An engine did not answer. Its own message may quote a row and goes no further."""


@final
class Database:
    """The engine that a table of Ibis is in. Args: table."""

    def __init__(self, table: Any) -> None:
        self.backend = table.get_backend()
        self.dialect = dialect_of(self.backend)
        self._open = False

    @property
    def name(self) -> str:
        """Ibis' name of the engine."""
        return str(self.backend.name)

    def begin(self) -> None:
        """From here on all questions are answered of the same rows, if the engine can do that."""
        if not self._open:
            self._open = self._guarded(lambda: self.dialect.begin(self.backend))

    def answer(self, expression: Any) -> Any:
        """An Arrow table. Raises: EngineFailed; nothing was answered."""
        return self._guarded(lambda: self.dialect.stream(expression, ANSWER).read_all())

    def batches(self, expression: Any, size: int) -> Iterator[Any]:
        """Arrow batches of at most so many rows. Raises: as ``answer``."""
        batches = self._guarded(lambda: iter(self.dialect.stream(expression, size)))
        while (batch := self._guarded(lambda: next(batches, None))) is not None:
            yield batch

    def close(self) -> None:
        """End the snapshot. The connection is its owner's."""
        if self._open:
            self._open = False
            self._guarded(lambda: self.dialect.end(self.backend))

    def _guarded(self, asked: Any) -> Any:
        try:
            return asked()
        except CloisterError:
            raise
        except Exception as error:  # a driver's message may quote a row
            raise EngineFailed(
                f"{self.name} could not answer ({type(error).__name__}): nothing was answered, and no part of an "
                f"answer is kept"
            ) from None
