"""Reading centres and statements that an entrant wrote."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cloister.accounting.conversions import epsilon_of_mu, epsilon_of_rho
from cloister.lab.bench import answers
from cloister.lab.bench.answers import BadOutput, content_of, read_centers
from cloister.lab.bench.statement import BadStatement, composed

TWO = np.array([[[0.0, 1.5], [-2.0, 3.0]]])


@pytest.mark.parametrize(
    "content",
    [
        "0,1.5\n-2,3\n",
        " 0 , 1.5\r\n-2,3e0",
        "\ufeff0,1.5\n-2,3\n",
        "\n0,1.5\n-2,3\n\n",
        "[[0, 1.5], [-2, 3]]",
        ' {"centers": [[0, 1.5], [-2.0, 3]]}',
    ],
)
def test_centres_are_read_from_csv_and_json(content: str) -> None:
    centers, statement = read_centers(content.encode(), 1, 2, 2)
    np.testing.assert_array_equal(centers, TWO)
    assert statement is None


@pytest.mark.parametrize("content", ["0,1.5\n-2,3\n\n0,1.5\n-2,3\n", "[[[0, 1.5], [-2, 3]], [[0, 1.5], [-2, 3]]]"])
def test_several_releases_are_read(content: str) -> None:
    centers, _ = read_centers(content.encode(), 2, 2, 2)
    np.testing.assert_array_equal(centers, np.concatenate([TWO, TWO]))


def test_an_object_may_hold_the_statement() -> None:
    _, statement = read_centers(b'{"centers": [[1]], "statement": [{"epsilon": 1}]}', 1, 1, 1)
    assert statement == [{"epsilon": 1}]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "0 centres, not 2"),
        (b"0,1\n", "1 centres, not 2"),
        (b"0,1\n2,3\n4,5\n", "3 centres, not 2"),
        (b"0,1\n2\n", "1 numbers, not 2"),
        (b"0,1\n2,nan\n", "not finite"),
        (b"[[0, 1], [2, NaN]]", "not finite"),
        (b"[[0, 1], [2, 1e999]]", "no valid JSON"),
        (b"0,1\n2,1e999\n", "not finite"),
        (b"x,y\n0,1\n2,3\n", "'x', which is not a number"),
        (b"0,1\n2,1_0\n", "'1_0', which is not a number"),
        ("0,1\n2,\u0663\n".encode(), "which is not a number"),
        (b"0,1\n\n2,3\n", "2 releases, not 1"),
        (b"[[0, 1], [2, true]]", "not a number"),
        (b'[[0, 1], [2, "3"]]', "not a number"),
        (b"[[0, 1], 2]", "no list of lists"),
        (b"{}", "no list of lists"),
        (b"[[0, 1], [2, 3]", "no valid JSON"),
        (b"\xff\xfe", "no text in UTF-8"),
        (b"[" * 100_000, "no valid JSON"),
    ],
)
def test_anything_else_is_bad_output_with_a_reason(content: bytes, said: str) -> None:
    with pytest.raises(BadOutput, match=said):
        read_centers(content, 1, 2, 2)


def test_a_link_a_pipe_and_a_file_without_end_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert content_of(tmp_path / "none") is None
    (tmp_path / "link").symlink_to("/etc/hostname")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "large").write_bytes(b"12345")
    monkeypatch.setattr(answers, "LARGEST", 4)
    for name in ("link", "pipe", "folder", "large"):
        with pytest.raises(BadOutput):
            content_of(tmp_path / name)


def test_a_statement_is_added_up_by_the_accountant() -> None:
    pure = [{"mechanism": "sums", "epsilon": 0.25, "times": 3}, {"epsilon": 0.25, "delta": 1e-9}]
    assert composed(pure, 0.0) == (1.0, 1e-9)
    epsilon, delta = composed([{"mu": 0.3}, {"mu": 0.4}], 1e-5)
    assert epsilon == pytest.approx(epsilon_of_mu(0.5, 1e-5), rel=1e-3)
    assert delta == 1e-5
    assert composed([{"rho": 0.1, "times": 2}], 1e-5)[0] == pytest.approx(epsilon_of_rho(0.2, 1e-5))
    mixed, _ = composed([{"epsilon": 0.5}, {"mu": 0.3}], 1e-5)
    assert epsilon_of_mu(0.3, 1e-5) < mixed <= 0.5 + epsilon_of_mu(0.3, 1e-5)


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ({}, "no list"),
        ([], "no list"),
        ([1], "no object"),
        ([{}], "exactly one"),
        ([{"epsilon": 1, "mu": 1}], "exactly one"),
        ([{"epsilon": 1, "why": 1}], "the key 'why'"),
        ([{"epsilon": -1}], "amount -1"),
        ([{"epsilon": True}], "amount True"),
        ([{"mu": 1e200}], "amount 1e.200"),
        ([{"epsilon": 1, "times": 0}], "times is 0"),
        ([{"epsilon": 1, "times": 1.5}], "times is 1.5"),
        ([{"mu": 1}], "need a delta"),
    ],
)
def test_a_statement_that_cannot_be_added_up_says_why(statement: Any, said: str) -> None:
    with pytest.raises(BadStatement, match=said):
        composed(statement, 0.0)
