"""``cloister new-plugin``: a package to edit, which passes the conformance kit as it stands.

It is one of the finished examples under another name, which CI installs and tests.
"""

from __future__ import annotations

import keyword
import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from cloister.commands.common import show
from cloister.core.errors import InvalidInput, UnknownName

EXAMPLES = {
    "oracle": "rounded-counts",
    "method": "coarse-to-fine",
    "tree": "honeycomb-cells",
    "solver": "farthest-first",
}
"""The example of each role. Each name has two words, so that its three spellings (``spellings``) differ."""


def new_plugin(
    name: Annotated[str, typer.Argument(help="Name of the component, such as my-counts.")],
    role: Annotated[str, typer.Option(help="Role of the component: oracle, method, tree or solver.")],
    out: Annotated[Path | None, typer.Option(help="Folder to make. Default: cloister-NAME.")] = None,
) -> None:
    """Write a plugin to edit.

    It is a package that passes the conformance kit as it stands.
    """
    if role not in EXAMPLES:
        raise UnknownName("role", role, EXAMPLES)
    files = renamed(EXAMPLES[role], checked_name(name))
    folder = Path(f"cloister-{name}") if out is None else out
    write(files, folder)
    commands = files[Path("README.md")].split("```sh\n")[1].split("```")[0].splitlines()
    module = f"src/cloister_{name.replace('-', '_')}/{role}.py"
    lines = [f"wrote {folder}, a plugin that passes the conformance kit. Test it, install it, try it:", f"cd {folder}"]
    show("\n  ".join([*lines, *commands]) + f"\nThen edit {module}; README.md says what to change.")


def checked_name(name: str) -> str:
    """Return the name. Raises: InvalidInput: it is not kebab-case, or another component has it."""
    from cloister.core.registry.registry import registry

    if not re.fullmatch("[a-z][a-z0-9]*(-[a-z0-9]+)*", name):
        raise InvalidInput(f"use small letters, digits and single hyphens, as in 'my-counts', not '{name}'")
    for plugin, spec in ((p, s) for p in registry().plugins for s in p.specs if s.name == name):
        owner = f"the plugin '{plugin.name}' ({plugin.origin})"
        raise InvalidInput(f"'{name}' is taken: {owner} has a {spec.role} of that name. Choose another one")
    return name


def renamed(example: str, name: str) -> dict[Path, str]:
    """Return the files of an example by path, with its name replaced in all spellings.

    Raises:
        InvalidInput: the new class would have the name of something that the example uses.
    """
    old, new = spellings(example), spellings(name)
    root = examples() / f"cloister-{example}"
    paths = [path for pattern in ("*.toml", "*.md", "src/*/*.py", "tests/*.py") for path in root.glob(pattern)]
    texts = {path.relative_to(root): path.read_text("utf-8") for path in paths}
    cls = new[-1]
    if cls != old[-1] and (keyword.iskeyword(cls) or any(re.search(rf"\b{cls}\b", t) for t in texts.values())):
        raise InvalidInput(
            f"a class for '{name}' would be called {cls}, a name that is in use already: choose another name"
        )
    for was, now in zip(old, new, strict=True):
        texts = {Path(str(path).replace(was, now)): text.replace(was, now) for path, text in texts.items()}
    return texts


def spellings(name: str) -> tuple[str, str, str]:
    """Return a kebab-case name as it is, as a module's name and as a class's name."""
    return name, name.replace("-", "_"), "".join(word.capitalize() for word in name.split("-"))


def examples() -> Path:
    """Return the folder of the examples: beside this file if cloister is installed, otherwise in the repository."""
    installed = Path(__file__).with_name("examples")
    return installed if installed.is_dir() else Path(__file__).parents[3] / "examples"


def write(files: dict[Path, str], folder: Path) -> None:
    """Write all files into a new folder, or none.

    Raises:
        InvalidInput: the folder exists.
        OSError: it cannot be written.
    """
    if folder.exists() or folder.is_symlink():
        raise InvalidInput(f"{folder} is there already, and nothing is overwritten: name another folder by --out")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=".new-plugin-", dir=folder.parent) as made:
        complete = Path(made, "complete")
        for path, text in files.items():
            target = complete / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, "utf-8")
        complete.rename(folder)  # all files, or none
