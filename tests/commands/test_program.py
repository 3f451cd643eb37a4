"""The program around the commands: the parser's refusals, outputs that are closed, and Ctrl-C as libraries load."""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
import typer

import cloister as cloister_package
from cloister.accounting.ledger.ledger import Ledger
from cloister.commands import program
from cloister.core.errors import WorkerWarning
from cloister.run.result import Result
from tests.in_process import cloister

PROGRAM = [sys.executable, "-m", "cloister"]
FIT = "fit rows.npy -k 3 --epsilon 1 --delta 1e-6 --bounds=-1:1 --rows 1000 --method fastlloyd"
PAID = "--ledger budget.db --dataset mine"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    np.save(tmp_path / "rows.npy", np.random.default_rng(0).normal(0, 0.3, (1000, 2)))
    Ledger.open(tmp_path / "budget.db", create=True).declare("mine", 10.0, 1e-4)
    return tmp_path


@pytest.mark.parametrize("words", [(), ("ledger",)])
def test_no_words_at_all_show_the_help(words: tuple[str, ...]) -> None:
    done = cloister(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Commands:" in done.stderr


def shell(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """A line of the shell, in which "cloister" is the program."""
    command = line.replace("cloister", " ".join(PROGRAM), 1)
    return subprocess.run(["sh", "-c", command], cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.thorough
@pytest.mark.parametrize("words", ["--version", "ledger show budget.db"])
def test_an_output_that_was_closed_before_the_start_is_one_that_cannot_be_written(words: str, folder: Path) -> None:
    done = shell(f"cloister {words} >&-", folder)
    assert (done.returncode, done.stderr) == (1, "cloister: cannot write the output: Bad file descriptor\n")
    both = shell(f"cloister {words} >&- 2>&-", folder)
    assert (both.returncode, both.stdout, both.stderr) == (1, "", "")
    errors = shell(f"cloister {words} 2>&-", folder)
    assert errors.returncode == 0
    assert errors.stdout


@pytest.mark.thorough
def test_a_closed_output_loses_nothing_that_was_paid_for(folder: Path) -> None:
    told = shell(f"cloister {FIT} {PAID} >&-", folder)
    run = Ledger.open(folder / "budget.db").runs()[-1]
    assert (told.returncode, run.state) == (1, "done")
    assert f"nothing is lost: cloister ledger result budget.db {run.id} prints it again" in told.stderr
    before = set(folder.iterdir())
    kept = shell(f"cloister {FIT} >&- 2>&-", folder)
    (path,) = set(folder.iterdir()) - before
    assert kept.returncode == 1
    assert Result.load(path).columns == ("0", "1")


def test_a_warning_of_ours_is_one_line_and_others_are_as_python_has_them(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    app = typer.Typer()

    @app.command()
    def work() -> None:
        warnings.warn(WorkerWarning("a worker ended early"), stacklevel=1)
        warnings.warn("something else", stacklevel=1)

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        monkeypatch.setattr(program, "PLAINLY", lambda message, *_: print(f"Python says: {message}", file=sys.stderr))
        assert program.run(app, []) == 0
    assert capsys.readouterr().err == "note: a worker ended early\nPython says: something else\n"


def test_the_program_is_light_until_it_hears_ctrl_c() -> None:
    code = "import sys; import cloister.__main__; print([m for m in ('typing', 're', 'typer') if m in sys.modules])"
    source = str(Path(cloister_package.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-S", "-c", code], env={"PYTHONPATH": source}, capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


IMPORTING = """
import builtins, os, signal
load = builtins.__import__
def then_interrupted(name, *given):
    if name == {name!r}:
        os.kill(os.getpid(), signal.SIGINT)
    return load(name, *given)
builtins.__import__ = then_interrupted
from cloister.__main__ import main
main()
"""


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["cloister.cli", "typer", "cloister.run.fit", "numpy"])
def test_ctrl_c_while_libraries_are_loaded_is_one_line(name: str, folder: Path) -> None:
    command = [sys.executable, "-c", IMPORTING.format(name=name), *f"{FIT} {PAID}".split()]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "cloister: interrupted\n")
    assert not Ledger.open(folder / "budget.db").runs()
