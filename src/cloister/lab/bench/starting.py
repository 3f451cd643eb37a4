"""Template of an entrant, to edit: it clusters, and passes the audit as it stands."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from cloister.core.errors import InvalidInput
from cloister.lab.bench.entrants import RUN, shipped_names
from cloister.lab.bench.entry import FILE, NAME

TEMPLATE = Path(__file__).with_name("template")

FILES = (FILE, "install.sh", RUN)


def write_template(folder: Path) -> str:
    """Write the files of an entrant into a new folder, and return its name, which is the folder's.

    Raises:
        InvalidInput: the folder exists, or its name is none for an entrant.
        OSError: it cannot be written.
    """
    name = folder.absolute().name
    if not NAME.fullmatch(name):
        raise InvalidInput(f"an entrant is called like its folder: use small letters, digits and hyphens, not '{name}'")
    if name in shipped_names():
        raise InvalidInput(f"'{name}' comes with cloister: choose another name")
    if folder.exists() or folder.is_symlink():
        raise InvalidInput(f"{folder} is there already, and nothing is overwritten: name another folder")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=".bench-new-", dir=folder.parent) as made:
        complete = Path(made, "complete")
        complete.mkdir()
        for file in FILES:
            text = (TEMPLATE / file).read_text("utf-8").replace('"NAME"', f'"{name}"')
            (complete / file).write_text(text, "utf-8")
        (complete / RUN).chmod(0o755)
        complete.rename(folder)  # all files, or none
    return name
