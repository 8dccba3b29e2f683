"""How long the controller took from associations to what followed, from a run's events."""

import pytest

from analysis.run.directory import Event
from analysis.run.latency import handover_latency
from analysis.run.result import Spread


def assigned(t_s: float, user: str, *, waited_s: float = 0.0, deploy_s: float = 0.1) -> Event:
    cause = {"user": user, "access_point": "uav", "associated": True, "source": "frame"}
    data = {"waited_s": waited_s, "solve_time_s": 0.01, "deploy_time_s": deploy_s}
    return Event(t_s, "assignment", "controller", {"cause": cause, **data})


def joined(t_s: float, user: str, access_point: str = "uav") -> Event:
    return Event(t_s, "station_joined", access_point, {"user": user})


def test_the_parts_of_an_association_add_up() -> None:
    events = [
        joined(1.0, "ship1"),
        joined(9.5, "ship1", "coast"),
        joined(9.97, "ship1"),
        joined(9.98, "ship2"),
        assigned(10.1, "ship1"),
        Event(10.15, "assignment", "controller", {"trigger": "periodic"}),
        assigned(10.3, "ship2", waited_s=0.15),
        Event(10.35, "station_left", "uav", {"user": "ship1"}),
    ]
    found = handover_latency(events)
    assert found is not None
    assert found.associations == 2
    assert found.detection.median_s == pytest.approx((0.02 + 0.06) / 2)
    assert found.waiting.p95_s == pytest.approx(0.95 * 0.15)
    assert found.solve == Spread(pytest.approx(0.01), pytest.approx(0.01))
    assert found.total.median_s == pytest.approx((0.13 + 0.32) / 2)


def test_a_controller_that_heard_first_detected_at_once() -> None:
    found = handover_latency([assigned(10.11, "ship1"), joined(10.05, "ship1")])
    assert found is not None
    assert found.detection.median_s == 0.0
    assert found.total.median_s == pytest.approx(0.11)


def test_without_an_association_there_is_nothing_to_tell() -> None:
    event = Event(1.0, "assignment", "controller", {"trigger": "periodic", "deploy_time_s": 1.0})
    assert handover_latency([event, joined(2.0, "ship1")]) is None
