"""Rates per address, by a clock that never goes back."""

from __future__ import annotations

import pytest

from cloister.collection.service import limits
from cloister.collection.service.limits import Rates


class Clock:
    """Seconds that a test sets."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def allowed(rates: Rates, address: str, requests: int) -> int:
    return sum(rates.wait(address) == 0.0 for _ in range(requests))


def test_a_burst_then_the_rate(clock: Clock) -> None:
    rates = Rates(10, clock)
    assert allowed(rates, "203.0.113.5", 100) == 20
    assert allowed(rates, "203.0.113.6", 1) == 1, "one address does not use up another's"
    clock.now += 1
    assert allowed(rates, "203.0.113.5", 100) == 10
    clock.now += 10**6
    assert allowed(rates, "203.0.113.5", 100) == 20


def test_a_network_of_version_6_is_one_address(clock: Clock) -> None:
    rates = Rates(10, clock)
    assert sum(allowed(rates, f"2001:db8::{n:x}", 1) for n in range(100)) == 20
    assert allowed(rates, "2001:db8:0:1::1", 1) == 1
    assert allowed(rates, "::ffff:203.0.113.5", 100) == 20
    assert allowed(rates, "203.0.113.5", 1) == 0


@pytest.mark.parametrize(
    ("address", "rate"),
    [("::1", 1), ("::ffff:127.0.0.1", 1), ("127.3.2.1", 1), ("", 1), ("203.0.113.5", 0)],
)
def test_this_machine_has_no_limit_and_rate_0_is_none(clock: Clock, address: str, rate: float) -> None:
    rates = Rates(rate, clock)
    assert (allowed(rates, address, 1000), len(rates)) == (1000, 0)


def test_no_address_is_remembered_once_its_allowance_is_full(clock: Clock) -> None:
    rates = Rates(10, clock)
    allowed(rates, "203.0.113.5", 20)
    allowed(rates, "203.0.113.6", 1)
    clock.now += 0.2
    rates.forget()
    assert len(rates) == 1
    clock.now += 2
    rates.forget()
    assert len(rates) == 0


def test_addresses_are_bounded(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_PEERS", 50)
    rates = Rates(10, clock)
    for number in range(1000):
        rates.wait(f"10.0.{number // 250}.{number % 250}")
    assert len(rates) == 50
