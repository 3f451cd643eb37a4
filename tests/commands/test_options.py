"""One declaration of options: every command that reads rows takes the same, in the same words, or says why not."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import attrs
import pytest
import typer

from cloister.cli import app
from cloister.commands import options as commands_options
from cloister.commands.cli_option import HEADINGS, ROWS, declared
from cloister.commands.option_groups import GROUPS
from cloister.commands.options import WAYS, LedgerOptions, OutputOptions, RunOptions
from cloister.rows.categories import Category
from cloister.rows.options import Reading, options_of_rows
from cloister.rows.reading import reading_fingerprints
from cloister.rows.selection import Selection
from tests.in_process import cloister

COMMANDS: dict[str, Any] = typer.main.get_command(app).commands  # type: ignore[attr-defined]  # a group
READ_ROWS = "fit", "explain", "evaluate", "predict", "profile", "compare", "drift", "encode", "answer", "join"


def options(name: str) -> dict[str, Any]:
    """The options of a command, by its parameters' names."""
    return {parameter.name: parameter for parameter in COMMANDS[name].params}


@pytest.mark.parametrize("name", READ_ROWS)
def test_a_command_that_reads_rows_takes_every_option_of_rows_or_says_why_not(name: str) -> None:
    (group,) = [group for group in GROUPS[name].values() if group.kind is Reading]
    given = options(name)
    for option in declared(Reading):
        assert (option in given) != bool(group.missing.get(option)), option


@pytest.mark.parametrize("name", READ_ROWS)
def test_no_option_of_rows_is_taken_and_forgotten(name: str) -> None:
    """A command hands all of them on together, those that it leaves out there and all others each by its name."""
    (parameter,) = [given for given, group in GROUPS[name].items() if group.kind is Reading]
    module = {"answer": "encode", "explain": "fit"}.get(name, name)
    file = Path(inspect.getfile(commands_options)).with_name(f"{module}.py").read_text("utf-8")
    _, _, source = file.partition(f"\ndef {name}(")
    source, _, _ = source.partition("\n\n\n")
    assert source
    whole, replaced = re.search(rf"[(,] ?{parameter}[,)]", source), re.search(rf"evolve\({parameter}, (.*)\)", source)
    alone = [o for o in GROUPS[name][parameter].taken if not whole or (replaced and f"{o}=None" in replaced[1])]
    assert not [option for option in alone if f"{parameter}.{option}" not in source]


@pytest.mark.parametrize("name", ["fit", "explain", "plan", "compare"])
def test_no_option_of_a_run_is_taken_and_forgotten(name: str) -> None:
    """What is not handed on together (``options.request``) is by its name."""
    (parameter,) = [given for given, group in GROUPS[name].items() if group.kind is RunOptions]
    file = Path(inspect.getfile(commands_options)).with_name(f"{'fit' if name == 'explain' else name}.py")
    _, _, source = file.read_text("utf-8").partition(f"\ndef {name}(")
    assert source
    if f"{parameter}.request(" not in source:
        assert [o for o in GROUPS[name][parameter].taken if f"{parameter}.{o}" not in source] == []


@pytest.mark.parametrize("name", sorted({name for name, groups in GROUPS.items() if name in COMMANDS}))
def test_an_option_that_a_command_does_not_take_is_refused_with_the_reason(name: str) -> None:
    for group in GROUPS[name].values():
        for option, why in group.missing.items():
            flag = declared(group.kind)[option].flags[-1]
            done = cloister(name, flag, "x")
            if flag not in {flag for parameter in COMMANDS[name].params for flag in parameter.opts}:
                assert (done.returncode, done.stderr) == (2, f"cloister: {name} takes no {flag}: {why}\n")


def test_a_resumed_run_compares_every_option_that_says_what_rows_are() -> None:
    """A run that was cut off goes on with the same rows only: what it began with is marked, option by option."""
    chosen = Selection(("x",), categories=(Category("ward", ("A", "B")),))
    fingerprints = reading_fingerprints(chosen, Reading(user_column="patient", delimiter=",", encoding="utf-8"))
    for name, option in options_of_rows().items():
        assert (f"{option.flag} ({name}=)" in fingerprints) == option.decides_rows, name


def test_what_reads_no_rows_has_no_heading_of_rows() -> None:
    """The server's commands take engines for reports, and see no row."""
    with_rows = {name for name in COMMANDS if any(group.kind is Reading for group in GROUPS.get(name, {}).values())}
    headed = {
        name
        for name, command in COMMANDS.items()
        if any(getattr(each, "rich_help_panel", None) == ROWS for each in getattr(command, "params", ()))
    }
    assert {"decode", "advance", "shuffle"} <= set(COMMANDS) - with_rows
    assert headed <= with_rows


def test_no_other_command_has_an_option_of_rows_of_its_own() -> None:
    """One that has the name of an option of rows, and did not get it from the declaration."""
    for name, command in COMMANDS.items():
        taken = {option for group in GROUPS.get(name, {}).values() for option in group.taken}
        own = {parameter.name for parameter in getattr(command, "params", ())} - taken
        assert not own & {"categories", "missing", "user_column", "delimiter", "encoding", "materialise"}, name


@pytest.mark.parametrize("name", GROUPS)
def test_an_option_has_the_same_words_and_heading_wherever_it_stands(name: str) -> None:
    given = options(name)
    for group in GROUPS[name].values():
        for option, said in group.taken.items():
            default = "" if option in group.requires else group.defaults.get(option)
            assert given[option].help == (said if default is None else said.with_default(default)).words
            assert given[option].rich_help_panel == said.heading
            assert said.heading in HEADINGS


def test_fit_takes_everything_and_explain_all_that_decides_what_fit_would_do() -> None:
    for kind in (Reading, RunOptions):
        for name in ("fit", "explain"):
            assert set(declared(kind)) <= set(options(name))
    assert set(declared(LedgerOptions)) | set(declared(OutputOptions)) <= set(options("fit"))


def test_the_names_are_those_of_python() -> None:
    import cloister
    from cloister.run.request import Request

    mine = set(inspect.signature(cloister.KMeans).parameters)
    shared = {"columns", "categories", "missing", "user_column", "threads", "trust", "rows_per_user", "components"}
    assert shared | {"options", "bounds", "zoom", "scale", "epsilon", "delta", "method"} <= mine
    # a draft of the method holds the components and options
    wanted = set(declared(RunOptions)) - {"public_rows", "pooled", "components", "options"} | {"rows"}
    assert wanted <= {field.name for field in attrs.fields(Request)}


def test_each_field_of_a_request_is_an_option_and_a_parameter() -> None:
    """A layer's field, for one: whoever adds it sees here what has forgotten it."""
    import cloister
    from cloister.run.request import Request

    fields = {field.name for field in attrs.fields(Request)}
    set_by_others = {"parties", "laws"}  # by a pool's plan, and by a ledger
    assert fields - set(declared(RunOptions)) <= {*set_by_others, "rows"}, "an option in commands/options.py"
    missing = fields - set(inspect.signature(cloister.KMeans).parameters)
    assert missing <= {*set_by_others, "k", "seed"}, "a parameter in estimators/base.py"


def test_delta_has_one_default_and_a_command_with_another_says_why() -> None:
    import cloister
    from cloister.accounting import Ledger, PrivacyTarget
    from cloister.core.defaults import DELTA
    from cloister.federated import plan as pool
    from cloister.run.request import Request

    for what in (PrivacyTarget, Request, cloister.KMeans, cloister.KMedians, cloister.OneRound, Ledger.declare):
        assert inspect.signature(what).parameters["delta"].default == DELTA, what
    assert pool.DEFAULTS["delta"] == DELTA
    assert Request(k=3, epsilon=1.0).delta == DELTA
    assert f"Default: {DELTA:g}." in declared(RunOptions)["delta"].help
    ledger = COMMANDS["ledger"].commands["declare"]
    commands = {**COMMANDS, "ledger declare": ledger}
    for name, command in commands.items():
        for parameter in getattr(command, "params", ()):
            if parameter.name == "delta" and parameter.default not in (None, DELTA):
                assert "fit" in parameter.help, f"{name} has another default than fit, and does not say why"


def test_help_is_under_headings_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    command = COMMANDS["fit"]
    with pytest.raises(typer.Exit), command.make_context("fit", ["--help"]):
        pass
    lines = capsys.readouterr().out.splitlines()
    found = [line[:-1] for line in lines if line.endswith(":") and line[:1].isalpha()]
    mine = [heading for heading in HEADINGS if heading in found]
    assert mine == ["Rows", "Privacy", "Method", "Ledger", "Output"]
    assert found == ["Arguments", *mine, "Options", "Fastest way to read rows, by where they are"]


def groups_of_commands(command: Any, words: str = "") -> list[tuple[str, Any]]:
    """The program and each command that has commands of its own, by what is typed."""
    inner = [(f"{words} {name}", each) for name, each in command.commands.items() if hasattr(each, "commands")]
    return [(words, command), *(group for words, each in inner for group in groups_of_commands(each, words))]


GROUPS_OF_COMMANDS = dict(groups_of_commands(typer.main.get_command(app)))


@pytest.mark.parametrize("words", GROUPS_OF_COMMANDS)
def test_the_help_of_a_group_has_a_whole_line_for_each_command(words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal of 80 characters: a summary that is cut, or goes on in another line, is no summary."""
    monkeypatch.setenv("COLUMNS", "80")
    lines = cloister(*words.split(), "--help").stdout.splitlines()
    assert max(map(len, lines)) <= 80
    for name, command in GROUPS_OF_COMMANDS[words].commands.items():
        (line,) = [line for line in lines if line.split()[:1] == [name] and line.startswith("  ")]
        summary = line.split(maxsplit=1)[1]
        assert summary.endswith("."), name
        assert summary == " ".join(command.help.split("\n\n")[0].split()), f"{name}: its help begins with more"


def test_the_help_of_the_program_groups_commands_by_what_they_are_for() -> None:
    lines = cloister("--help").stdout.splitlines()
    headings = [line[:-1] for line in lines if line.endswith(":") and line[:1].isalpha()]
    assert headings == ["Options", "Clustering", "Results", "Phones", "Pools", "Parts and data"]


def test_ways_to_read_name_options_that_there_are() -> None:
    flags = {flag for parameter in COMMANDS["fit"].params for flag in parameter.opts}
    named = {word for _, way in WAYS for word in re.findall(r"--[a-z-]+", way)}
    assert named
    assert named <= flags


def test_the_help_of_rows_says_what_each_command_does_without_it() -> None:
    """It was fit's everywhere: compare and drift count nothing, and plan needs the number."""
    for name, default in (
        ("fit", "Default: 1% of the budget counts them."),
        ("compare", "Default: the number of these rows."),
        ("drift", "Default: that of the earlier result."),
        ("plan", "figure."),
    ):
        assert options(name)["public_rows"].help.endswith(default)
