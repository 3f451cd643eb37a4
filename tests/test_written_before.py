"""A file of each format that cloister writes is read as it was written: results, a ledger, plans, reports, states, a
pool's plan and journals, a study.

Version 0.1.0 will be the first that is owed anything: what it writes, all later versions read, and its files stay here
for good. Until then a format may change, and ``python -m tests.written_before.make`` makes the files again.
"""

from __future__ import annotations

import shutil
import tomllib
from pathlib import Path
from typing import Any

import pytest

from cloister.accounting.ledger.ledger import Ledger
from cloister.collection.plan import bundle_folder
from cloister.collection.plan.transcript import Transcript
from cloister.core.errors import Refused
from cloister.federated.plan import read_pool_plan
from cloister.federated.protocol.journal import FileJournal
from cloister.run.account import Account
from cloister.run.fit import fit, source
from cloister.run.result import Result
from tests.in_process import ran, refused
from tests.written_before.make import COMPARE, FILES, FIT, PAID, REQUEST, ROWS


@pytest.fixture
def before(tmp_path: Path) -> Path:
    """A copy of it all."""
    copied = Path(shutil.copytree(FILES, tmp_path / "before"))
    (copied / "budget.db.key").chmod(0o600)  # which a repository does not keep
    return copied


def found(path: Path) -> dict[str, Any]:
    """What a result released; what it says of the candidates of ``auto`` follows from what is installed, and is left
    out."""
    result = Result.load(path).as_dict()
    result["details"].pop("auto", None)
    result["privacy"]["notes"] = [note for note in result["privacy"]["notes"] if "predicted error" not in note]
    return {name: result[name] for name in ("centers", "weights", "details", "privacy")}


@pytest.mark.parametrize("name", ["fit.json", "fit.npz", "centers.json", "crowd.json"])
def test_a_result_is_read(name: str, before: Path) -> None:
    assert Result.load(before / name).columns == ("x", "y")
    assert "2 clusters, from released values alone" in ran(f"profile {name}", before).stdout


def test_a_finished_run_is_printed_again_from_its_ledger_and_computed_again_from_its_record(before: Path) -> None:
    done, cut = Ledger.open(before / "budget.db").runs()
    assert (done.state, cut.state) == ("done", "open")
    ran(f"ledger result budget.db {done.id} --out printed.json", before)
    ran(f"{FIT} {PAID} --resume {done.id} --out computed.json", before)
    assert found(before / "printed.json") == found(before / "computed.json") == found(before / "fit.json")


def test_a_run_that_was_cut_off_goes_on_with_its_rows_and_no_others(before: Path) -> None:
    """By the marks that the ledger keeps of them under its key."""
    ledger = before / "budget.db"
    _, cut = Ledger.open(ledger).runs()
    account = Account(ledger=ledger, dataset="people", resume=cut.id)
    with pytest.raises(Refused, match="began with other rows"):
        fit(REQUEST, source(ROWS + 1e-3), account=account)
    assert fit(REQUEST, source(ROWS), account=account).centers.shape == (2, 2)
    assert [run.state for run in Ledger.open(ledger).runs()] == ["done", "done"]


def test_a_counter_still_proves_which_run_asked_nothing(before: Path) -> None:
    asked, unused = Ledger.open(before / "counted.db").runs()
    assert "\n  owner: A. Meyer\n  note: May\n" in ran("ledger show counted.db", before).stdout
    ran(f"ledger give-back counted.db {unused.id}", before)
    assert "ended without a question" in ran("ledger show counted.db", before).stdout
    assert "was given back before it asked anything" in refused(f"ledger result counted.db {unused.id}", before)
    refused(f"ledger give-back counted.db {asked.id}", before)


@pytest.mark.parametrize(("plan", "closed"), [("plan", 0), ("rounds", 1), ("crowd", 0)])
def test_a_plan_asks_the_rounds_that_it_was_published_with(plan: str, closed: int, before: Path) -> None:
    transcript = Transcript.read(before / plan)
    assert transcript.index == closed
    assert transcript.round().digest() == transcript.record().digests[-1]
    assert len(bundle_folder.check(before / plan)) == closed + 1


def test_reports_are_decoded_to_the_same_centres(before: Path) -> None:
    ran("decode plan reports --out again.json", before)
    assert found(before / "again.json") == found(before / "centers.json")


def test_messages_are_shuffled_and_decoded_to_the_same_centres(before: Path) -> None:
    ran("shuffle crowd messages --out again", before)
    for folder in ("shuffled", "again"):
        ran(f"decode crowd {folder} --out again.json", before)
        assert found(before / "again.json") == found(before / "crowd.json")


def test_a_state_gives_the_same_reports_and_keeps_its_lifetime(before: Path) -> None:
    encode = "encode plan rows.csv --first 0 --state one.state"
    ran(f"{encode} --out again", before)
    (path,) = (before / "again").iterdir()
    (then,) = (before / "reports").iterdir()
    assert path.read_bytes() == then.read_bytes()
    refused(f"{encode} --out more --lifetime 10", before)


def test_a_state_answers_the_next_round_of_a_plan(before: Path) -> None:
    ran("encode rounds rows.csv --first 0 --out answers --state two.state", before)
    ran("advance rounds --reports answers --out done.json", before)
    assert Result.load(before / "done.json").centers.shape == (2, 2)


def test_a_pool_s_plan_is_read(before: Path) -> None:
    assert [member.name for member in read_pool_plan(before / "pool.toml").agreement.members] == ["north", "south"]


@pytest.mark.parametrize("owner", ["coordinator", "north", "south", "west"])
def test_a_journal_is_read(owner: str, before: Path) -> None:
    journal = FileJournal(before / f"{owner}.journal")
    assert len(journal.entries) > 1
    journal.close()


def test_a_study_goes_on_with_what_is_finished(before: Path) -> None:
    content = (before / "study.jsonl").read_bytes()
    ran(COMPARE, before)
    assert (before / "study.jsonl").read_bytes() == content


def test_each_file_is_of_one_format_and_each_format_has_files_and_a_test() -> None:
    """A format that is not in the table has no test: add both."""
    table = tomllib.loads(FILES.with_name("formats.toml").read_text("utf-8"))["format"]
    files = {path for path in FILES.rglob("*") if path.is_file()}
    of = [{path for each in one["files"] for path in files if path.match(each)} for one in table]
    assert all(of)
    assert sorted(path for found in of for path in found) == sorted(files - {FILES / "rows.csv"})
    assert all(callable(globals()[one["test"]]) for one in table)
