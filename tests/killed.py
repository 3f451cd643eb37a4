"""A process that dies in the middle of a run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from cloister.accounting.ledger.run import Run


class Killed(BaseException):
    """The process dies here."""


@contextmanager
def killed_after(calls: int, step: str = "write") -> Iterator[None]:
    """In this block a run dies right after it has journalled so many looks, or done another of its steps so often."""
    done, original = 0, getattr(Run, step)

    def dies(self: Run, *entry: Any) -> None:
        nonlocal done
        original(self, *entry)
        done += 1
        if done == calls:
            raise Killed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Run, step, dies)
        with pytest.raises(Killed):
            yield
