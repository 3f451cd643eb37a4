"""Public sets from their sources: against a server on this machine, with a catalogue of the tests' own."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from cloister.core.errors import CloisterError, Damaged, InvalidInput
from cloister.lab import catalogue as sets, download
from cloister.lab.catalogue import Entry, catalogue, rows_digest
from cloister.lab.download import fetched, rows_of
from tests.in_process import ran, refused

ROWS = np.array([[1.0, 2.5], [-3.0, 0.0], [7.0, 1e-3]])
TEXT = b"1 2.5\r\n-3  0\n\n7\t0.001\n"


class Site(BaseHTTPRequestHandler):
    """A server that sends what is in ``pages``."""

    pages: dict[str, bytes | None]
    asked: list[str]

    def do_GET(self) -> None:
        self.asked.append(self.path)
        if self.path == "/elsewhere":
            self.send_response(302)
            self.send_header("Location", f"http://localhost:{self.server.server_address[1]}/rows.txt")
            self.end_headers()
            return
        if self.path == "/torn":  # a chunk that is longer than what comes, and a length that is no number
            self.wfile.write(
                b"HTTP/1.1 200 OK\r\nContent-Length: many\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n1 2.5"
            )
            return
        page = self.pages.get(self.path)
        self.send_response(404 if page is None else 200)
        self.send_header("Content-Length", str(len(page or b"")))
        self.end_headers()
        self.wfile.write(page or b"")

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Site) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture
def site(server: str) -> str:
    Site.pages, Site.asked = {"/rows.txt": TEXT, "/rows.txt.gz": gzip.compress(TEXT)}, []
    return server


def entry(*source: str, rows: np.ndarray = ROWS, **facts: object) -> Entry:
    return Entry(
        name="tiny",
        title="Three rows",
        rows=len(rows),
        columns=rows.shape[1],
        k=2,
        licence="CC0",
        source=source,
        sha256=rows_digest(rows),
        **facts,
    )  # type: ignore[arg-type]


# the catalogue


def test_every_entry_is_whole_and_from_https_or_scikit_learn() -> None:
    assert len(catalogue()) >= 28
    for name, one in catalogue().items():
        assert (one.name, len(one.sha256)) == (name, 64)
        assert one.title
        assert one.licence
        assert one.rows > one.k >= 2
        assert one.carried or all(source.startswith("https://") for source in one.source)


@pytest.mark.parametrize("one", [one for one in catalogue().values() if one.carried], ids=lambda one: one.name)
def test_what_scikit_learn_carries_needs_no_download(one: Entry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "fetched", None)
    assert rows_of(one).shape == (one.rows, one.columns)


def test_the_digest_is_that_of_the_rows_and_not_of_their_order_or_text() -> None:
    assert rows_digest(np.array([[0.0]])) == rows_digest(np.array([[-0.0]]))
    assert rows_digest(ROWS) == rows_digest(ROWS[::-1])
    for other in (ROWS[:, ::-1], ROWS[:2], ROWS.reshape(2, 3), np.nextafter(ROWS, 9)):
        assert rows_digest(ROWS) != rows_digest(other)


# from a server


def test_rows_come_as_they_are_whatever_the_line_ends(site: str) -> None:
    steps = list[tuple[int, int]]()
    got = rows_of(entry(f"{site}/rows.txt"), lambda done, total: steps.append((done, total)))
    np.testing.assert_array_equal(got, ROWS)
    assert steps[-1] == (len(TEXT), len(TEXT))
    np.testing.assert_array_equal(rows_of(entry(f"{site}/rows.txt.gz")), ROWS)


def test_several_files_fields_comments_and_beginnings(site: str) -> None:
    Site.pages |= {"/a": b"|head\nx, 1,2.5,yes\ny, -3,0,no\n", "/b": b"z,7,0.001,yes.\nq,9,9,no\n"}
    one = entry(f"{site}/a", f"{site}/b", separator=",", take=(1, 2), drop="|", first=3)
    np.testing.assert_array_equal(rows_of(one), ROWS)


def test_a_set_that_is_not_what_it_was_is_refused(site: str) -> None:
    for page in (TEXT.replace(b"7", b"8"), TEXT + b"1 1\n", b"", b"<html>moved</html>", b"1 2.5\n-3\n7 0.001\n"):
        Site.pages["/rows.txt"] = page
        with pytest.raises(Damaged, match=r"does not have tiny|is not 2 numbers"):
            rows_of(entry(f"{site}/rows.txt"))


def test_a_broken_gzip_and_a_flood_are_refused(site: str, monkeypatch: pytest.MonkeyPatch) -> None:
    Site.pages["/rows.txt.gz"] = gzip.compress(TEXT)[:-4]
    with pytest.raises(Damaged, match="gzip"):
        rows_of(entry(f"{site}/rows.txt.gz"))
    monkeypatch.setattr(download, "LARGEST", 10)
    with pytest.raises(CloisterError, match="more than"):
        fetched(f"{site}/rows.txt")


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("file:///etc/passwd", "not an https address"),
        ("{site}/none", "the server says 404"),
        ("http://127.0.0.1:9/rows.txt", r"127\.0\.0\.1 cannot be reached .*check the network"),
        ("{site}/torn", "cannot be reached"),
    ],
)
def test_an_address_that_is_not_asked_and_an_answer_that_is_none_are_one_error(
    address: str, says: str, site: str
) -> None:
    with pytest.raises(CloisterError, match=says):
        fetched(address.format(site=site))


def test_a_server_cannot_send_anybody_to_an_address_without_tls(site: str) -> None:
    """localhost is a name, which anybody may answer for."""
    with pytest.raises(InvalidInput, match=r"http://localhost.* not an https address"):
        fetched(f"{site}/elsewhere")


# the commands


@pytest.fixture
def known(site: str, monkeypatch: pytest.MonkeyPatch) -> Entry:
    """The one set of a catalogue, on the server."""
    one = entry(f"{site}/rows.txt")
    monkeypatch.setattr(sets, "catalogue", lambda: {one.name: one})
    return one


@pytest.mark.usefixtures("known")
def test_a_set_that_is_not_what_it_was_or_cannot_be_got_is_not_saved(tmp_path: Path) -> None:
    for page, said in ((TEXT + b"1 1\n", "another SHA-256"), (None, "the server says 404")):
        Site.pages["/rows.txt"] = page
        assert said in refused("data get tiny", tmp_path)
    assert not list(tmp_path.iterdir())


def test_get_saves_a_set_and_says_whose_it_is(known: Entry, tmp_path: Path) -> None:
    listed = ran("data list", tmp_path).stdout
    assert "tiny: Three rows. 3 rows, 2 columns, k = 2" in listed
    assert known.where in listed
    assert Site.asked == []
    told = ran("data get tiny --out sets", tmp_path).stdout
    for words in ("3 rows", "licence: CC0", known.where, known.sha256):
        assert words in told
    with np.load(tmp_path / "sets" / "tiny.npz") as stored:
        np.testing.assert_array_equal(stored["X"], ROWS)
    assert "there already" in ran("data get tiny --out sets", tmp_path).stdout
    assert len(Site.asked) == 1
    ran("data get tiny --out sets --format csv", tmp_path)
    assert (tmp_path / "sets" / "tiny.csv").read_text().splitlines()[:2] == ["x1,x2", "1.0,2.5"]
