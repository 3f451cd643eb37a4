"""Reports and messages that come from outside: columns that no encoder made are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cloister.plugin import Refused
from cloister.plugins.oracles.local.reports import Reports
from cloister.plugins.oracles.shuffled.mixing import Shares
from cloister.plugins.oracles.shuffled.tagged import Tagged

WORDS = np.arange(3, dtype=np.uint64)
SENT = (
    Reports(WORDS, np.zeros((3, 1), np.uint8), 9),
    Shares(9, np.zeros(3, np.uint32), WORDS),
    Tagged(9, np.zeros(3, np.uint16), WORDS, np.zeros(3, np.uint16)),
)


@pytest.mark.parametrize("sent", SENT, ids=lambda sent: type(sent).__name__)
def test_columns_that_no_encoder_made_are_refused(sent: Any) -> None:
    good = sent.columns()
    assert type(sent).load(good).columns().keys() == good.keys()
    wrong = [("have the columns", {**good, "more": WORDS}), ("several questions", {**good, "question": WORDS})]
    for name, column in good.items():
        wrong.append(("have the columns", {other: good[other] for other in good if other != name}))
        for changed in (column[:-1], column[None], column.astype(np.float32)):
            wrong.append(("column|differ in length", {**good, name: changed}))
    for message, columns in wrong:
        with pytest.raises(Refused, match=message):
            type(sent).load(columns)
