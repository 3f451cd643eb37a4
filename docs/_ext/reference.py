"""The generated part of the reference: a page per command, per component and per part of the Python interface.

Everything is read off the program itself: the commands' own help, what ``cloister describe`` says, the docstrings.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from types import GenericAlias
from typing import Any

import click
import kept
import promises
import typer
from prose import escaped, rst

from cloister.cli import COMMANDS, app as program
from cloister.commands.cli_option import declared
from cloister.commands.option_groups import GROUPS
from cloister.commands.options import WAYS, LedgerOptions, OutputOptions, RunOptions
from cloister.core.registry.components import ANY_TRUST
from cloister.core.registry.describe import describe
from cloister.core.registry.registry import registry
from cloister.rows.options import Reading

PYTHON = {
    "estimators": ("Estimators", "cloister", ()),
    "running": (
        "Runs, results and statements",
        "",
        (
            "cloister.run.fit.fit",
            "cloister.run.fit.source",
            "cloister.rows.options.Reading",
            "cloister.run.request.Request",
            "cloister.run.result.Result",
            "cloister.run.statement.PrivacyStatement",
            "cloister.run.account.Account",
            "cloister.run.bounds.domain_of",
            "cloister.lab.sampling.sample",
        ),
    ),
    "pictures": ("Pictures", "", ("cloister.showing.plots.draw_map", "cloister.showing.plots.draw_curve")),
    "metrics": (
        "Measures of raw rows, which are not private",
        "",
        ("cloister.metrics.labels", "cloister.metrics.distances", "cloister.metrics.cost"),
    ),
    "encoder": ("A person's side of a plan", "cloister.encoder", ()),
    "testing": ("The conformance kit", "cloister.testing", ()),
    "plugin": ("What plugins import", "cloister.plugin", ()),
}
"""Page: title, a module whose public names it lists (or ''), further names."""


def write(folder: Path) -> None:
    """All pages, into a folder of their own. Those that have not changed are left alone, and others taken away."""
    pages = {folder / f"{name}.rst": text for name, text in _pages()}
    pages |= {folder / f"{name}.txt": text for name, text in _lists()}
    for old in {path for path in folder.rglob("*.*") if path.suffix in (".rst", ".txt")} - set(pages):
        old.unlink()
    for path, text in pages.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")


def _pages() -> Iterator[tuple[str, str]]:
    command: Any = typer.main.get_command(program)
    for name, each in command.commands.items():
        yield f"cli/{name}", "\n".join(_command(each, f"cloister {name}"))
    for spec in registry().specs():
        facts = describe(registry(), spec)
        yield f"components/{spec.role}/{spec.name}", "\n".join(_component(facts))
    for name, (title, module, more) in PYTHON.items():
        names = [f"{module}.{each}" for each in kept.public(module)] if module else []
        yield f"python/{name}", "\n".join(_python(title, module, [*names, *more]))


def _lists() -> Iterator[tuple[str, str]]:
    """What each command and each component is, in a line with a link: for the pages that list them."""
    command: Any = typer.main.get_command(program)
    yield "cli", "".join(_commands(command.commands))
    yield "options", "".join(_options())
    yield "ways", "".join(_ways())
    yield "promises", "".join(promises.page())
    yield "kept", "".join(kept.page())
    for role in sorted({spec.role for spec in registry().specs()}):
        found = (describe(registry(), spec) for spec in registry().specs(role))
        yield f"components/{role}", "".join(_line(f"components/{role}", f["name"], f["summary"]) for f in found)


def _commands(commands: dict[str, Any]) -> Iterator[str]:
    """Commands by the headings of ``cloister --help``."""
    for heading, names in COMMANDS.items():
        yield f"**{heading}**\n\n"
        yield from (_line("cli", name, commands[name].help or "") for name in names)
        yield "\n"


def _ways() -> Iterator[str]:
    """A table of what reads rows, by where they are."""
    yield ".. list-table::\n   :header-rows: 1\n\n   * - rows are\n     - give\n"
    yield from (f"   * - {escaped(where)}\n     - {escaped(way)}\n" for where, way in WAYS)


def _options() -> Iterator[str]:
    """A table of the options that commands share, and which take them; then why the others do not."""
    names = [name for name in typer.main.get_command(program).commands if name in GROUPS]  # type: ignore[attr-defined]
    groups = {name: list(GROUPS[name].values()) for name in names}
    yield ".. list-table::\n   :header-rows: 1\n\n   * - option"
    yield from (f"\n     - {name}" for name in names)
    why = dict[str, list[str]]()
    for kind in (Reading, RunOptions, LedgerOptions, OutputOptions):
        for option, said in declared(kind).items():
            flag = (said.flags or (f"--{option.replace('_', '-')}",))[-1]
            yield f"\n   * - ``{flag}``"
            for name in names:
                mine = [group for group in groups[name] if group.kind is kind]
                yield f"\n     - {'yes' if any(option in group.taken for group in mine) else ''}"
                for group in mine:
                    if option in group.missing:
                        why.setdefault(f"{name}: {group.missing[option]}", []).append(f"``{flag}``")
    yield "\n\n"
    for reason, flags in why.items():
        name, _, text = reason.partition(": ")
        yield f"* ``{name}`` takes no {', '.join(flags)}: {escaped(text)}.\n"


def _line(folder: str, name: str, text: str) -> str:
    sentence = re.split(r"(?<=\.) ", " ".join(text.split()))[0]
    sentence += "" if sentence.endswith(".") else "."
    return f"* :doc:`{name} </reference/generated/{folder}/{name}>`: {escaped(sentence)}\n"


def _title(text: str, line: str = "=") -> list[str]:
    return [text, line * len(text), ""]


def _command(command: Any, name: str, line: str = "=") -> Iterator[str]:
    """A command's help and options; those of a group, one after the other."""
    context = click.Context(command, info_name=name)
    yield from _title(name, line)
    yield from rst(command.help or "")
    if hasattr(command, "commands"):
        for inner, each in command.commands.items():
            yield from _command(each, f"{name} {inner}", "-")
        return
    yield from ("::", "", f"    {' '.join([name, *command.collect_usage_pieces(context)])}", "")
    yield from (f".. program:: {name}", "")
    for parameter in command.get_params(context):
        left, text = parameter.get_help_record(context) or (parameter.make_metavar(context), parameter.help or "")
        yield from (f".. option:: {left}", "", f"    {escaped(' '.join(text.split()))}", "")


def _component(facts: dict[str, Any]) -> Iterator[str]:
    yield from _title(facts["name"])
    yield from (f"{escaped(facts['summary'])}.", "")
    yield f":Role: {facts['role']}"
    yield f":Trust: {facts['trust'] or ANY_TRUST}"
    yield f":Runs under: {', '.join(facts['runs under'])}"
    yield f":Class: ``{facts['target']}``"
    if facts["paper"]:
        yield f":Source: {escaped(facts['paper'])}"
    if not facts["private"]:
        yield ":NOT private: gives no guarantee; refused without ``--not-private``"
    if facts["biased"]:
        yield ":Biased: released values may be off on average; their standard error is a root mean squared error"
    yield from ("", *_title("Guarantee and how it works", "-"), *rst(facts["documentation"]))
    if facts["slots"]:
        yield from (*_title("Slots", "-"), "What fills one has options of its own: ``--set slot.option=value``.", "")
    for slot in facts["slots"]:
        takes = ", ".join(f"``{name}``" for name in slot["takes"])
        yield from (f"``--with {slot['name']}={slot['default']}``",)
        yield from (f"    {escaped(slot['help'])}. {slot['role']}, one of: {takes}", "")
    if facts["options"]:
        yield from _title("Options", "-")
    for option in facts["options"]:
        limits = "; ".join(filter(None, (option["range"], option["unit"])))
        yield f"``--set {option['name']}={option['default']}``"
        yield from (f"    {escaped(option['help'])}" + (f" ({escaped(limits)})" if limits else ""), "")


def _python(title: str, module: str, names: list[str]) -> Iterator[str]:
    yield from _title(title)
    if module:
        yield from rst(import_module(module).__doc__ or "")
    for name in names:
        home, _, last = name.rpartition(".")
        value = getattr(import_module(home), last)
        if inspect.isclass(value) and not isinstance(value, GenericAlias):
            yield from (f".. autoclass:: {name}", f"   :members: {', '.join(_members(value))}".rstrip(), "")
        elif inspect.isfunction(value):
            yield from (f".. autofunction:: {name}", "")
        else:
            yield from (f".. py:data:: {name}", "")
            yield from ("   " + line for line in rst(_said_of(home, last)))


def _members(thing: type) -> list[str]:
    """Of an estimator, what it and cloister's bases define, and nothing that scikit-learn gives to all. Of others: none
    by name, which stands for all."""
    if not any(base.__module__.startswith("sklearn.") for base in thing.__mro__):
        return []
    own = [base for base in thing.__mro__ if base.__module__.startswith("cloister.")]
    names = dict.fromkeys(name for base in reversed(own) for name in vars(base))
    given = ("_", "set_fit_", "set_score_", "set_predict_", "set_transform_", "set_inverse_")
    return [name for name in names if not name.startswith((*given, "set_output"))]


def _said_of(module: str, name: str) -> str:
    """The string under a constant or an alias, in the module that defines it."""
    found: Any = import_module(module)
    lines = ast.parse(inspect.getsource(import_module(getattr(found, "_HOMES", {}).get(name, module)))).body
    for line, below in pairwise(lines):
        targets = getattr(line, "targets", [getattr(line, "target", None)])
        if name in [getattr(target, "id", None) for target in targets] and isinstance(below, ast.Expr):
            return str(ast.literal_eval(below.value))
    return ""
