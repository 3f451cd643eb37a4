"""The fuzzer of ``test_odd_values`` for files: in every kind that commands read one value is exchanged, with its seal
made anew where it has one."""

from __future__ import annotations

import json
import random
import shlex
import shutil
import socket
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cloister.collection.plan.canonical_json import pretty_json, with_hash
from cloister.collection.service.segments import Segments
from cloister.collection.service.tickets import Issuer, mint, read_key
from cloister.collection.wire.batches import BatchForm
from cloister.core.errors import CloisterError
from cloister.run.result import _seal
from tests.commands.bad_inputs_folder import GOOD
from tests.commands.odd_values import (
    changed,
    changed_bytes,
    changed_cell,
    changed_text,
    changed_toml,
    words_of,
    wrong,
)
from tests.in_process import cloister, ran

pytest.importorskip("grpc")
pytest.importorskip("pyarrow")
pytestmark = pytest.mark.thorough


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
    "fit rows.npy -k 3 --epsilon 1 --delta 1e-6 --rows 1000 --method fastlloyd --zoom off --start {file}",
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
    for _ in range(25):
        (folder / "changed.json").write_bytes(sealed(changed(good, rng)))
        found += [wrong(words_of(line, file="changed.json"), folder) for line in RESULT]
    for _ in range(10):
        (folder / "changed.json").write_bytes(changed_text(good, rng))
        found += [wrong(words_of(line, file="changed.json"), folder) for line in RESULT[:3]]
    assert "\n".join(each for each in found if each is not None) == ""


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
    assert "\n".join(each for each in found if each is not None) == ""


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
    assert "\n".join(each for each in found if each is not None) == ""


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
    assert "\n".join(each for each in found if each is not None) == ""


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
    assert "\n".join(each for each in found if each is not None) == ""


def test_states_of_encoders_with_an_odd_cell(folder: Path) -> None:
    rng, found = random.Random(6), []
    for _ in range(60):
        shutil.copy(folder / "mine.state", folder / "odd.state")
        changed_cell(folder / "odd.state", rng)
        for lifetime in ("", " --lifetime 3"):
            line = f"encode plan rows.npy --out odd-reports --state odd.state{lifetime}"
            found.append(wrong(words_of(line), folder))
    assert "\n".join(each for each in found if each is not None) == ""


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
    assert "\n".join(each for each in found if each is not None) == ""


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
        for _ in range(25):
            odd = changed_text(json.loads(good), rng) if path.suffix == ".json" else changed_bytes(good, rng)
            path.write_bytes(odd)
            found.append(wrong(words_of("bundle plan --out bundles --check"), folder))
        path.write_bytes(good)
    assert "\n".join(each for each in found if each is not None) == ""


def test_signatures_with_an_odd_value(folder: Path) -> None:
    rng, found = random.Random(10), []
    for name in ("north", "south"):
        assert wrong(words_of(f"sign pool.toml --party {name} --cert certs/{name}.pem"), folder) is None
    line = words_of(
        "join pool.toml --party north --data rows.csv --cert certs/north.pem --check --connect 127.0.0.1:9 "
        "--patience 0.1"
    )
    assert wrong(line, folder) is None
    path = folder / "pool.signatures" / "party-2.sig"
    good = json.loads(path.read_bytes())
    for _ in range(100):
        path.write_bytes(json.dumps(changed(good, rng)).encode() if rng.random() < 0.5 else changed_text(good, rng))
        found.append(wrong(line, folder))
    assert "\n".join(each for each in found if each is not None) == ""


TRANSCRIPT = (
    "rounds rounds",
    "answer rounds rows.npy --out odd-reports --state odd.state",
    "encode rounds rows.npy --out odd-reports",
    "bundle rounds --out bundles",
    "advance rounds --reports round-reports --accept-shares",
)


def test_transcripts_with_an_odd_value_and_the_right_hash(folder: Path) -> None:
    rng, found = random.Random(11), []
    ran("answer rounds rows.npy --out round-reports --state mine.state", folder)
    ran("advance rounds --reports round-reports --accept-shares", folder)
    path = folder / "rounds" / "round-1.json"
    text = path.read_bytes()
    good = json.loads(text)
    assert pretty_json(with_hash({key: value for key, value in good.items() if key != "hash"})).encode() + b"\n" == text
    for _ in range(80):
        if rng.random() < 0.8:
            facts = changed({key: value for key, value in good.items() if key != "hash"}, rng)
            try:
                path.write_bytes(pretty_json(with_hash(facts)).encode() + b"\n")
            except ValueError:  # numbers or text that are no JSON
                path.write_bytes(json.dumps(facts).encode())
        else:
            path.write_bytes(changed_text(good, rng))
        for later in (folder / "rounds").glob("round-[2-9].json"):
            later.unlink()
        found += [wrong(words_of(line), folder) for line in TRANSCRIPT]
    assert "\n".join(each for each in found if each is not None) == ""


def test_tickets_and_their_keys_with_odd_bytes(folder: Path) -> None:
    rng, found = random.Random(12), []
    issuer, plan = Issuer.read(folder / "issuer.pub"), json.loads((folder / "plan" / "plan.json").read_bytes())["hash"]
    (ticket,) = mint(read_key(folder / "issuer.key"), plan, [3])
    assert issuer.valid(plan, [(3, ticket)]) == [True]
    odd = [one for one in (changed_bytes(ticket, rng) for _ in range(200)) if one != ticket]
    assert issuer.valid(plan, [(3, one) for one in odd]) == [False] * len(odd)
    assert not any(issuer.valid(plan, [(user, ticket) for user in (0, 2**63, 2**64 - 1)]))
    lines = {
        "issuer.key": "tickets mint plan issuer.key --users 0:2 --out odd-tickets",
        "issuer.pub": "serve plan --out served --tickets issuer.pub --port {taken}",
    }
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        for name, line in lines.items():
            good = (folder / name).read_bytes()
            for _ in range(60):
                (folder / name).write_bytes(changed_bytes(good, rng))
                (folder / "odd-tickets").unlink(missing_ok=True)
                found.append(wrong(words_of(line, taken=taken.getsockname()[1]), folder))
    assert "\n".join(each for each in found if each is not None) == ""


def test_journals_of_collectors_with_odd_bytes_are_read_or_refused(folder: Path) -> None:
    rng, refused = random.Random(13), 0
    form = BatchForm("ab" * 32, 1, 2)
    users = np.arange(20, dtype=np.uint64)
    answers = np.stack([users, users], axis=1).astype(np.uint8)
    good = form.batch(users[:7], answers[:7]) + form.batch(users[7:], answers[7:])
    served = folder / "served"
    served.mkdir()
    for _ in range(300):
        (served / "round-001-000001.reports").write_bytes(changed_bytes(good, rng))
        try:
            assert Segments(served, form, 20).seen.count <= 20
        except CloisterError:
            refused += 1
    assert 0 < refused < 300
