"""Rates per address, by a clock that never goes back."""

from __future__ import annotations

import time
from unittest.mock import Mock

import pytest

from cloister.collection.service import limits
from cloister.collection.service.limits import Limits, PendingBytes, Rates, ServiceCounts, retry_after


@pytest.fixture
def clock() -> Mock:
    """Seconds that a test sets."""
    return Mock(return_value=1000.0)


def allowed(rates: Rates, address: str, requests: int) -> int:
    return sum(rates.wait(address) == 0.0 for _ in range(requests))


def test_a_burst_then_the_rate(clock: Mock) -> None:
    rates = Rates(10, clock)
    assert allowed(rates, "203.0.113.5", 100) == 20
    assert allowed(rates, "203.0.113.6", 1) == 1, "one address does not use up another's"
    clock.return_value += 1
    assert allowed(rates, "203.0.113.5", 100) == 10
    clock.return_value += 10**6
    assert allowed(rates, "203.0.113.5", 100) == 20


def test_the_wait_is_how_long_until_one_is_allowed(clock: Mock) -> None:
    rates = Rates(0.5, clock)
    assert rates.wait("203.0.113.5") == 0
    wait = rates.wait("203.0.113.5")
    assert wait == pytest.approx(2)
    clock.return_value += wait + 1e-9
    assert rates.wait("203.0.113.5") == 0
    assert retry_after(wait) == {"retry-after": "2"}
    assert retry_after(0.01) == {"retry-after": "1"}


def test_a_network_of_version_6_is_one_address(clock: Mock) -> None:
    rates = Rates(10, clock)
    assert sum(allowed(rates, f"2001:db8::{n:x}", 1) for n in range(100)) == 20
    assert allowed(rates, "2001:db8:0:1::1", 1) == 1
    assert allowed(rates, "::ffff:203.0.113.5", 100) == 20
    assert allowed(rates, "203.0.113.5", 1) == 0


@pytest.mark.parametrize(
    ("address", "rate"),
    [("127.0.0.1", 1), ("::1", 1), ("::ffff:127.0.0.1", 1), ("127.3.2.1", 1), ("", 1), ("203.0.113.5", 0)],
)
def test_this_machine_has_no_limit_and_rate_0_is_none(clock: Mock, address: str, rate: float) -> None:
    rates = Rates(rate, clock)
    assert (allowed(rates, address, 1000), len(rates)) == (1000, 0)


def test_no_address_is_remembered_once_its_allowance_is_full(clock: Mock) -> None:
    rates = Rates(10, clock)
    allowed(rates, "203.0.113.5", 20)
    allowed(rates, "203.0.113.6", 1)
    clock.return_value += 0.2
    rates.forget()
    assert len(rates) == 1
    clock.return_value += 2
    rates.forget()
    assert len(rates) == 0


def test_addresses_are_bounded(clock: Mock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_PEERS", 50)
    rates = Rates(10, clock)
    for number in range(1000):
        rates.wait(f"10.0.{number // 250}.{number % 250}")
    assert len(rates) == 50


def test_setting_the_machine_s_clock_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rates = Rates(1)
    assert allowed(rates, "203.0.113.5", 10) == 2
    for jump in (1e9, -1e9):
        monkeypatch.setattr(time, "time", lambda jump=jump: jump)
        assert allowed(rates, "203.0.113.5", 10) == 0


def test_bytes_under_way_are_added_up_per_address_and_forgotten() -> None:
    counts = ServiceCounts()
    held = PendingBytes(Limits(pending_bytes=400), counts)
    held.add("203.0.113.5", 60)
    held.add("203.0.113.5", 40)
    assert not held.full("203.0.113.5")
    held.add("203.0.113.5", 1)
    assert (held.full("203.0.113.5"), held.full("203.0.113.6"), held.full(None)) == (True, False, False)
    held.add(None, 300)
    assert held.full("203.0.113.6"), "all together hold too much"
    held.add("203.0.113.5", -101)
    assert (counts.pending_bytes, len(held), held.full("203.0.113.5")) == (300, 0, False)
