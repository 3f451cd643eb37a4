"""A fuzzer that knows structure: whatever one odd value does, a command succeeds or refuses it in one line.

Every option of every command that takes a number is given numbers that no program expects, and so is every option of
every method. ``test_odd_files`` does the same to files. Seeds are fixed, and so are the counts.
"""

from __future__ import annotations

import random
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from cloister.cli import app
from cloister.core.registry.components import options_of
from cloister.core.registry.registry import registry
from tests.commands.odd_values import NUMBERS, words_of, wrong

pytest.importorskip("grpc")
pytest.importorskip("pyarrow")
pytestmark = pytest.mark.thorough

LINES = {
    "list": "list",
    "describe": "describe fastlloyd",
    "plugins": "plugins",
    "fit": "fit rows.npy {fast}",
    "explain": "explain {explain}",
    "plan": "plan {plan}",
    "bundle": "bundle plan --out bundles",
    "encode": "encode plan rows.npy --out encoded",
    "answer": "answer plan rows.npy --out encoded --state odd.state",
    "advance": "advance rounds",
    "rounds": "rounds rounds",
    "serve": "serve plan --out served --port {taken}",
    "shuffle": "shuffle crowd reports --out shuffled",
    "decode": "decode plan reports --accept-shares",
    "reports": "reports plan reports",
    "coordinate": "coordinate pool.toml --listen 127.0.0.1:{taken} --cert certs/coordinator.pem --unsigned",
    "join": "join pool.toml {north} --connect 127.0.0.1:9",
    "sign": "sign pool.toml --party north --cert certs/north.pem",
    "party-key": "party-key odd.key",
    "test-certificates": "test-certificates odd-certs --party north",
    "plot": "plot result.json --out odd.svg",
    "predict": "predict result.json rows.npy --out odd.npy",
    "profile": "profile result.json",
    "report": "report result.json --out odd.html",
    "sample": "sample result.json --out odd.csv",
    "evaluate": "evaluate result.json rows.npy --no-reference",
    "drift": "drift result.json rows.npy --epsilon 1",
    "compare": "compare rows.npy {compare} --bounds=-1:1",
    "new-plugin": "new-plugin odd-plugin",
    "demo": "demo",
    "ledger declare": "ledger declare budget.db odd --epsilon 1",
    "ledger show": "ledger show budget.db",
    "ledger export": "ledger export budget.db --out odd.csv",
    "ledger give-back": "ledger give-back budget.db 0pen",
    "ledger result": "ledger result budget.db d0ne",
    "data list": "data list",
    "data get": "data get",
    "data make blobs": "data make blobs --out odd.csv --rows 100",
    "data make moons": "data make moons --out odd.csv --rows 100",
    "data make hospital": "data make hospital --out odd.csv --rows 100",
    "tickets new-key": "tickets new-key odd.key",
    "tickets mint": "tickets mint plan issuer.key --users 0:10 --out odd-tickets",
    "reproduce": "reproduce no-paper --quick",  # a paper takes minutes
    "bench run": "bench run no-benchmark.toml",
    "bench audit": "bench audit no-entrant",
    "bench report": "bench report no-results.jsonl",
    "bench new": "bench new odd-entrant",
    "bench list": "bench list",
}
"""A line of every command, which ends by itself; of the long ones, a line that is refused."""

TEXTS = {"k", "epsilon", "delta", "bounds", "zoom", "scale", "users"}
"""Options that are read as texts, and are numbers."""

STAY_UP = {("serve", "port"), ("demo", "port"), ("serve", "metrics_port"), ("coordinate", "listen")}
"""Options with which a command that is given 0 or another port stays up."""


def commands(group: Any = None, before: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Every command by its name, as its parser has it."""
    known: Any = get_command(app) if group is None else group
    for name, inner in known.commands.items():
        if hasattr(inner, "commands"):
            yield from commands(inner, (*before, name))
        else:
            yield " ".join((*before, name)), inner


COMMANDS = dict(commands())


def test_every_command_has_a_line() -> None:
    assert set(COMMANDS) == set(LINES)


@pytest.mark.parametrize("name", COMMANDS)
def test_options_take_no_odd_number(name: str, folder: Path) -> None:
    options = [
        each
        for each in COMMANDS[name].params
        if each.param_type_name == "option" and (each.type.name not in ("boolean", "path", "str") or each.name in TEXTS)
    ]
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        line = words_of(LINES[name], taken=taken.getsockname()[1])
        found = [
            wrong([*line, f"{option.opts[-1]}={value}"], folder)
            for option in options
            for value in NUMBERS
            if not ((name, option.name) in STAY_UP and value in ("0", "1_0"))
        ]
    assert "\n".join(each for each in found if each is not None) == ""


def test_options_of_methods_take_no_odd_number(folder: Path) -> None:
    rng, known = random.Random(9), registry()
    found = [
        wrong(words_of(f"explain {{explain}} --method {spec.name} --set={option}={value}"), folder)
        for spec in known.specs("Method")
        for option in options_of(known.load(spec))
        for value in rng.sample(NUMBERS, 4)
    ]
    assert "\n".join(each for each in found if each is not None) == ""
