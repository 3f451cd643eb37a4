"""What a round's public objects say of themselves, for compiling: descriptions, and the arrays beside them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias, final

import numpy as np

from cloister.core.bundling import BundleArrays, described
from cloister.core.errors import CloisterError, Refused
from cloister.core.types import AnyArray

Description: TypeAlias = Mapping[str, Any]


class NotCompiled(CloisterError):
    """Something that has no form in SQL here, or one that is too long: rows are then located in Python."""


@final
class Described:
    """Descriptions of public objects, and what their arrays hold."""

    def __init__(self) -> None:
        self._arrays = BundleArrays()

    def of(self, part: object) -> Description:
        """Raises: NotCompiled: it does not describe itself."""
        try:
            return described(part, self._arrays)
        except Refused as error:
            raise NotCompiled(str(error)) from None

    def array(self, entry: Description) -> AnyArray:
        """The array that stands for this entry of a description."""
        kind, shape = np.dtype(f"<{entry['type']}"), entry["shape"]
        found = np.frombuffer(bytes(self._arrays.content), kind, int(np.prod(shape, dtype=np.int64)), entry["at"])
        return found.reshape(shape).astype(np.float64 if kind.kind == "f" else np.int64)
