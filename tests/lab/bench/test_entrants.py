"""What an entrant states, how it is found, and how it is installed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cloister.core.errors import InvalidInput, UnknownName
from cloister.lab.bench.entrants import entrant_of, shipped_folder, shipped_names
from cloister.lab.bench.entry import checked_facts
from cloister.lab.bench.installing import NotInstallable, install
from cloister.lab.bench.starting import write_template
from tests.lab.bench.small import small

GOOD: dict[str, Any] = {
    "name": "mine",
    "title": "t",
    "paper": "p",
    "guarantee": "pure",
    "trust": "central",
    "relation": "add-or-remove",
}


@pytest.mark.parametrize(
    ("changes", "error", "said"),
    [
        ({"titel": "t"}, UnknownName, "did you mean title"),
        ({"guarantee": "pur"}, UnknownName, "did you mean pure"),
        ({"name": "My entrant"}, InvalidInput, "small letters"),
        ({"name": "../x"}, InvalidInput, "small letters"),
        ({"title": "a\nb"}, InvalidInput, "one line"),
        ({"title": 3}, InvalidInput, "one line"),
        ({"needs": "node"}, InvalidInput, "list of programs"),
        ({"needs": ["/bin/sh"]}, InvalidInput, "list of programs"),
        ({"repeats": "yes"}, InvalidInput, "true or false"),
        ({"guarantee": "none"}, InvalidInput, "together"),
    ],
)
def test_an_entry_that_is_wrong_says_what_to_write(changes: dict[str, Any], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        checked_facts({**GOOD, **changes}, "entry.toml")


@pytest.mark.parametrize("key", GOOD)
def test_an_entry_without_a_key_says_which(key: str) -> None:
    with pytest.raises(InvalidInput, match=f"has no {key}: write {key}"):
        checked_facts({k: v for k, v in GOOD.items() if k != key}, "entry.toml")


def test_an_entrant_is_a_folder_a_name_or_a_method_with_options(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert entrant_of("small").folder == entrant_of("./small").folder == tmp_path / "small"
    assert entrant_of("sklearn").folder == shipped_folder() / "sklearn"
    local = entrant_of("auto:trust=local")
    assert (local.name, local.facts.trust, local.facts.relation) == ("auto:trust=local", "local", "replace")
    assert not entrant_of("lloyd").facts.private
    with pytest.raises(UnknownName, match="no entrant 'sklern': did you mean sklearn"):
        entrant_of("sklern")
    with pytest.raises(InvalidInput, match="an entrant is a folder with"):
        entrant_of("./nowhere")


def test_every_entrant_that_comes_with_cloister_is_one() -> None:
    assert len(shipped_names()) >= 9
    assert [entrant_of(name).name for name in shipped_names()] == shipped_names()


def test_a_program_that_cannot_be_started_is_refused_at_once(tmp_path: Path) -> None:
    folder = small(tmp_path).folder
    assert folder is not None
    (folder / "run").chmod(0o644)
    with pytest.raises(InvalidInput, match="is not executable: chmod"):
        entrant_of(str(folder))
    (folder / "run").unlink()
    with pytest.raises(InvalidInput, match="has no run"):
        entrant_of(str(folder))


def test_the_digest_follows_every_file(tmp_path: Path) -> None:
    entrant = small(tmp_path)
    assert entrant.folder is not None
    digests = {entrant.digest}
    (entrant.folder / "more").write_text("x")
    digests.add(entrant_of(str(entrant.folder)).digest)
    (entrant.folder / "more").chmod(0o755)
    digests.add(entrant_of(str(entrant.folder)).digest)
    assert len(digests) == 3


def test_it_is_installed_once_for_every_version_of_its_files(tmp_path: Path) -> None:
    count = 'echo once >> "$BENCH_ENTRANT/../count"; echo made > "$BENCH_ENV/made"'
    entrant = small(tmp_path, install=count)
    folder = install(entrant)
    assert install(entrant) == folder
    assert ((folder / "made").read_text(), (tmp_path / "count").read_text()) == ("made\n", "once\n")
    assert entrant.folder is not None
    (entrant.folder / "run").write_text("#!/bin/sh\n")
    assert install(entrant_of(str(entrant.folder))) != folder
    assert (tmp_path / "count").read_text() == "once\n" * 2


def test_an_installation_that_fails_says_why_and_is_tried_again(tmp_path: Path) -> None:
    entrant = small(tmp_path, install='test -e "$BENCH_ENTRANT/../ready" || { echo no such package; exit 9; }')
    for _ in range(2):
        with pytest.raises(NotInstallable, match=r"its install.sh ended with 9: no such package"):
            install(entrant)
    (tmp_path / "ready").touch()
    install(entrant)


def test_a_program_that_it_needs_and_lacks_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotInstallable, match="it needs no-such-program, which is not on the PATH"):
        install(small(tmp_path, needs=["no-such-program"]))


def test_the_template_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    write_template(tmp_path / "new" / "my-own")
    assert entrant_of(str(tmp_path / "new" / "my-own")).name == "my-own"
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["my-own"]
    for name, said in (("my-own", "is there already"), ("My", "small letters"), ("sklearn", "comes with cloister")):
        with pytest.raises(InvalidInput, match=said):
            write_template(tmp_path / "new" / name)
