"""Prometheus metrics of a running controller."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from .records import Line

if TYPE_CHECKING:
    from .app import ControllerApp

_SECONDS = (0.0001, 0.001, 0.005, 0.01, 0.05, 0.1, 0.4, 1.0, 5.0, 10.0)


class Metrics:
    """Counts records as they pass, and reads everything else when it is asked.

    Parameters
    ----------
    app
        The running controller.
    """

    def __init__(self, app: ControllerApp) -> None:
        self.registry = CollectorRegistry()
        self._errors = Counter(
            "tactical_errors", "Error records by node", ["node"], registry=self.registry
        )
        self._solves = Histogram(
            "tactical_solve_seconds",
            "Time of a solve",
            buckets=_SECONDS,
            registry=self.registry,
        )
        self._deployments = Histogram(
            "tactical_deploy_seconds",
            "Time from a decision to its verified deployment",
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.registry.register(_State(app))
        app.write.listen(self._count)

    def _count(self, line: Line) -> None:
        match line["kind"]:
            case "error":
                self._errors.labels(line["node"]).inc()
            case "solve":
                self._solves.observe(line["data"]["solve_time_s"])
            case "assignment":
                self._deployments.observe(line["data"]["deploy_time_s"])


class _State(Collector):
    def __init__(self, app: ControllerApp) -> None:
        self._app = app

    def collect(self) -> Iterable[Metric]:
        """What is true at the moment."""
        app = self._app
        view, deployed, network = app.controller.view, app.controller.deployed, app.network
        yield GaugeMetricFamily(
            "tactical_master", "Whether this controller is the master", float(app.master)
        )
        connected = GaugeMetricFamily(
            "tactical_datapath_connected", "Whether a datapath is connected", labels=["datapath"]
        )
        for d in network.datapaths:
            connected.add_metric([d.name], float(d.dpid in view.connected))
        yield connected
        yield GaugeMetricFamily(
            "tactical_flow_entries", "Flow entries deployed", float(len(deployed.flows))
        )
        labels = ["port", "queue_id", "user", "via"]
        least = GaugeMetricFamily(
            "tactical_queue_guaranteed_bits_per_second", "Guaranteed rate", labels=labels
        )
        most = GaugeMetricFamily(
            "tactical_queue_largest_bits_per_second", "Largest rate", labels=labels
        )
        for q, rate in deployed.queues.items():
            least.add_metric([q.port, str(q.queue_id), q.user, q.via], rate.min_bps)
            most.add_metric([q.port, str(q.queue_id), q.user, q.via], rate.max_bps)
        yield from (least, most)
        sent = CounterMetricFamily(
            "tactical_port_transmitted_bytes", "Bytes sent", labels=["datapath", "port"]
        )
        for (kind, datapath, port, *_), sample in list(app.samples.items()):
            if kind == "port":
                sent.add_metric([datapath, port], sample["tx_bytes"])
        yield sent
        rates = GaugeMetricFamily(
            "tactical_subflow_bits_per_second", "Smoothed rate", labels=["user", "via"]
        )
        for key, rate_bps in view.measurements.rates_bps.items():
            if key[0] == "subflow":
                rates.add_metric([key[1], key[2]], rate_bps)
        yield rates
