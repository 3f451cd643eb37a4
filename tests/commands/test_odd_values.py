"""A fuzzer that knows structure: whatever one odd value does, a command succeeds or refuses it in one line.

Every option of every command that takes a number is given numbers that no program expects, and in every file that
commands read one value is exchanged, with its seal made anew where it has one. Seeds are fixed, and so are the counts.
"""

from __future__ import annotations

import json
import random
import shlex
import shutil
import socket
import tomllib
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from cloister.cli import app
from cloister.collection.plan.canonical_json import with_hash
from cloister.run.result import _seal
from tests.commands.bad_inputs_folder import GOOD, made
from tests.commands.odd_values import (
    NUMBERS,
    changed,
    changed_bytes,
    changed_cell,
    changed_text,
    changed_toml,
)
from tests.in_process import cloister

pytest.importorskip("grpc")
pytest.importorskip("pyarrow")
pytestmark = pytest.mark.thorough

FEW = "-k 3 --epsilon 1 --delta 1e-6 --bounds=-1:1 --rows 1000"

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
}
"""A good line of every command, which ends by itself."""

TEXTS = {"k", "epsilon", "delta", "bounds", "zoom", "scale", "users"}
"""Options that are read as texts, and are numbers."""

STAY_UP = {("serve", "port"), ("demo", "port"), ("serve", "metrics_port"), ("coordinate", "listen")}
"""Options with which a command that is given 0 or another port stays up."""


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("odd"))


@pytest.fixture
def folder(good: Path, tmp_path: Path) -> Path:
    """A copy, which a test may change."""
    ignored = shutil.ignore_patterns("pipe.json", "loop.csv")
    return Path(shutil.copytree(good, tmp_path / "odd", symlinks=True, ignore=ignored))


MADE = "new", "encoded", "shuffled", "odd-certs", "odd-plugin"
"""What accepted lines make, and others would be refused for."""


def wrong(words: list[str], folder: Path) -> str | None:
    """What is wrong with how a command line ends, if anything is."""
    for name in MADE:
        shutil.rmtree(folder / name, ignore_errors=True)
    shown = " ".join(word if len(word) < 50 else f"{word[:40]}..." for word in words)
    try:
        done = cloister(*words, folder=folder)
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        return f"{shown}: {type(error).__name__} {str(error)[:80]!r} ({Path(last.filename).name}:{last.lineno})"
    if done.returncode not in (0, 2) or "Traceback" in done.stderr:
        return f"{shown}: {done.returncode} {done.stderr[-200:]!r}"
    return None


def words_of(line: str, **more: Any) -> list[str]:
    """The words of a line, with good options for those in braces."""
    for name, options in {**GOOD, **more}.items():
        line = line.replace(f"{{{name}}}", str(options))
    return shlex.split(line)


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
    assert [each for each in found if each is not None] == []


def sealed(result: Any) -> bytes:
    """A result's file, with the seal that belongs to it."""
    return json.dumps({"sha256": _seal(json.dumps(result, indent=1)), "result": result}, indent=1).encode()


RESULT = (
    "plot {file} --out odd.svg",
    "plot {file} --curve --out odd.svg",
    "profile {file}",
    "profile {file} --rows rows.npy",
    "report {file} --out odd.html",
    "sample {file} --out odd.csv",
    "predict {file} rows.npy --out odd.npy",
    "predict {file} --sql --table visits",
    "evaluate {file} rows.npy --no-reference",
    "drift {file} rows.npy --epsilon 1 --out drifted.json",
    "fit rows.npy -k 3 --epsilon 1 --delta 1e-6 --rows 1000 --start {file}",
)


@pytest.mark.parametrize("name", ["result", "ward", "named", "drifted", "described"])
def test_results_with_an_odd_value_and_the_right_seal(name: str, folder: Path) -> None:
    rng, found = random.Random(1), []
    more = {
        "drifted": "drift result.json rows.npy --epsilon 1 --out drifted.json",
        "described": f"fit mixed.parquet --columns x,y --describe ward --category ward=A,B {GOOD['fast']} "
        "--out described.json",
    }
    if name in more:
        assert cloister(*shlex.split(more[name]), folder=folder).returncode == 0
    good = json.loads((folder / f"{name}.json").read_text())["result"]
    for _ in range(40):
        (folder / "changed.json").write_bytes(sealed(changed(good, rng)))
        found += [wrong(words_of(line, file="changed.json"), folder) for line in RESULT]
    for _ in range(20):
        (folder / "changed.json").write_bytes(changed_text(good, rng))
        found += [wrong(words_of(line, file="changed.json"), folder) for line in RESULT[:3]]
    assert [each for each in found if each is not None] == []


PLANS = {
    "plan": (
        "encode {file} rows.npy --out odd-reports",
        "bundle {file} --out odd-bundles",
        "rounds {file}",
        "decode {file} reports",
        "reports {file} reports",
        "serve {file} --out served --port {taken}",
        "tickets mint {file} issuer.key --users 0:2 --out odd-tickets",
    ),
    "rounds": ("answer {file} rows.npy --out odd-reports --state odd.state", "advance {file}", "rounds {file}"),
    "crowd": ("encode {file} rows.npy --out odd-reports", "shuffle {file} reports --out shuffled", "rounds {file}"),
}


@pytest.mark.parametrize("name", PLANS)
def test_plans_with_an_odd_value_and_the_right_seal(name: str, folder: Path) -> None:
    rng, found = random.Random(2), []
    path = folder / name / "plan.json"
    good = json.loads(path.read_text())
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        for _ in range(100):
            facts = changed({key: value for key, value in good.items() if key != "hash"}, rng)
            try:
                facts = with_hash(facts)
            except ValueError:  # numbers that are no JSON
                facts["hash"] = good["hash"]
            path.write_bytes(json.dumps(facts).encode() if rng.random() < 0.8 else changed_text(good, rng))
            lines = [words_of(line, file=name, taken=taken.getsockname()[1]) for line in PLANS[name]]
            found += [wrong(line, folder) for line in lines]
    assert [each for each in found if each is not None] == []


TABLES: dict[str, tuple[str, str]] = {
    "bounds": ("x = [-1, 1]\ny = [-1, 1]\n", "fit rows.parquet --columns x,y {fast} --bounds odd.toml"),
    "ball": ("center = [0, 0]\nradius = 1\n", "fit rows.npy {fast} --bounds odd.toml"),
    "ends": ("lower = [0, 0]\nupper = [1, 2]\n", "fit rows.npy {fast} --bounds odd.toml"),
    "scale": ("x = 1\ny = 2.5\n", "fit rows.parquet --columns x,y {fast} --scale odd.toml"),
    "start": (
        "x = [1, 2, 3]\ny = [0.5, 0.25, 0]\n",
        "fit rows.parquet --columns x,y {fit} --method auto --start odd.toml",
    ),
    "config": (
        'k = 3\nepsilon = 1\ndelta = 1e-6\nbounds = "-1:1"\nrows = 1000\nzoom = "off"\nscale = "none"\nseed = 1\n'
        'threads = 1\nmissing = "drop"\ncolumns = ["x", "y"]\n[set]\nrounds = 3\n',
        "fit rows.parquet --config odd.toml --method fastlloyd",
    ),
    "names": ('0 = "a"\n1 = "b"\n', "profile result.json --names odd.toml"),
}


@pytest.mark.parametrize("name", TABLES)
def test_tables_of_toml_and_json_with_an_odd_value(name: str, folder: Path) -> None:
    text, line = TABLES[name]
    rng, words = random.Random(3), words_of(line)
    found = []
    for _ in range(100):
        (folder / "odd.toml").write_bytes(changed_toml(text, rng))
        found.append(wrong(words, folder))
    document = tomllib.loads(text)
    as_json = [word.replace("odd.toml", "odd.json") for word in words]
    for _ in range(100):
        (folder / "odd.json").write_bytes(changed_text(document, rng))
        found.append(wrong(as_json, folder))
    assert [each for each in found if each is not None] == []


def test_plans_of_pools_with_an_odd_value(folder: Path) -> None:
    rng, found = random.Random(4), []
    text = (folder / "pool.toml").read_text()
    for _ in range(100):
        (folder / "odd.toml").write_bytes(changed_toml(text, rng))
        for line in (
            "sign odd.toml --party north --cert certs/north.pem",
            "join odd.toml {north} --check --connect 127.0.0.1:9",
        ):
            found.append(wrong(words_of(line), folder))
    assert [each for each in found if each is not None] == []


LEDGER = (
    "ledger show odd.db",
    "ledger show odd.db --json",
    "ledger export odd.db --out odd.csv",
    "ledger result odd.db d0ne",
    "ledger declare odd.db mine --epsilon 3 --delta 1e-5",
    "ledger give-back odd.db 0pen",
    "explain {explain} --ledger odd.db --dataset mine",
    "fit rows.npy {fast} --epsilon 0.1 --ledger odd.db --dataset mine",
    "fit rows.npy {fast} --ledger odd.db --dataset mine --resume 0pen --same-rows",
    "fit rows.npy {fast} --epsilon 0.5 --ledger odd.db --dataset mine --resume d0ne --same-rows",
)


def test_ledgers_with_an_odd_cell(folder: Path) -> None:
    rng, found = random.Random(5), []
    for _ in range(80):
        shutil.copy(folder / "budget.db", folder / "odd.db")
        changed_cell(folder / "odd.db", rng)
        for line in LEDGER:
            found.append(wrong(words_of(line), folder))
    counter = json.loads((folder / "budget.db.count").read_bytes())
    for _ in range(30):
        shutil.copy(folder / "budget.db", folder / "odd.db")
        (folder / "odd.db.count").write_bytes(changed_text(counter, rng))
        for line in LEDGER[:2] + LEDGER[5:8]:
            found.append(wrong(words_of(line), folder))
    assert [each for each in found if each is not None] == []


def test_states_of_encoders_with_an_odd_cell(folder: Path) -> None:
    rng, found = random.Random(6), []
    for _ in range(60):
        shutil.copy(folder / "mine.state", folder / "odd.state")
        changed_cell(folder / "odd.state", rng)
        for lifetime in ("", " --lifetime 3"):
            line = f"encode plan rows.npy --out odd-reports --state odd.state{lifetime}"
            found.append(wrong(words_of(line), folder))
    assert [each for each in found if each is not None] == []


def test_studies_with_an_odd_value(folder: Path) -> None:
    rng, found = random.Random(7), []
    line = words_of("compare rows.npy {compare} -k 2 --out odd.jsonl")
    good = [json.loads(one) for one in (folder / "other.jsonl").read_text().splitlines()]
    for _ in range(100):
        lines = [json.dumps(one).encode() for one in good]
        at = rng.randrange(len(lines))
        lines[at] = changed_text(good[at], rng)
        (folder / "odd.jsonl").write_bytes(b"\n".join(lines) + b"\n")
        found.append(wrong(line, folder))
    assert [each for each in found if each is not None] == []


def test_reports_and_bundles_with_odd_bytes(folder: Path) -> None:
    rng, found = random.Random(8), []
    (report,) = (folder / "reports").iterdir()
    content = report.read_bytes()
    (folder / "odd-reports").mkdir()
    for _ in range(60):
        (folder / "odd-reports" / "part-0.reports").write_bytes(changed_bytes(content, rng))
        for line in ("decode plan odd-reports --accept-shares", "reports plan odd-reports"):
            found.append(wrong(words_of(line), folder))
    assert cloister("bundle", "plan", "--out", "bundles", folder=folder).returncode == 0
    for path in (folder / "bundles").iterdir():
        good = path.read_bytes()
        for _ in range(40):
            odd = changed_text(json.loads(good), rng) if path.suffix == ".json" else changed_bytes(good, rng)
            path.write_bytes(odd)
            found.append(wrong(words_of("bundle plan --out bundles --check"), folder))
        path.write_bytes(good)
    assert [each for each in found if each is not None] == []
