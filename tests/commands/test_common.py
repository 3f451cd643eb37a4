"""Names as they are typed. The table of centres: all of it where the terminal is wide enough, and else what fits."""

from __future__ import annotations

import json
from itertools import chain
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest
from rich.console import Console

from cloister.commands.common import print_result, show, tables_of
from cloister.commands.names import split_names
from cloister.core.errors import InvalidInput
from cloister.run.result import Result
from cloister.run.shown import center_texts
from cloister.showing.profile import profile_of
from tests.in_process import cloister
from tests.showing.report.pages import made


def lines(result: Result, width: int) -> list[list[str]]:
    """The cells of each line as a terminal of this width shows them, of all tables."""
    terminal = Console(width=width, markup=False, emoji=False, highlight=False)
    with terminal.capture() as shown:
        for table in tables_of(result, result.columns, width):
            terminal.print(table)
    found = shown.get().splitlines()
    assert max(map(len, found)) <= width
    return [
        [cell.strip() for cell in line.replace("┃", "│").strip("│").split("│")]
        for line in found
        if "│" in line or "┃" in line
    ]


def result(d: int, k: int, **more: Any) -> Result:
    return made(d, k, details={"centers_error": np.full((k, d), 0.01)}, **more)


def test_a_name_with_a_comma_stands_in_double_quotes() -> None:
    assert split_names('age, "dose, mg",say "so"') == ["age", "dose, mg", 'say "so"']
    assert split_names('"a ""b"", c"') == ['a "b", c']
    assert split_names("") == [""]
    assert split_names(None) is None
    for wrong in ('"a', '"a"b,c', "a\nb"):
        with pytest.raises(InvalidInput, match="quote one that holds a comma"):
            split_names(wrong)


def test_what_is_below_a_millionth_of_the_bounds_or_of_the_released_frame_is_read_as_nothing() -> None:
    centers = np.array([[-1.38778e-17, 0.123456789, -2e-8], [1.5, -4.9e-7, 0.5]])
    plain = made(3, 2, centers=centers, weights=np.array([2.0, 1.0]))
    assert [row[2:] for row in lines(plain, 100)[1:]] == [["0", "0.123457", "0"], ["1.5", "0", "0.5"]]
    assert [cluster.center for cluster in profile_of(plain).clusters] == [(0, 0.123457, 0), (1.5, 0, 0.5)]
    for details, shown in (
        ({"intervals": [[-1e-3, 1e-3]] * 3}, ["0", "0.12345679", "-2e-08"]),
        (
            {"centers_error": np.full((2, 3), 1e-9)},
            [f"{text} \u00b1 0.0000000010" for text in ("0.0000000000", "0.1234567890", "-0.0000000200")],
        ),
    ):
        assert center_texts(attrs.evolve(plain, details=details))[0] == shown


def test_few_columns_are_columns_and_of_many_each_is_a_row() -> None:
    head, *rows = lines(result(4, 30), 100)
    assert head == ["centre", "rows (noisy)", *(f"c{j}" for j in range(4))]
    assert len(rows) == 30
    given = result(40, 3)
    head, *rows = lines(given, 80)
    assert head == ["centre", *map(str, given.by_size)]
    assert [row[0] for row in rows] == ["rows (noisy)", *given.columns]
    assert rows[1][1:] == [f"{value:.3f} \u00b1 0.010" for value in given.centers[given.by_size, 0]]


def test_what_is_too_wide_for_one_table_is_in_a_few_below_one_another() -> None:
    given, texts = result(40, 7), center_texts(result(40, 7))
    (head, *rows), parts = lines(given, 80), list[list[list[str]]]()
    for line in [head, *rows]:
        if line[0] == "centre":
            parts.append([])
        parts[-1].append(line[1:])
    assert list(chain(*(part[0] for part in parts))) == [str(i) for i in given.by_size]
    assert [list(chain(*(part[j + 2] for part in parts))) for j in range(40)] == [
        [texts[i][j] for i in given.by_size] for j in range(40)
    ]
    many = lines(result(7, 30), 100)
    assert [line[:2] for line in many if line[0] == "centre"] == [["centre", "rows (noisy)"], ["centre", "c4"]]
    assert len(many) == 2 * 31


@pytest.mark.parametrize("width", [60, 80])
def test_of_many_columns_and_centres_some_are_shown_and_the_others_counted(width: int) -> None:
    head, *rows = lines(result(40, 30), width)
    shown = len(head) - 3
    assert 1 <= shown < 40
    assert head[-1] == f"... {40 - shown} more"
    assert len(rows) == 30


def test_a_long_name_is_cut_and_hides_no_number() -> None:
    given = result(2, 2, columns=("n" * 200, "age"))
    assert lines(given, 80)[1][-1] == f"{given.centers[given.by_size[0], 1]:.3f} \u00b1 0.010"


COMMANDS = "\x1b]0;title\x07\x1b[2J\x9b1A\u202e"
"""What makes a terminal change its title, clear its screen, write over a line, write backwards."""


def test_no_name_of_a_result_is_a_command_to_a_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A stranger made the result: every text in it is hers."""

    def spoilt(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: spoilt(part) for name, part in value.items()}
        if isinstance(value, list):
            return [spoilt(part) for part in value]
        return f"{value}{COMMANDS}" if isinstance(value, str) else value

    facts = result(3, 2).as_dict()
    for part in ("columns", "details", "version"):
        facts[part] = spoilt(facts[part])
    facts["details"] |= {"auto": {"warning": COMMANDS}, "group_names": [COMMANDS, "x"], "k_means": COMMANDS}
    facts["method"] = {"name": COMMANDS, "options": {}, "slots": {}}
    facts["privacy"]["notes"] = [COMMANDS]
    for spend in facts["privacy"]["spends"]:
        spend |= {"mechanism": COMMANDS, "question": COMMANDS}
    (tmp_path / "theirs.json").write_text(json.dumps(facts))
    for line in ("profile theirs.json", "plot theirs.json -o map.svg", "report theirs.json -o page.html"):
        done = cloister(*line.split(), folder=tmp_path)
        assert not set(done.stdout + done.stderr) & set("\x1b\x07\x9b\u202e"), line
    print_result(Result.from_dict(facts))
    assert not set(capsys.readouterr().out) & set("\x1b\x07\x9b\u202e")


def test_a_text_that_is_shown_keeps_its_lines_and_no_commands(capsys: pytest.CaptureFixture[str]) -> None:
    show(f"ε = 1 of {COMMANDS}\nand a line")
    assert capsys.readouterr().out == "ε = 1 of \\x1b]0;title\\x07\\x1b[2J\\x9b1A\\u202e\nand a line\n"
    print_result(result(2, 2).named({0: "Frail"}))
    assert "\x1b" not in capsys.readouterr().out
