"""Tables in files of every kind that is read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet


def stored(table: pa.Table, path: Path, group: int = 100) -> Path:
    """A table in a file of the kind that its name ends in. Args: group (how many rows are written at once)."""
    match path.suffix:
        case ".parquet":
            pa.parquet.write_table(table, path, row_group_size=group)
        case ".feather":
            pa.feather.write_feather(table, str(path), chunksize=group)
        case ".npy":
            np.save(path, np.column_stack(table.columns))
        case ".npz":
            np.savez(path, X=np.asfortranarray(np.column_stack(table.columns)))
        case _:
            with pa.output_stream(str(path)) as out:
                pa.csv.write_csv(table, out)
    return path
