"""A subflow: two ends that shake hands, carry mapped data one way, and part."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from simulation.transfers.cubic import Window
from simulation.transfers.loop import Loop, Timer
from simulation.transfers.packet import Packet
from simulation.transfers.stream import FIRST_TIMEOUT_S, Segment, StreamReceiver, StreamSender

if TYPE_CHECKING:
    from simulation.transfers.connection import Transfer


class Subflow:
    """A TCP connection; one of several of a transfer over multipath TCP.

    Parameters
    ----------
    loop : Loop
    transfer : Transfer
        Whose data it carries.
    name : object
        Tells the network where its packets go.
    number : int
        Of the address that it uses at the end that sends; 0 is the first.
    cubic : bool
        Congestion control: CUBIC, or else NewReno.
    send : callable
        Gives a packet to the network.

    Attributes
    ----------
    state : str
        "opening", "open", "closing" or "closed".
    backup : bool
        Whether the sender uses it only where there is no other.
    """

    def __init__(
        self,
        loop: Loop,
        transfer: Transfer,
        name: object,
        number: int,
        cubic: bool,
        send: Callable[[Packet], object],
    ) -> None:
        self._loop, self.transfer, self.name, self.number = loop, transfer, name, number
        self._send = send
        self.multipath = transfer.multipath
        self.state = "opening"
        self.backup = False
        self.average_pacing = 0.0
        self.sender = StreamSender(loop, Window(cubic), self._transmit, transfer.sender.push)
        self.receiver = StreamReceiver(loop, transfer.receiver.take, self._acknowledge)
        self._accepted = False
        self._ended: dict[bool, bool] = {True: False, False: False}
        self._tries = 0
        self._heard_s = 0.0
        self._again = Timer(loop, self._open)

    def _signal(self, kind: str) -> str:
        if not self.multipath:
            return ""
        return f"{'join' if self.number else 'capable'} {kind}"

    def open(self) -> None:
        """Begin the handshake."""
        self._open()

    def _open(self) -> None:
        if self.state != "opening":
            return
        self._again.start(FIRST_TIMEOUT_S * 2.0**self._tries)
        self._tries += 1
        now_s = self._loop.now_s
        signal = self._signal("syn")
        self._send(Packet(self, True, "S", 0, 0, now_s, signal=signal, backup=self.backup))

    def close(self) -> None:
        """Say that there are no more data."""
        if self.state == "open":
            self.state = "closing"
            self._finish(True)

    def abandon(self) -> list[tuple[int, int]]:
        """Be gone; returns the data that may not have arrived."""
        self.state = "closed"
        self._again.cancel()
        return self.sender.stop()

    def prioritise(self, backup: bool) -> None:
        """Become a backup, or none any more, and say so to the other end (RFC 8684, 3.3.8)."""
        self.backup = backup
        if self.state == "open":
            self._control("prio", backup)

    def announce_removal(self, number: int) -> None:
        """Tell that the address of this number is no more (RFC 8684, 3.4.2)."""
        self._control("remove address", False, number)

    def end_data(self, data_sequence: int) -> None:
        """Tell that the connection's data end there."""
        now_s = self._loop.now_s
        packet = Packet(
            self, True, "A", self.sender.next, 1, now_s,
            data_sequence=data_sequence, data_end=True, echo_s=self._heard_s,
        )  # fmt: skip
        self._send(packet)

    def arrive(self, packet: Packet) -> None:
        """Take a packet that the network brought.

        The end that receives does not know yet when the other has given the subflow up.
        """
        if packet.forward:
            self._at_receiver(packet)
        elif self.state != "closed":
            self._at_sender(packet)

    def _at_receiver(self, packet: Packet) -> None:
        now_s = self._loop.now_s
        if "S" in packet.flags:
            reply = Packet(
                self, False, "SA", 0, 1, now_s, echo_s=packet.sent_s, signal=self._signal("syn ack")
            )
            self._send(reply)
            return
        self._accepted = True
        if packet.length:
            self.receiver.note(packet.marked, packet.reduced)
            self.receiver.take(
                packet.sequence, packet.length, packet.data_sequence, packet.data_end, packet.sent_s
            )
        elif packet.data_end:
            self.transfer.receiver.take(packet.data_sequence, 0, True)
            self.receiver.echo_s = packet.sent_s
            self._acknowledge()
        if "F" in packet.flags and packet.sequence == self.receiver.next:
            self.receiver.next += 1
            self.receiver.echo_s = packet.sent_s
            self._finish(False)

    def _at_sender(self, packet: Packet) -> None:
        now_s = self._loop.now_s
        self._heard_s = packet.sent_s
        if "S" in packet.flags:
            if self.state != "opening":
                return
            self._again.cancel()
            self.state = "open"
            self.sender.measured(now_s - packet.echo_s)
            signal = self._signal("ack")
            reply = Packet(self, True, "A", 1, 1, now_s, echo_s=packet.sent_s, signal=signal)
            self._send(reply)
            self.transfer.sender.opened(self)
            return
        self.transfer.sender.answered(packet.data_acknowledgment)
        if self.state == "closed":
            return
        self.sender.answered(packet.acknowledgment, packet.sacks, packet.echo_s, packet.congested)
        if "F" in packet.flags:
            self.state = "closed"
            end = Packet(self, True, "A", self.sender.next + 1, 2, now_s, echo_s=packet.sent_s)
            self._send(end)

    def _transmit(self, segment: Segment) -> None:
        packet = Packet(
            self, True, "PA", segment.sequence, 1, self._loop.now_s,
            length=segment.end - segment.sequence, data_sequence=segment.data_sequence,
            echo_s=self._heard_s, capable=segment.fresh,
            reduced=segment.fresh and self.sender.told_to_reduce(),
        )  # fmt: skip
        self._send(packet)

    def _acknowledge(self) -> None:
        receiver = self.receiver
        # Beside a data acknowledgment of 64 bits an option of one block has room.
        packet = Packet(
            self, False, "A", 1, receiver.next, self._loop.now_s,
            sacks=receiver.sacks[: 1 if self.multipath else 3], echo_s=receiver.echo_s,
            data_acknowledgment=self.transfer.receiver.next, congested=receiver.congested,
        )  # fmt: skip
        self._send(packet)

    def _control(self, signal: str, backup: bool, number: int = 0) -> None:
        now_s = self._loop.now_s
        packet = Packet(
            self, True, "A", self.sender.next, 1, now_s,
            echo_s=self._heard_s, signal=signal, backup=backup, data_sequence=number,
        )  # fmt: skip
        self._send(packet)

    def _finish(self, forward: bool) -> None:
        """Send a FIN, again and again until the other end has answered (five times at most)."""
        now_s = self._loop.now_s
        if forward:
            packet = Packet(self, True, "FA", self.sender.next, 1, now_s, echo_s=self._heard_s)
        else:
            packet = Packet(
                self, False, "FA", 1, self.receiver.next, now_s, echo_s=self.receiver.echo_s,
                data_acknowledgment=self.transfer.receiver.next,
            )  # fmt: skip
        self._send(packet)
        if forward and self._tries < 10:
            self._tries += 1
            self._loop.after(self.sender.timeout_s, self._finish_again)

    def _finish_again(self) -> None:
        if self.state == "closing":
            self._finish(True)
