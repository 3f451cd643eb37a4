"""Keys of every kind, that others on the machine could have read."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeAlias

import pytest

from cloister.accounting.ledger import run
from cloister.accounting.ledger.ledger import Ledger
from cloister.collection.service import running, tickets
from cloister.core import keyfiles
from cloister.core.errors import Refused
from cloister.core.keyfiles import check_own
from cloister.federated.transport.certificates import Credentials, make_test_certificates, read_file, write_secret

Key: TypeAlias = tuple[Path, Callable[[Path], Any]]
"""A key that was made in a folder, and what uses it."""


def of_certificate(folder: Path) -> Key:
    make_test_certificates(folder, ("a",))
    return folder / "a.key", lambda path: Credentials.read(folder / "a.pem")


def of_server(folder: Path) -> Key:
    make_test_certificates(folder, ("a",))
    return folder / "a.key", lambda path: running.certificate(folder / "a.pem", path)


def of_pool(folder: Path) -> Key:
    write_secret(folder / "a.pool", b"secret")
    return folder / "a.pool", lambda path: read_file(path, secret=True)


def of_issuer(folder: Path) -> Key:
    tickets.new_key(folder / "issuer.key")
    return folder / "issuer.key", tickets.read_key


def of_ledger(folder: Path) -> Key:
    ledger = folder / "budget.db"
    Ledger.open(ledger, create=True)
    run._secret(ledger)
    return folder / "budget.db.key", lambda path: run._secret(ledger)


@pytest.mark.parametrize("kind", [of_certificate, of_server, of_pool, of_issuer, of_ledger])
def test_a_key_that_others_can_read_is_used_for_nothing_until_they_cannot(
    kind: Callable[[Path], Key], tmp_path: Path
) -> None:
    path, use = kind(tmp_path)
    use(path)
    for mode in (0o604, 0o602, 0o620):
        path.chmod(mode)
        with pytest.raises(Refused, match=f"others .* can read {path}, a secret key: chmod 600 {path}$"):
            use(path)
    path.chmod(0o600)
    use(path)


def test_a_ledger_that_was_opened_to_a_group_has_a_key_for_it(tmp_path: Path) -> None:
    path, use = of_ledger(tmp_path)
    for file in (path, tmp_path / "budget.db"):
        file.chmod(0o660)
    use(path)
    path.chmod(0o664)
    with pytest.raises(Refused, match="others on this machine can read"):
        use(path)


@pytest.mark.parametrize(
    ("owner", "mode", "fine"),
    [(0, 0o640, True), (0, 0o644, False), (0, 0o660, False), (1000, 0o400, True), (1000, 0o640, False)],
)
def test_a_group_may_read_a_key_of_root_s_alone(
    owner: int, mode: int, fine: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "stat", lambda path: SimpleNamespace(st_mode=0o100000 | mode, st_uid=owner))
    with nullcontext() if fine else pytest.raises(Refused):
        check_own(Path("a.key"))
    monkeypatch.setattr(keyfiles, "os", SimpleNamespace(name="nt"))
    check_own(Path("a.key"))
