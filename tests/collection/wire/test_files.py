"""Files of reports that are not as they were written: one error each, and the process goes on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyarrow")

READ = """
import sys
from contextlib import suppress
from pathlib import Path
import pyarrow.parquet as pq
from cloister.collection.wire.files import _parquet
content, path = Path(sys.argv[1]).read_bytes(), Path(sys.argv[2])
schema = pq.read_schema(sys.argv[1])
footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
for at in range(footer, len(content) - 8):
    path.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1:])
    with suppress(Exception):
        list(_parquet(str(path), schema))
print("all read")
"""


def test_no_flipped_bit_of_a_footer_ends_the_process(tmp_path: Path) -> None:
    """Of 1,005 bits some made pyarrow abort, which no except clause sees, as soon as a column's facts were looked
    at."""
    (report,) = (Path(__file__).parents[2] / "written_before" / "files" / "parquet").iterdir()
    command = [sys.executable, "-c", READ, str(report), str(tmp_path / "flipped.parquet")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "all read\n"), done.stderr
