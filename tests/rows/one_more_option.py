"""A process with one more option of rows, for ``test_options``: declared, and obeyed by the reader of files.

It prints what follows by itself, as JSON: what the reader was given, the help of a command, the refusal where the
option does not apply, and whether a run that resumes compares it.
"""

from __future__ import annotations

import json
import sys
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from typing import Any

DECLARED = '    comment: str | None = _option("Skip lines of CSV that begin with it.", only="files")\n'
BEFORE = "    users: Any = None\n"


def declare() -> None:
    """The first place: ``rows/options.py`` with one field more, in place of the one that is installed."""
    found = find_spec("cloister.rows.options")
    assert found is not None
    assert found.origin is not None
    text = Path(found.origin).read_text("utf-8")
    assert text.count(BEFORE) == 1
    options = sys.modules[found.name] = module_from_spec(found)
    exec(compile(text.replace(BEFORE, DECLARED + BEFORE), found.origin, "exec"), options.__dict__)


def obey() -> list[str]:
    """The second place: the reader of files. Returns what it is given, as it grows."""
    from cloister.plugins.populations.files import Files

    given, plain = list[str](), Files.__init__

    def obeying(self: Any, paths: Any, reading: Any, *others: Any, **named: Any) -> None:
        given.append(reading.comment)
        plain(self, paths, reading, *others, **named)

    Files.__init__ = obeying  # type: ignore[method-assign]
    return given


def main(folder: Path) -> None:
    declare()
    given = obey()
    import numpy as np

    from cloister.core.errors import InvalidInput
    from cloister.rows.options import Reading
    from cloister.rows.reading import reading_fingerprints
    from cloister.rows.selection import Selection
    from cloister.run.fit import source
    from tests.in_process import ran

    more: dict[str, Any] = {"comment": "Python"}
    source(folder / "rows.csv", columns=["x", "y"], **more)
    explain = "explain rows.csv --columns x,y -k 2 --epsilon 1 --delta 1e-6 --rows 40 --bounds=-1:1 --zoom off"
    ran(f"{explain} --comment flag", folder)
    (folder / "run.toml").write_text('comment = "config"\n', "utf-8")
    ran(f"{explain} --config run.toml", folder)
    try:
        source(np.zeros((3, 2)), **more)
    except InvalidInput as error:
        elsewhere = str(error)
    fingerprints = [reading_fingerprints(Selection(("x",)), Reading(**{**more, "comment": c})) for c in "#;"]
    shown = {"help": ran("fit --help").stdout, "elsewhere": elsewhere, "compared": fingerprints[0] != fingerprints[1]}
    print(json.dumps({"obeyed": given, **shown}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
