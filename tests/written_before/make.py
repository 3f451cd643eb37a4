"""Writes a file of each format, as today's code has it, to ``files``: ``python -m tests.written_before.make``.

Noise is fresh, so that no two makings are alike. The rows are made up.
"""

from __future__ import annotations

import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

import numpy as np

from cloister.accounting import Ledger, PrivacyTarget
from cloister.federated.protocol.journal import FileJournal
from cloister.run.account import Account
from cloister.run.fit import fit, source
from cloister.run.request import Request
from tests.federated.federated_session import SHAPE, Keys, join, no_noise, vector
from tests.in_process import ran

FILES = Path(__file__).parent / "files"
N = 60
ROWS = np.where(np.arange(N)[:, None] < N // 2, -0.6, 0.6) + 0.05 * np.sin(np.arange(2 * N)).reshape(N, 2)
"""Two groups of thirty people."""

ASKED = f"--columns x,y --bounds=-1:1 --rows {N}"
FIT = f"fit rows.csv -k 2 --epsilon 1 --delta 1e-7 {ASKED}"
PAID = "--ledger budget.db --dataset people"
COMPARE = "compare rows.csv --columns x,y -k 2 --epsilon 1 --methods fastlloyd --runs 1 --workers 1 --out study.jsonl"
PLANS = {
    "plan": "--epsilon 4 --bounds ball:1",
    "rounds": "--epsilon 4 --bounds=-1:1 --method su-lloyd --set rounds=2 "
    "--with counts=optimised-local-hashing --with sums=hadamard-vector",
    "crowd": "--epsilon 1 --delta 1e-5 --bounds ball:1 --with counts=amplified-counts --with sums=amplified-vectors",
}
POOL = 'k = 2\nepsilon = 1.0\ndelta = 1e-6\nrows = 60\nseed = 5\ncolumns = ["x", "y"]\nbounds = [[-1, 1], [-1, 1]]\n'
REQUEST = Request(k=2, epsilon=1.0, delta=1e-7, bounds=(-1, 1), rows=N, method="fastlloyd", zoom="off")
"""Of the run that was cut off."""


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        np.savetxt(folder / "rows.csv", ROWS, "%.4f", delimiter=",", header="x,y", comments="")
        _result_and_ledger(folder)
        counted(folder)
        _collections(folder)
        _pool(folder)
        ran(COMPARE, folder)
        shutil.rmtree(FILES, ignore_errors=True)
        shutil.copytree(folder, FILES)


def _result_and_ledger(folder: Path) -> None:
    """A ledger with a run that is finished, its results, and a run that was cut off before its last step."""
    ran("ledger declare budget.db people --epsilon 10 --delta 1e-5", folder)
    ran(f"{FIT} {PAID} --out fit.json", folder)
    ran(f"{FIT} --out fit.npz", folder)

    def cut(_: object) -> None:
        raise KeyboardInterrupt

    with suppress(KeyboardInterrupt):
        account = Account(ledger=folder / "budget.db", dataset="people")
        fit(REQUEST, source(ROWS), account=account, keep=cut)


def counted(folder: Path) -> None:
    """A ledger with an owner and a counter, a run that asked something, and one that did not."""
    ran("ledger declare counted.db people --epsilon 1 --owner 'A. Meyer' --note May", folder)
    ledger, total = Ledger.open(folder / "counted.db"), PrivacyTarget(0.25)
    asked, _ = (ledger.reserve("people", total, total.measured(["pure"]), "plan", b"seed") for _ in range(2))
    asked.open_round(0, "digest")


def _collections(folder: Path) -> None:
    """Plans of one round and of two, of which one is closed, and under a shuffler's trust; what their people send."""
    for plan, words in PLANS.items():
        ran(f"plan -k 2 --rows {N} --seed 1 --columns x,y {words} --out {plan}", folder)
    for line in (
        "encode plan rows.csv --first 0 --out reports --state one.state --lifetime 6",
        "decode plan reports --out centers.json",
        "encode rounds rows.csv --first 0 --out answers --state two.state",
        "advance rounds --reports answers",
        "encode crowd rows.csv --first 0 --out messages --state three.state",
        "shuffle crowd messages --out shuffled",
        "decode crowd shuffled --out crowd.json",
    ):
        ran(line, folder)


def _pool(folder: Path) -> None:
    """A pool's plan, and the journals of a session with one round."""
    with tempfile.TemporaryDirectory() as certificates:
        keys = ran(f"test-certificates {certificates}/new --party north --party south", folder).stdout
    (folder / "pool.toml").write_text(POOL + keys)
    names, session = ("coordinator", "north", "south", "west"), Keys("pairwise")
    journals = [FileJournal(folder / f"{name}.journal") for name in names]
    coordinator = session.coordinate(journals[0])
    coordinator.expect(SHAPE, no_noise)
    parties = [session.party(i, journal) for i, journal in enumerate(journals[1:])]
    join(coordinator, parties)
    for party in parties:
        coordinator.receive(party.name, vector(party, 0))
    for journal in journals:
        journal.close()


if __name__ == "__main__":
    main()
