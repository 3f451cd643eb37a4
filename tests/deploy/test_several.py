"""Several collectors of one plan: what the phones of a crowd sent to either counts once, whatever dies meanwhile."""

from __future__ import annotations

import asyncio
import itertools
import re
import shutil
import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from cloister.collection.client.encoder import PlanEncoder
from cloister.collection.plan import bundle_folder
from cloister.collection.plan.plan import CollectionPlan
from cloister.collection.server.aggregator import decode
from cloister.lab.phones.crowd import plan_of, rows
from tests.collection.service.collectors import OCTETS, USERS, collecting, form_of, on_disk, plan_in, report
from tests.deploy.kit import PORTS, caddy, needs, nginx, send, visitor
from tests.waiting import PATIENCE, until

pytestmark = pytest.mark.thorough

HEAD = 18
"""Bytes of a report before its answer: which plan, round and user."""


def asked(folder: Path, people: int) -> tuple[CollectionPlan, list[bytes]]:
    """A published plan in a folder, and the report of each person."""
    plan = plan_of(people, 4.0)
    bundle_folder.write(plan, folder, "in words")
    sent = PlanEncoder(plan).encode(rows(people, np.random.default_rng(0)), range(people))
    form = form_of(plan)
    found = form.parse(sent.to_bytes())
    pairs = zip(found.users.tolist(), found.answers, strict=True)
    return plan, [form.report(user, answer.tobytes()) for user, answer in pairs]


LANES, LATER = 64, 0.05
"""Phones that report at once; seconds until one tries again, of which a real one waits for more."""


def address(phone: int) -> str:
    """The address of a phone, which no other one has."""
    return f"10.{phone >> 16}.{phone >> 8 & 255}.{phone & 255}"


async def crowd(proxy: str, reports: list[bytes], told: Callable[[int], None]) -> None:
    """Each phone reports, on connections of its own, until it hears that its report is kept, as the clients do. Args:
    proxy (its address), told (called with the number of phones that are done, whenever one is)."""
    left, done = iter(enumerate(reports)), itertools.count(1)

    async def lane(client: httpx.AsyncClient) -> None:
        for phone, body in left:
            status, headers = 0, {**OCTETS, "x-forwarded-for": address(phone)}
            while status not in (201, 409):
                with suppress(httpx.TransportError):
                    status = (await client.post("/reports", content=body, headers=headers)).status_code
                assert status in (0, 201, 409, 429) or status >= 500, f"a phone is told {status}"
                if status not in (201, 409):
                    await asyncio.sleep(LATER)
            told(next(done))

    own = httpx.Limits(max_keepalive_connections=0)
    visitors = httpx.AsyncClient(base_url=proxy, verify=False, limits=own, timeout=PATIENCE)
    async with visitors as client, asyncio.TaskGroup() as lanes:
        for _ in range(LANES):
            lanes.create_task(lane(client))


@pytest.mark.parametrize(
    ("front", "people"),
    [
        pytest.param(nginx, 1_000, marks=needs("nginx")),
        pytest.param(nginx, 20_000, marks=[needs("nginx"), pytest.mark.long]),
        pytest.param(caddy, 1_000, marks=needs("caddy")),
    ],
)
def test_phones_report_through_a_proxy_to_two_collectors_of_which_one_is_killed_and_each_counts_once(
    front: Any, people: int, tmp_path: Path
) -> None:
    plan, reports = asked(tmp_path / "plan", people)
    with ExitStack() as stack:
        first, second = (stack.enter_context(collecting(tmp_path, "--out", out)) for out in ("a", "b"))
        behind = dict(zip(PORTS, (first.port, second.port), strict=True))
        name = stack.enter_context(front(tmp_path / "front", behind))
        asyncio.run(crowd(name, reports, lambda done: second.kill() if done == people // 2 else None))
        assert first.end() == 0
    form = form_of(plan)
    kept = [set(on_disk(tmp_path / out, form).tolist()) for out in ("a", "b")]
    assert all(len(one) > people // 10 for one in kept), "both took part"
    assert kept[0] | kept[1] == set(range(people))
    both = len(kept[0] & kept[1])
    done = decode(plan, [tmp_path / "a", tmp_path / "b"])
    assert done.intake.accepted == people
    assert done.intake.refused["duplicate"] == both
    alone = decode(plan, b"".join(reports))
    np.testing.assert_array_equal(done.result.centers, alone.result.centers)
    written = b"".join(path.read_bytes() for path in (tmp_path / "front").rglob("*") if path.is_file())
    assert not any(address(phone).encode() in written for phone in range(1, people))
    assert not re.search(rb'"remote_ip": ?"', written), "as Caddy's log names who asks"
    assert not [path for path in (tmp_path / "front").glob("temporary-*/**/*") if path.is_file()]


def test_of_two_reports_of_one_number_the_folder_s_name_says_which_counts_and_never_what_they_say(
    tmp_path: Path,
) -> None:
    """The same people, with rows that they swapped: what counts is what stands where the file's name comes first."""
    plan, mine = asked(tmp_path / "plan", 2_000)
    others = [mine[user][:HEAD] + mine[-1 - user][HEAD:] for user in range(len(mine))]
    alone = {name: decode(plan, b"".join(some)).result.centers for name, some in (("mine", mine), ("others", others))}
    assert not np.array_equal(alone["mine"], alone["others"])
    for first, second in ((mine, others), (others, mine)):
        for folder, some in (("a", first), ("b", second)):
            (tmp_path / folder).mkdir(exist_ok=True)
            (tmp_path / folder / "round-001-000001.reports").write_bytes(b"".join(some))
        for order in ("ab", "ba"):
            done = decode(plan, [tmp_path / folder for folder in order])
            assert (done.intake.accepted, done.intake.refused["duplicate"]) == (len(mine), len(mine))
            np.testing.assert_array_equal(done.result.centers, alone["mine" if first is mine else "others"])


def test_a_collector_restored_in_the_middle_of_a_round_counts_nobody_twice(tmp_path: Path) -> None:
    """Copied while reports come in, killed, and begun again from the copy; then the old disk turns up after all."""
    plan, kept, stopped = plan_in(tmp_path / "plan"), list[int](), threading.Event()
    form, reports, copy = form_of(plan), tmp_path / "reports", tmp_path / "copy"

    def people() -> None:
        with visitor(process.address) as client:
            for user in range(USERS - 1):
                if stopped.is_set():
                    return
                assert send(client, report(form, user)) == 201
                kept.append(user)

    with collecting(tmp_path) as process:
        reporting = threading.Thread(target=people)
        reporting.start()
        until(lambda: len(kept) > 100)
        known = list(kept)
        shutil.copytree(reports, copy)
        until(lambda: len(kept) > len(known) + 100 or not reporting.is_alive())
        stopped.set()
        reporting.join()
        process.kill()
    reports.rename(tmp_path / "old")
    copy.rename(reports)
    with collecting(tmp_path) as process, visitor(process.address) as client:
        answers = {user: send(client, report(form, user)) for user in [*kept, USERS - 1]}
        assert {answers[user] for user in known} == {409}
        assert set(answers.values()) == {201, 409}
        assert process.end() == 0
    restored = on_disk(reports, form).tolist()
    assert sorted(restored) == sorted([*kept, USERS - 1])
    done = decode(plan, [tmp_path / "old", reports], accept_shares=True)
    assert done.intake.accepted == len(restored)
    assert done.intake.refused == {"duplicate": len(kept)}
