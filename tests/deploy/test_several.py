"""Several collectors of one plan: what the phones of a crowd sent to either counts once, whatever dies meanwhile."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

from cloister.collection.client.encoder import PlanEncoder
from cloister.collection.plan import bundle
from cloister.collection.plan.plan import CollectionPlan
from cloister.collection.server.aggregator import decode
from cloister.lab.phones.crowd import plan_of, rows
from tests.collection.service.collectors import (
    collecting,
    form_of,
    on_disk,
)
from tests.deploy.kit import PORTS, needs, nginx
from tests.deploy.phones import Crowd, address

pytestmark = pytest.mark.thorough


def asked(folder: Path, people: int) -> tuple[CollectionPlan, list[bytes]]:
    """A published plan in a folder, and the report of each person."""
    plan = plan_of(people, 4.0)
    bundle.write(plan, folder, "in words")
    sent = PlanEncoder(plan).encode(rows(people, np.random.default_rng(0)), range(people))
    form = form_of(plan)
    found = form.parse(sent.to_bytes())
    pairs = zip(found.users.tolist(), found.answers, strict=True)
    return plan, [form.report(user, answer.tobytes()) for user, answer in pairs]


@needs("nginx")
@pytest.mark.parametrize("people", [2_000, pytest.param(20_000, marks=pytest.mark.long)])
def test_phones_report_through_nginx_to_two_collectors_of_which_one_is_killed_and_each_counts_once(
    people: int, tmp_path: Path
) -> None:
    plan, reports = asked(tmp_path / "plan", people)
    with ExitStack() as stack:
        first, second = (stack.enter_context(collecting(tmp_path, "--out", out)) for out in ("a", "b"))
        front = stack.enter_context(nginx(tmp_path / "nginx", dict(zip(PORTS, (first.port, second.port), strict=True))))
        crowd = Crowd(front, lambda done: second.kill() if done == people // 2 else None)
        crowd.report(reports)
        assert first.end() == 0
    form = form_of(plan)
    kept = [set(on_disk(tmp_path / out, form).tolist()) for out in ("a", "b")]
    assert all(len(one) > people // 10 for one in kept), "both took part"
    assert kept[0] | kept[1] == set(range(people))
    both = len(kept[0] & kept[1])
    done = decode(plan, [tmp_path / "a", tmp_path / "b"])
    assert done.intake.accepted == people
    assert done.intake.refused.get("duplicate", 0) == both
    assert set(crowd.statuses) <= {0, 201, 409, 502}
    alone = decode(plan, b"".join(reports))
    np.testing.assert_array_equal(done.result.centers, alone.result.centers)
    written = b"".join(path.read_bytes() for path in (tmp_path / "nginx").rglob("*") if path.is_file())
    assert not any(address(phone).encode() in written for phone in range(1, people))
    assert not [path for path in (tmp_path / "nginx").glob("temporary-*/**/*") if path.is_file()]
