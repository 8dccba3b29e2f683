"""Criteria: what is within, what is not, and what the table says about it."""

import copy

import pytest

from tactical.calibration.verdicts import MEASURES, Row, analytic_waits_s, judge, table

# As measured in virtual time, rounded.
FAITHFUL = {
    "rate": [{"what": "near, up", "configured_bps": 5e6, "measured_bps": 5_000_001.0}],
    "delay": [
        {
            "what": "far",
            "configured_s": 0.25,
            "measured_s": 0.2501,
            "jitter_s": 2e-5,
            "packets": 50,
        }
    ],
    "loss": [{"what": "lossy", "configured": 0.01, "sent": 4000, "lost": 37}],
    "queue rate": [{"what": "queue 1", "configured_bps": 3e6, "measured_bps": 3e6}],
    "queueing delay": [
        {
            "what": "load 0.8",
            "packets": 1977,
            "lost": 0,
            "packet_bits": 8000,
            "capacity_bps": 5e6,
            "flow_bps": 3.95e6,
            "wait_s": 0.00155,
            "bucket_bytes": 1500,
            "bucket_wait_s": 0.00155,
            "fifo_wait_s": 0.003,
        }
    ],
    "multipath": [{"what": "near + twin", "links_bps": [5e6, 5e6], "goodput_bps": 9.43e6}],
    "handover": [
        {
            "what": "radio",
            "association_s": [0.6],
            "handover_s": [0.87],
            "interruption_s": [0.64],
            "period_s": 0.005,
        }
    ],
}


def missed(measurements):
    return [row.quantity for row in judge(measurements) if row.verdict == "missed"]


def test_a_faithful_network_misses_nothing_and_every_measure_has_a_criterion():
    assert missed(FAITHFUL) == []
    judged = {row.quantity for row in judge(FAITHFUL) if row.verdict == "ok"}
    assert judged == {
        "rate",
        "delay",
        "jitter",
        "loss",
        "queue rate",
        "queueing delay",
        "MPTCP goodput",
        "association",
        "interruption",
    }


@pytest.mark.parametrize(
    ("name", "key", "within", "outside", "quantity"),
    [
        ("rate", "measured_bps", 5.049e6, 5.051e6, "rate"),
        ("rate", "measured_bps", 4.951e6, 4.949e6, "rate"),
        ("delay", "measured_s", 0.2534, 0.2536, "delay"),
        ("delay", "measured_s", 0.2466, 0.2464, "delay"),
        ("delay", "jitter_s", 0.0009, 0.0011, "jitter"),
        ("queue rate", "measured_bps", 2.971e6, 2.969e6, "queue rate"),
        ("queueing delay", "wait_s", 0.0027, 0.0028, "queueing delay"),
        ("multipath", "goodput_bps", 9.01e6, 8.99e6, "MPTCP goodput"),
        ("handover", "association_s", [9.0, 1.9, 0.1], [0.1, 2.1, 2.2], "association"),
        ("handover", "interruption_s", [0.92], [0.93], "interruption"),
        # Of 4000 packets 1 %: up to 24 in 0.43 % of all draws, 25 in 0.73 %, 57 in 99.6 %.
        ("loss", "lost", 25, 24, "loss"),
        ("loss", "lost", 57, 58, "loss"),
    ],
)
def test_each_criterion_has_its_edge(name, key, within, outside, quantity):
    changed = copy.deepcopy(FAITHFUL)
    changed[name][0][key] = within
    assert missed(changed) == []
    changed[name][0][key] = outside
    assert missed(changed) == [quantity]


@pytest.mark.parametrize("name", MEASURES)
def test_what_could_not_be_measured_is_missed_with_the_reason(name):
    changed = {**FAITHFUL, name: [{"problem": "no packet arrived"}]}
    assert missed(changed) == [name]
    assert "no packet arrived" in table(judge(changed))
    absent = {key: value for key, value in FAITHFUL.items() if key != name}
    assert missed(absent) == [name]


def test_nothing_sent_is_no_loss_of_nothing():
    assert missed({**FAITHFUL, "loss": [{**FAITHFUL["loss"][0], "sent": 0, "lost": 0}]}) == ["loss"]


def test_waits_of_theory():
    # Load 0.8 of 1000-byte packets at 4 Mbit/s: service 2 ms (L. Kleinrock, Queueing Systems I).
    assert analytic_waits_s(3.2e6, 4e6, 8000) == pytest.approx((0.004, 0.008))


def test_kappa_is_fitted_to_the_waits_and_has_no_criterion():
    (kappa,) = [row for row in judge(FAITHFUL) if row.quantity == "κ"]
    assert kappa.measured == pytest.approx(0.00155 / (8000 / (5e6 - 3.95e6)))
    assert kappa.verdict == ""


def test_a_table_has_a_line_for_every_row_in_the_units_of_people():
    rows = judge(FAITHFUL)
    columns, _, notes = table(rows).partition("\n\n")
    lines = columns.splitlines()
    assert len(lines) == 1 + len(rows)
    assert max(map(len, lines)) <= 120
    (far,) = [line for line in lines if line.startswith("delay")]
    assert far.split()[2:8] == ["250.000", "ms", "250.100", "ms", "+0.100", "ms"]
    assert far.endswith("ok")
    (rate,) = [line for line in lines if line.startswith("rate")]
    assert "5.000 Mbit/s" in rate
    assert "+0.00 %" in rate
    assert "delay far: median of 50" in notes


def test_json_has_the_error_only_where_both_numbers_are_known():
    assert Row("rate", "", "bit/s", 5.0, 4.0).to_json()["error"] == -1.0
    assert Row("association", "", "s", None, 4.0).to_json()["error"] is None
