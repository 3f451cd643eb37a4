"""Results of a benchmark: a file of JSON lines, one for every run, entrant, set and machine."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeAlias, final

from cloister.core.errors import Damaged, InvalidInput, cause
from cloister.core.plain_data import parsed
from cloister.lab.bench.benchmark import Benchmark
from cloister.lab.comparing.study_file import NOTE
from cloister.lab.lines import LinesFile

FORMAT = "cloister-bench-1"

PREFIX = f'{{"format": "{FORMAT}"'.encode()

Record: TypeAlias = dict[str, Any]

RunKey: TypeAlias = tuple[str, str, str, int, float, int]
"""Entrant, digest of its files, set, k, epsilon and number of a run."""

KEYS = {
    "machine": ("id", "processor", "versions"),
    "set": ("name",),
    "entrant": ("name", "facts", "digest"),
    "run": ("entrant", "digest", "set", "k", "epsilon", "run", "seed"),
}
"""Keys that each kind of record must have."""


@final
class Results:
    """Records of a benchmark.

    Attributes:
        head: first line: the benchmark.
        records: all others, in order.
    """

    def __init__(self, head: Record, records: Iterable[Record]) -> None:
        self.head, self.records = head, list(records)

    @classmethod
    def read(cls, path: Path) -> Results:
        """Read a file of results. A last line that a crash cut short is left out.

        Raises:
            InvalidInput: it cannot be read, or holds something else.
            Damaged: a line is not as it was written.
        """
        try:
            content = path.read_bytes()
        except OSError as error:
            raise InvalidInput(f"cannot read {path}: {cause(error)}") from error
        if not content.startswith(PREFIX):
            raise InvalidInput(f"{path} holds no results of a benchmark: 'cloister bench run' writes them")
        return cls.of(content[: content.rfind(b"\n") + 1].splitlines(), path)

    @classmethod
    def of(cls, lines: list[bytes], path: Path) -> Results:
        """Return the results of a file's lines. Raises: Damaged."""
        try:
            head, *records = map(parsed, lines)
            head["benchmark"]["name"]
            for record in records:
                for key in KEYS[record["kind"]]:
                    record[key]
        except (ValueError, KeyError, TypeError) as error:
            raise Damaged(f"the results {path} cannot be read: restore the file, or choose another one") from error
        return cls(head, records)

    def of_kind(self, kind: str) -> list[Record]:
        """Return the records of a kind: machine, set, entrant or run."""
        return [record for record in self.records if record["kind"] == kind]


def key_of(record: Record) -> RunKey:
    """Return the key of a run's record."""
    entrant, digest, name = str(record["entrant"]), str(record["digest"]), str(record["set"])
    return entrant, digest, name, int(record["k"]), float(record["epsilon"]), int(record["run"])


@final
class ResultsFile:
    """Open file of results, locked by this process; without a path, nothing is stored.

    Attributes:
        results: what it held, and what was added.
    """

    def __init__(self, path: Path | None, benchmark: Benchmark, resume: bool) -> None:
        """Begin a file, or open one to go on with.

        Raises:
            InvalidInput: it exists and ``resume`` is False, it is of another benchmark, or it cannot be written.
            Damaged: it cannot be read.
        """
        head = {"format": FORMAT, "private": False, "note": NOTE, "benchmark": benchmark.as_dict()}
        head = json.loads(json.dumps(head))
        self.results = Results(head, [])
        self._file = None if path is None else LinesFile(path, PREFIX, "a file of results", "benchmark")
        if self._file is None or path is None:
            return
        try:
            if not self._file.entries:
                self._file.append(head)
            elif not resume:
                raise InvalidInput(f"{path} holds results already: --resume goes on with them, or choose another file")
            else:
                self.results = Results.of(self._file.entries, path)
                if self.results.head["benchmark"] != head["benchmark"]:
                    raise InvalidInput(
                        f"{path} is of another benchmark, or of its quick form: only entrants, epsilons and runs may "
                        f"change"
                    )
        except BaseException:
            self.close()
            raise

    def append(self, record: Record) -> None:
        """Store a record."""
        self.results.records.append(record)
        if self._file is not None:
            self._file.append(record)

    def close(self) -> None:
        """Close and unlock the file."""
        if self._file is not None:
            self._file.close()
