"""A folder with good files of every kind that commands take, and damaged ones of each."""

from __future__ import annotations

import datetime
import gzip
import json
import os
import pickle
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv

from cloister.accounting.ledger.ledger import Ledger
from tests.in_process import ran

GOOD = {
    "fit": "-k 3 --epsilon 1 --delta 1e-6 --bounds=-1:1 --rows 1000 --method su-lloyd",
    "fast": "-k 3 --epsilon 1 --delta 1e-6 --bounds=-1:1 --rows 1000 --method fastlloyd --zoom off",
    "paid": "--ledger budget.db --dataset mine",
    "explain": "-k 3 --epsilon 1 --delta 1e-6 --bounds=-1:1 --rows 1000 --dimension 2",
    "compare": "-k 3 --epsilon 1 --methods fastlloyd --runs 1 --workers 1",
    "plan": "-k 2 --epsilon 2 --rows 1000 --bounds ball:1 --dimension 2 --out new",
    "north": "--party north --data rows.csv --cert certs/north.pem --unsigned --patience 0.1",
    "coordinator": "--listen 127.0.0.1:0 --cert certs/coordinator.pem --unsigned --patience 0.1 --timeout 0.1",
}
"""Good options, which a bad one that follows them overrides. Methods that are prepared in a millisecond or two."""

POOL = """
k = 3
epsilon = 1.0
delta = 1e-6
rows = 3000
seed = 5
columns = ["x", "y"]
bounds = [[-1, 1], [-1, 1]]
method = "fastlloyd"
zoom = "off"
"""


def made(folder: Path) -> Path:
    """The folder, filled."""
    _rows(folder)
    _mixed(folder)
    _databases(folder)
    _texts(folder)
    _results_and_ledgers(folder)
    _collections(folder)
    _pools(folder)
    (folder / "out").mkdir()
    for name in ("folder.json", "folder.html", "folder.csv", "taken.bounds.toml"):
        (folder / name).mkdir()
    os.mkfifo(folder / "pipe.json")
    (folder / "loop.csv").symlink_to("loop.csv")
    (folder / "link.csv").symlink_to("rows.csv")
    return folder


def _rows(folder: Path) -> None:
    rows = np.random.default_rng(0).normal(0, 0.3, (1000, 2))
    arrays = {
        "rows": rows,
        "wide": np.hstack([rows, rows]),
        "one": rows[:1],
        "complex": rows.astype(complex),
        "words": np.array([["a", "b"]]),
        "flat": rows[:, 0],
        "none": rows[:0],
        "cube": rows.reshape(10, 100, 2),
        "objects": np.array([[1, None]], object),
        "holes": np.where(rows == rows[7, 1], np.nan, rows),
        "infinite": np.where(rows == rows[7, 1], np.inf, rows),
    }
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    np.savez(folder / "two.npz", a=rows, b=rows)
    np.savez(folder / "nothing.npz")
    x, y = rows.T
    table = {"x": x, "y": y, "name": ["a"] * 1000, "id": np.arange(1000)}
    pq.write_table(pa.table(table), folder / "rows.parquet")
    pq.write_table(pa.table({"a": ["x"], "b": ["y"]}), folder / "text.parquet")
    pq.write_table(pa.table({"x": pa.array([], pa.float64()), "y": pa.array([], pa.float64())}), folder / "0.parquet")
    users = {
        "twice": [1, 2, 1],
        "negative": [0, 1, -1],
        "beyond": [1, 2, 1000],
        "half": [0.5, 1, 2],
        "gone": [None, 1, 2],
    }
    nothing = pa.array([None] * 3, pa.float64())
    pq.write_table(pa.table({"x": x[:3], "y": y[:3], "nothing": nothing, **users}), folder / "users.parquet")
    for kind in ("rows.npy", "rows.parquet"):
        content = (folder / kind).read_bytes()
        (folder / f"cut.{kind.partition('.')[2]}").write_bytes(content[: len(content) // 2])
    (folder / "cut.npz").write_bytes((folder / "two.npz").read_bytes()[:200])
    (folder / "bomb.npy").write_bytes(pickle.dumps([[1.0, 2.0]]))


def _mixed(folder: Path) -> None:
    """Tables with an identifier, a date, text, booleans and lists beside two columns of numbers."""
    n = 40
    x = np.linspace(-1, 1, n)
    day = datetime.date(2025, 1, 1)
    table = pa.table(
        {
            "id": np.arange(n),
            "visit": [day] * n,
            "ward": ["A", "B"] * (n // 2),
            "urgent": [True, False] * (n // 2),
            "x": x,
            "y": x[::-1],
            "words": [["a"]] * n,
        }
    )
    pq.write_table(table, folder / "mixed.parquet")
    pq.write_table(table.select(["x", "y", "words"]), folder / "lists.parquet")
    csv.write_csv(table.drop_columns(["words"]), folder / "mixed.csv")


def _databases(folder: Path) -> None:
    import duckdb

    with duckdb.connect(str(folder / "lake.db")) as con:
        con.execute(
            "CREATE TABLE visits AS SELECT x, y, 'A' AS ward, DATE '2025-01-01' AS day FROM read_parquet(?)",
            [str(folder / "rows.parquet")],
        )
        con.execute("CREATE TABLE holes AS SELECT CASE WHEN y > 0.5 THEN NULL ELSE x END AS x, y FROM visits")
        con.execute("CREATE TABLE none AS SELECT x, y FROM visits LIMIT 0")
        con.execute('CREATE TABLE "cluster" AS SELECT x, y, x AS cluster FROM visits')
        con.execute("CREATE TABLE half AS SELECT x FROM visits")


def _texts(folder: Path) -> None:
    texts = {
        "rows.csv": "x,y\n" + "0.1,0.2\n" * 50,
        "empty.csv": "",
        "header.csv": "x,y\n",
        "text.csv": "a,b\nx,y\nz,w\n",
        "ragged.csv": "a,b\n1,2\n3\n4,5\n",
        "twice.csv": "a,a\n1,2\n",
        "rows.xls": "?",
        "rows.parquet.txt": "?",
        "text.npy": "this is text\n",
        "text.npz": "this is text\n",
        "text.arrow": "this is text\n",
        "odd.toml": "epsilonn = 1\n",
        "broken.toml": "= = =\n",
        "columns.toml": "columns = 3\n",
        "out.toml": "out = 3\n",
        "parts.toml": "k = 2.5\n",
        "endless.toml": "k = inf\n",
        "flag.toml": 'pooled = "yes"\n',
        "set.toml": "set = 3\n",
        "k.toml": 'k = "three"\n',
        "many.toml": "columns = [1, 2]\n",
        "no.toml": "",
        "list.json": "[1, 2]",
        "config.json": '{"k": 3',
        "budgets.toml": "epsilon = [0.1, 1]\n",
        "workers.toml": 'workers = "two"\n',
        "with.toml": "with = [1]\n",
        "twice.json": '{"x": [-1, 1], "y": [-1, 1], "x": [-2, 2]}',
        "nan.json": '{"x": [NaN, 1], "y": [-1, 1]}',
        "bounds.toml": "x = [-1, 1]\ny = [-1, 1]\n",
        "one.toml": "x = [-1, 1]\n",
        "third.toml": "x=[0,1]\ny=[0,1]\nz=[0,1]\n",
        "reversed.toml": "x = [1, -1]\ny = [-1, 1]\n",
        "words.toml": 'x = ["a", "b"]\ny = [-1, 1]\n',
        "single.toml": "x = [1]\ny = [-1, 1]\n",
        "zero.toml": "x = 0\ny = 1\n",
        "minus.toml": "x = -1\ny = 1\n",
        "flags.toml": "x = true\ny = 1\n",
        "semi.csv": "x;y\n0.1;0.2\n",
        "two-x.csv": "x,x,y\n1,2,3\n",
        "clash.csv": "ward=A,ward\n1,A\n",
        "cluster.csv": "cluster,x,y\n1,0.1,0.2\n",
        "quote.csv": 'x,y\n"1,2\n3,4\n',
        "text.csv.gz": "x,y\n1,2\n",
        "rows.tsv": "x\ty\n1\t2\n",
        "rows.xlsx": "?",
        "ward.toml": "x = [-1, 1]\nward = [0, 1]\n",
        "category.toml": 'category = "ward"\n',
        "categories.toml": "[category]\nward = 3\n",
        "form.toml": "delimiter = 3\n",
        "text.jsonl": "not a study\n",
        "damaged.jsonl": '{"format": "cloister-study-1"}\n',
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    (folder / "unmarked.csv").write_bytes("x,y\n1,2\n".encode("utf-16-le"))
    (folder / "late.csv").write_bytes(b"x,y\n1,2\n1,\xf6\n")
    (folder / "cut.csv.gz").write_bytes(gzip.compress(b"x,y\n" + b"0.1,0.2\n" * 50)[:30])
    (folder / "latin.csv").write_bytes("größe,y\n1,2\n".encode("latin-1"))
    (folder / "wide.csv").write_bytes("x,y\n1,2\n".encode("utf-16"))
    (folder / "latin.toml").write_bytes(b'method = "gr\xf6\xdfe"\n')
    (folder / "zeros.csv").write_bytes(bytes(100))


def _results_and_ledgers(folder: Path) -> None:
    ran(f"fit rows.npy {GOOD['fast']} --out result.json", folder)
    ran(f"fit rows.npy {GOOD['fast']} --out result.npz", folder)
    ran(f"fit rows.parquet --columns x,y {GOOD['fast']} --out named.json", folder)
    ran(f"fit rows.parquet --columns x {GOOD['fast']} --out one-column.json", folder)
    ran(f"fit mixed.parquet --columns x --category ward=A,B {GOOD['fast']} --out ward.json", folder)
    ran(f"compare rows.npy {GOOD['compare']} -k 2 --out other.jsonl", folder)
    text = (folder / "result.json").read_text()
    result = json.loads(text)["result"]

    def otherwise(**facts: Any) -> str:
        return json.dumps(result | facts)

    damaged = {
        "cut.json": text[:-200],
        "changed.json": text.replace('"k": 3', '"k": 4'),
        "nothing.json": "{}",
        "bare.json": otherwise(format="cloister-result-0"),
        "number.json": "3",
        "shape.json": otherwise(columns=["x"]),
        "null.json": "null",
        "void.json": "",
        "names.json": otherwise(columns=[1, 2]),
        "unbounded.json": otherwise(problem={"k": 3}),
        "unsaid.json": otherwise(privacy={}),
        "centers.json": otherwise(centers=[["a", "b"]]),
    }
    for name, content in damaged.items():
        (folder / name).write_text(content)
    (folder / "damaged.npz").write_bytes((folder / "result.npz").read_bytes()[:-100])
    (folder / "text.db").write_text("not a ledger\n" * 100)
    (folder / "damaged.db").write_bytes(b"SQLite format 3\x00" + b"\xff" * 5000)
    (folder / "void.db").write_bytes(b"")
    _executed(folder / "other.db", "create table t (x)")
    ran("ledger declare budget.db mine --epsilon 2 --delta 1e-5", folder)
    ran("ledger declare budget.db people --epsilon 2 --delta 1e-5 --unit users", folder)
    ran("ledger declare budget.db pure --epsilon 2 --delta 0", folder)
    ran(f"fit rows.npy {GOOD['fast']} {GOOD['paid']} --epsilon 0.5", folder)
    (done,) = Ledger.open(folder / "budget.db").runs()
    _executed(
        folder / "budget.db",
        "pragma foreign_keys = off",
        f"update runs set id = 'd0ne' where id = '{done.id}'",  # a name that a table of inputs can hold
        *(f"update {table} set run = 'd0ne'" for table in ("rounds", "looks", "marks", "results")),
        "insert into runs select '0pen', dataset, measure, 0.25, 1e-7, rho, plan, seed, owner, 'open', started, "
        "null, note, method, k, columns from runs",
    )
    (folder / "budget.db.count").rename(folder / "older.db.count")  # it counted the run that has another name now
    ran("ledger declare budget.db pure --epsilon 2 --delta 0", folder)
    content = (folder / "budget.db").read_bytes()
    (folder / "cut.db").write_bytes(content[: len(content) // 2])
    for name, change in (
        ("later", "pragma user_version = 99"),
        ("older", "drop table results"),
        ("unkept", "delete from results"),
        ("untabled", "drop table results"),
        ("emptied", "update results set result = '{}'"),
        ("halved", "update results set result = '[1'"),
    ):
        (folder / f"{name}.db").write_bytes(content)
        _executed(folder / f"{name}.db", change)


def _executed(path: Path, *commands: str) -> None:
    with closing(sqlite3.connect(path)) as database, database:
        for command in commands:
            database.execute(command)


def _collections(folder: Path) -> None:
    ran("plan -k 2 --epsilon 2 --rows 1000 --bounds ball:1 --dimension 2 --seed 1 --out plan", folder)
    ran("encode plan rows.npy --out reports --state mine.state", folder)
    ran("plan -k 2 --epsilon 2 --rows 1000 --bounds ball:1 --columns x,y --seed 1 --out plan-named", folder)
    rounds = "--method su-lloyd --set rounds=2 --with counts=optimised-local-hashing --with sums=hadamard-vector"
    ran(f"plan -k 1 --epsilon 4 --rows 1000 --bounds=-1:1 --dimension 2 --seed 1 {rounds} --out rounds", folder)
    mixed = "--with counts=amplified-counts --with sums=amplified-vectors --delta 1e-6"
    ran(f"plan -k 2 --epsilon 1 --rows 1000 --bounds ball:1 --dimension 2 --seed 1 {mixed} --out crowd", folder)
    for name, changed in (("cut", lambda t: t[:-50]), ("changed", lambda t: t.replace("1000", "1001"))):
        copy = folder / f"plan-{name}"
        copy.mkdir()
        for path in (folder / "plan").iterdir():
            (copy / path.name).write_text(changed(path.read_text()) if path.suffix == ".json" else path.read_text())
    ran("tickets new-key issuer.key", folder)
    (folder / "bad-reports").mkdir()
    (report,) = (folder / "reports").iterdir()
    (folder / "bad-reports" / "part-0.reports").write_bytes(report.read_bytes()[:500])
    (folder / "cut.reports").write_bytes(report.read_bytes()[:500])
    (folder / "text.reports").write_text("user,answer\n0,1\n")


def _pools(folder: Path) -> None:
    keys = ran("test-certificates certs --party north --party south", folder).stdout
    (folder / "pool.toml").write_text(POOL + keys)
    (folder / "keyless.toml").write_text(POOL)
    (folder / "alone.toml").write_text(POOL + keys[: keys.rindex("[[party]]")])
    for name, old, new in (
        ("pool-k", "k = 3", "k = 0"),
        ("pool-epsilon", "epsilon = 1.0", "epsilon = -1.0"),
        ("pool-word", "k = 3", "kk = 3"),
        ("pool-text", "k = 3", 'k = "three"'),
        ("pool-delta", "delta = 1e-6", "delta = 2.0"),
        ("pool-bounds", "[[-1, 1], [-1, 1]]", "[[1, -1], [-1, 1]]"),
        ("pool-key", 'key = "', 'key = "zz'),
    ):
        (folder / f"{name}.toml").write_text((POOL + keys).replace(old, new))
    (folder / "other.pem").write_text("no certificate\n")
