"""Byte streams over TCP and multipath TCP, through links whose queues a controller may divide.

Where `simulation.Simulation` is about the congestion control of very many packets, this is about
few users and everything that happens to one of their transfers: handshakes, selective
acknowledgments, the order of the data, a subflow that comes, becomes a backup or goes, an address
that moves to another network. Plain Python: a second of a transfer of 3 Mbit/s takes some ten
milliseconds.
"""

from simulation.transfers.connection import Receiver, Sender, Transfer
from simulation.transfers.links import CoDel, Counted, Medium, Port
from simulation.transfers.loop import Loop
from simulation.transfers.packet import Packet
from simulation.transfers.subflow import Subflow

__all__ = [
    "CoDel",
    "Counted",
    "Loop",
    "Medium",
    "Packet",
    "Port",
    "Receiver",
    "Sender",
    "Subflow",
    "Transfer",
]
