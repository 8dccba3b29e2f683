"""Draw kappa.svg: how much of the UAV two users take as their traffic grows burstier.

python docs/images/kappa.py
"""

import math
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure

import fdm

NETWORK = fdm.Network(
    ["ship1", "ship2", "satcom", "uav", "host"],
    [
        *[
            fdm.Link(ship, relay, 100e6)
            for ship in ("ship1", "ship2")
            for relay in ("satcom", "uav")
        ],
        fdm.Link("satcom", "host", 50e6, 0.25),
        fdm.Link("uav", "host", 1e6, 0.01),
    ],
)
DEMANDS = [fdm.Demand("ship1", "host", 3e6), fdm.Demand("ship2", "host", 3e6)]
MARKED = {
    0.6: ("smooth", (-44, -24)),
    1.0: ("M/M/1", (6, 6)),
    5.0: ("bursts of ten", (6, 6)),
    10.0: ("", (4, 6)),
}


def uav_mbps(kappa: float) -> float:
    """Rate of both ships together over the UAV, in Mbit/s."""
    return fdm.solve(NETWORK, DEMANDS, kappa=kappa).link_flows_bps[5] / 1e6


def main() -> None:
    matplotlib.use("Agg")
    with matplotlib.rc_context({"svg.hashsalt": "tactical", "svg.fonttype": "none"}):
        figure = Figure(figsize=(6.4, 3.4), layout="constrained")
        axes = figure.add_subplot()
        kappas = [10 ** (step / 50 - 1) for step in range(101)]
        axes.plot(kappas, [uav_mbps(kappa) for kappa in kappas], color="#0072b2", label="optimum")
        axes.plot(
            kappas,
            [1.0 - math.sqrt(kappa * 12000 / (1e6 * 0.24)) for kappa in kappas],
            color="#555555",
            linestyle="--",
            linewidth=1.0,
            label="C(1 − √(κb/(CΔp)))",
        )
        for kappa, (text, place) in MARKED.items():
            rate = uav_mbps(kappa)
            axes.plot([kappa], [rate], "o", color="#0072b2")
            axes.annotate(
                f"{rate:.3f}" + (f"\n{text}" if text else ""),
                (kappa, rate),
                xytext=place,
                textcoords="offset points",
            )
        axes.set_xscale("log")
        axes.set_xticks([0.1, 1, 10], ["0.1", "1", "10"])
        axes.set_ylim(0.0, 1.05)
        axes.set_xlabel("κ, coefficient of the queueing delay")
        axes.set_ylabel("UAV, both ships (Mbit/s of 1)")
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, loc="lower left")
        figure.savefig(Path(__file__).with_suffix(".svg"), metadata={"Date": None})


if __name__ == "__main__":
    main()
