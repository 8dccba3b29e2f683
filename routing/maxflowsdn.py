"""The three networks on which MaxFlowSDN was evaluated.

The paper: M. Alsabaan, M. J. F. Alenazi, N. S. Bin Saeed, A. Almutari, on MaxFlowSDN (IIETA,
2025), tables 4 to 6. Three of its lines cannot be meant
as printed:

- table 4 has ``s93 - s3``. That switch is joined to s91 and s92 as all odd ones are; s93 and s94
  join the even ones, and s2 would have one cable only. It is ``s93 - s2``.
- table 5 has ``h0.2 - h1.4``. Cell 0 is joined to cell 1 by its first host, and to cell 2 by none
  otherwise; h1.4 has its cable to cell 4. It is ``h0.2 - h2.1``, as DCell's rule has it.
- table 5 lacks the four cables of switch DCs4. They are taken to have 10 Mbit/s as those of other
  hosts; with 20 Mbit/s the maximum flow is the same.
"""

from dataclasses import dataclass

from routing.topologies import Cable, Topology

_MBPS = 1e6


@dataclass(frozen=True)
class Network:
    """A network, and the transfer through it.

    Attributes
    ----------
    name : str
        What the paper calls it.
    topology : Topology
        Its hosts and cables.
    source, destination : str
        The hosts H1 and H2.
    """

    name: str
    topology: Topology
    source: str
    destination: str


def _network(name: str, source: str, destination: str, switches: str, table: str) -> Network:
    """Read lines as ``13 s9-h1 s15-h2``: Mbit/s, and the ends of every cable of that rate."""
    cables = []
    for line in table.strip().splitlines():
        rate, *pairs = line.split()
        for pair in pairs:
            a, b = pair.split("-")
            cables.append(Cable(a, b, float(rate) * _MBPS))
    those = tuple(switches.split())
    ends = dict.fromkeys(end for a, b, _ in cables for end in (a, b))
    hosts = tuple(end for end in ends if end not in those)
    return Network(name, Topology(hosts, those, tuple(cables)), source, destination)


FAT_TREE = _network(
    "Fat-Tree",
    "h1",
    "h2",
    "s1 s2 s3 s4 s5 s6 s7 s8 s9 s10 s11 s12 s13 s14 s15 s16 s91 s92 s93 s94",
    """
    10 s91-s1 s91-s3 s91-s5 s91-s7 s92-s1 s92-s3 s92-s5 s92-s7
    10 s93-s2 s93-s4 s93-s6 s93-s8 s94-s2 s94-s4 s94-s6 s94-s8
    7 s1-s9 s2-s9 s7-s15 s8-s15
    5 s1-s10 s2-s10 s3-s11 s3-s12 s4-s11 s4-s12 s5-s13 s5-s14 s6-s13 s6-s14 s7-s16 s8-s16
    13 s9-h1 s15-h2
    """,
)
"""Table 4: a fat tree of switches with 4 ports, and two of its hosts."""

DCELL = _network(
    "DCell",
    "h0.1",
    "h3.4",
    "DCs0 DCs1 DCs2 DCs3 DCs4",
    """
    10 DCs0-h0.1 DCs0-h0.2 DCs0-h0.3 DCs0-h0.4
    20 DCs1-h1.1
    10 DCs1-h1.2 DCs1-h1.3 DCs1-h1.4
    10 DCs2-h2.1 DCs2-h2.2 DCs2-h2.3 DCs2-h2.4
    10 DCs3-h3.1 DCs3-h3.2 DCs3-h3.3
    20 DCs3-h3.4
    10 DCs4-h4.1 DCs4-h4.2 DCs4-h4.3 DCs4-h4.4
    20 h0.1-h1.1
    15 h0.2-h2.1 h0.3-h3.1 h0.4-h4.1 h1.2-h2.2 h1.3-h3.2 h1.4-h4.2 h2.3-h3.3 h2.4-h4.3 h3.4-h4.4
    """,
)
"""Table 5: DCell of level 1 with switches of 4 ports."""

BCUBE = _network(
    "BCube",
    "h1",
    "h2",
    "s80 s81 s82 s83 s90 s91 s92 s93",
    """
    10 s80-s1 s80-s2 s80-s3 s80-s4 s81-h1 s81-s5 s81-s6 s81-s7
    10 s82-s8 s82-s9 s82-s10 s82-s11 s83-s12 s83-s13 s83-h2 s83-s14
    10 s90-s1 s90-s8 s90-s12 s91-s2 s91-s5 s91-s9 s91-s13
    10 s92-s3 s92-s6 s92-s10 s93-s4 s93-s7 s93-s11 s93-s14
    20 s90-h1 s92-h2
    """,
)
"""Table 6: BCube of level 1 with switches of 4 ports. Hosts are s1 to s14, h1 and h2."""

NETWORKS = (FAT_TREE, DCELL, BCUBE)
