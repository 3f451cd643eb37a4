"""The program around the commands: the parser's refusals, outputs that are closed, and Ctrl-C at any moment."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer

import cloister as cloister_package
from cloister.accounting.ledger.ledger import Ledger
from cloister.commands import program
from cloister.core.errors import WorkerWarning
from cloister.run.result import Result
from tests.in_process import cloister
from tests.waiting import PATIENCE

PROGRAM = [sys.executable, "-m", "cloister"]
FIT = "fit rows.npy -k 3 --epsilon 1 --delta 1e-6 --bounds=-1:1 --rows 1000 --method fastlloyd"
PAID = "--ledger budget.db --dataset mine"
ENDING = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    np.save(tmp_path / "rows.npy", np.random.default_rng(0).normal(0, 0.3, (1000, 2)))
    Ledger.open(tmp_path / "budget.db", create=True).declare("mine", 10.0, 1e-4)
    return tmp_path


@pytest.mark.parametrize("words", [(), ("ledger",)])
def test_no_words_at_all_show_the_help(words: tuple[str, ...]) -> None:
    done = cloister(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert "\n\nOptions:\n" in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can run as somebody else")
@pytest.mark.parametrize("line", ["decode plan reports", "coordinate plan --listen a:1 --cert c"])
def test_a_file_of_somebody_else_s_is_said_to_be_hers_by_the_program_and_never_by_the_parser(
    line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a folder that everybody sees, which pytest's are not, and perhaps not the one that the tests are run in."""
    folder, real = tempfile.mkdtemp(), os.access
    os.chmod(folder, 0o755)
    plan = Path(folder, "plan")
    plan.mkdir(0o700)
    words = line.replace("plan", str(plan)).split()
    cloister(*words)  # what it imports, root alone may read
    monkeypatch.setattr(os, "access", lambda path, *how, **by: str(path) != str(plan) and real(path, *how, **by))
    monkeypatch.chdir("/")  # where the command ends, still as somebody else
    os.seteuid(65534)
    try:
        said = cloister(*words, folder=Path("/")).stderr
    finally:
        os.seteuid(0)
        shutil.rmtree(folder)
    assert "belongs to root" in said
    assert "this runs as nobody: run it as root" in said


def process(*command: str, **settings: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False, **settings)


def shell(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """A line of the shell, in which "cloister" is the program."""
    return process("sh", "-c", line.replace("cloister", " ".join(PROGRAM), 1), cwd=folder)


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
    refused = shell(f"cloister {FIT} --epsilon 0 2>&-", folder)
    assert (refused.returncode, refused.stdout, refused.stderr) == (2, "", "")


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
        monkeypatch.setattr(
            program, "SHOW_WARNING", lambda message, *_: print(f"Python says: {message}", file=sys.stderr)
        )
        assert program.run(app, []) == 0
    assert capsys.readouterr().err == "note: a worker ended early\nPython says: something else\n"


def test_the_program_is_light_until_it_hears_ctrl_c() -> None:
    code = "import sys; import cloister.__main__; print([m for m in ('typing', 're', 'typer') if m in sys.modules])"
    source = str(Path(cloister_package.__file__).parents[1])
    assert process(sys.executable, "-S", "-c", code, env={"PYTHONPATH": source}).stdout == "[]\n"


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
    done = process(sys.executable, "-c", IMPORTING.format(name=name), *f"{FIT} {PAID}".split(), cwd=folder)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "cloister: interrupted\n")
    assert not Ledger.open(folder / "budget.db").runs()


STARTED = """
import builtins
load = builtins.__import__
def begun(name, *given):
    if name == "cloister.cli":
        builtins.__import__ = load
        print("it has begun", flush=True)
    return load(name, *given)
builtins.__import__ = begun
from cloister.__main__ import main
main()
"""
"""Before that an interrupt is Python's own affair, however long a loaded machine takes to get there."""


@pytest.mark.thorough
@pytest.mark.parametrize("by", ENDING)
@pytest.mark.parametrize("after", [0.05, 0.4, 0.8, 1.6])
def test_ctrl_c_and_other_signals_at_any_moment_are_one_line(after: float, by: signal.Signals, folder: Path) -> None:
    np.save(folder / "rows.npy", np.random.default_rng(0).normal(0, 0.3, (200_000, 4)))
    line = f"{FIT} --rows 200000 --delta 1e-8 --set rounds=200 --zoom off {PAID}"
    command = [sys.executable, "-c", STARTED, *line.split()]
    running = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert running.stdout is not None
    assert running.stdout.readline() == "it has begun\n"
    time.sleep(after)
    running.send_signal(by)
    out, err = running.communicate(timeout=PATIENCE)
    assert (running.returncode, out, err.count("\n")) == (128 + by, "", 1), err
    assert err.startswith("cloister: interrupted")
    runs = Ledger.open(folder / "budget.db").runs()
    assert len(runs) == ("is open in budget.db" in err) or "unless 'cloister ledger show" in err


SPILLING = """
import os, signal, sys, typer
from cloister import cli
from cloister.commands.program import run
from cloister.rows.databases.duckdb import settings
app = typer.Typer()
@app.command()
def work():
    spilled = settings()["temp_directory"]
    os.makedirs(spilled)
    open(os.path.join(spilled, "rows"), "w").close()
    print(os.path.dirname(spilled), flush=True)
    os.kill(os.getpid(), signal.{by})
cli.main = lambda: sys.exit(run(app, []))
usual = signal.default_int_handler if signal.{by} == signal.SIGINT else signal.SIG_DFL
signal.signal(signal.{by}, usual)  # a shell that runs the tests in its background ignores the signal
from cloister.__main__ import main
main()
"""


@pytest.mark.parametrize("by", ENDING)
def test_rows_that_spilled_to_a_folder_do_not_outlive_a_program_that_is_ended(by: signal.Signals, folder: Path) -> None:
    done = process(sys.executable, "-c", SPILLING.replace("{by}", by.name), cwd=folder)
    assert (done.returncode, done.stderr) == (128 + by, "cloister: interrupted\n")
    spilled = Path(done.stdout.strip())
    assert spilled.is_absolute()
    assert not spilled.exists()


@pytest.mark.thorough
@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGHUP])
def test_what_a_shell_keeps_from_its_background_or_nohup_from_a_program_is_not_heard(
    by: signal.Signals, folder: Path
) -> None:
    deaf = ["sh", "-c", f"trap '' {by.name.removeprefix('SIG')}; exec \"$@\"", "sh"]
    running = subprocess.Popen(
        [*deaf, *PROGRAM, *FIT.split(), "--json"], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    for _ in range(5):
        time.sleep(0.1)
        os.kill(running.pid, by)
    assert running.communicate(timeout=PATIENCE)[1] == b""
    assert running.returncode == 0


def test_a_shell_completes_commands_and_options_once_it_is_told_how(tmp_path: Path) -> None:
    home = {**os.environ, "HOME": str(tmp_path), "COLUMNS": "120"}
    words = shlex.join([*PROGRAM, "--install-completion"])  # which asks whose child it is
    done = process("bash", "-c", f"{words}; exit $?", env=home)
    assert done.returncode == 0, done.stderr
    script = next(tmp_path.rglob("cloister.sh"))
    assert "_CLOISTER_COMPLETE=complete_bash" in script.read_text()
    for words, wanted in (("cloister expl", "explain"), ("cloister fit --user-c", "--user-column")):
        asked = {"_CLOISTER_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
        assert process(*PROGRAM, env={**home, **asked}).stdout.split() == [wanted]
