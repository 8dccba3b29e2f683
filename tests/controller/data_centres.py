"""Data centre networks as a controller has them described."""

from collections import Counter

from routing.topologies import Cable, Topology
from tactical.controller.network import (
    Attachment,
    ControlledNetwork,
    Datapath,
    Demand,
    Port,
    Server,
    Trunk,
)


def described(topology: Topology, sources: tuple[str, ...], destination: str) -> ControlledNetwork:
    """`sources` are users, `destination` is the server, and everything else forwards.

    Every cable of a source is an interface of its own. A destination of several cables has a
    datapath that bridges them.
    """
    bridged = sum(destination in cable[:2] for cable in topology.cables) > 1
    datapaths = [
        name
        for name in (*topology.hosts, *topology.switches)
        if name not in sources and (bridged or name != destination)
    ]
    cables = list(topology.cables)
    if bridged:
        datapaths.remove(destination)
        cables = [
            Cable(*(f"{end}-bridge" if end == destination else end for end in cable[:2]), cable[2])
            for cable in cables
        ]
        cables.append(Cable(f"{destination}-bridge", destination, 1e12))
        datapaths.append(f"{destination}-bridge")
    used: Counter[str] = Counter()

    def port(datapath: str) -> Port:
        used[datapath] += 1
        return Port(datapath, f"{datapath}-eth{used[datapath]}", used[datapath])

    ports, trunks, attachments = [], [], []
    interfaces: Counter[str] = Counter()
    for a, b, rate_bps in cables:
        ends = [(end, port(end)) for end in (a, b) if end in datapaths]
        ports += [own for _, own in ends]
        if len(ends) == 2:
            (_, one), (_, other) = ends
            trunks.append(Trunk(a, one.name, b, other.name, rate_bps, 0.0))
            continue
        ((datapath, own),) = ends
        host = b if datapath == a else a
        if host == destination:
            server = Server(host, "10.255.0.1", "02:ff:00:00:00:01", datapath, own.name, rate_bps)
            continue
        number, interface = sources.index(host), interfaces[host]
        interfaces[host] += 1
        address = f"10.{interface}.{number // 250}.{number % 250 + 1}"
        mac = f"02:00:{interface:02x}:00:{number // 256:02x}:{number % 256:02x}"
        attachments.append(
            Attachment(
                host,
                f"{host}-eth{interface}",
                address,
                mac,
                datapath,
                own.name,
                rate_bps,
                wireless=False,
            )
        )
    return ControlledNetwork(
        policy="maxflow",
        datapaths=tuple(Datapath(name, n) for n, name in enumerate(datapaths, start=1)),
        ports=tuple(ports),
        attachments=tuple(attachments),
        trunks=tuple(trunks),
        server=server,
        demands=tuple(Demand(source, 0.0) for source in sources),
        mean_packet_bits=12112.0,
        delay_coefficient=1.0,
        capacity_share=0.95,
    )
