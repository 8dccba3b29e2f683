"""The window of a subflow: slow start, and CUBIC (RFC 9438) or NewReno (RFC 5681)."""

import math

INITIAL_WINDOW = 10.0
"""Packets (RFC 6928)."""

_C, _BETA = 0.4, 0.7
_HYSTART_LEAST_S, _HYSTART_MOST_S, _HYSTART_SAMPLES = 0.004, 0.016, 8


class Window:
    """A congestion window in packets.

    Slow start ends at a loss, or when the round trip has grown by an eighth (HyStart; S. Ha,
    I. Rhee, "Taming the elephants: new TCP slow start", Computer Networks 55, 2011).

    Parameters
    ----------
    cubic : bool
        CUBIC rather than NewReno.

    Attributes
    ----------
    packets, threshold : float
        Its size, and where slow start ends.
    """

    def __init__(self, cubic: bool) -> None:
        self._cubic = cubic
        self.packets = INITIAL_WINDOW
        self.threshold = math.inf
        self._most = 0.0
        self._epoch_s: float | None = None
        self._plateau_s = self._origin = self._reno = 0.0
        self._round_end = 0
        self._round_rtt_s = math.inf
        self._samples = 0

    @property
    def decrease(self) -> float:
        """What is left of the window after a loss."""
        return _BETA if self._cubic else 0.5

    def acknowledged(self, packets: float, now_s: float, rtt_s: float) -> None:
        """Grow by packets that were acknowledged while the window was in full use."""
        if self.packets < self.threshold:
            grown = min(packets, max(0.0, self.threshold - self.packets))
            self.packets += grown
            packets -= grown
        if packets <= 0.0:
            return
        if not self._cubic:
            self.packets += packets / self.packets
            return
        if self._epoch_s is None:
            self._epoch_s, self._reno = now_s, self.packets
            self._origin = max(self._most, self.packets)
            self._plateau_s = ((self._origin - self.packets) / _C) ** (1.0 / 3.0)
        self._reno += packets * 3.0 * (1.0 - _BETA) / (1.0 + _BETA) / self.packets
        ahead_s = now_s + rtt_s - self._epoch_s - self._plateau_s
        target = min(max(self._origin + _C * ahead_s**3, self.packets), 1.5 * self.packets)
        step = max((target - self.packets) / self.packets, 0.01 / self.packets)
        self.packets += packets * min(step, 0.5)
        self.packets = max(self.packets, min(self._reno, self.packets + packets))

    def sampled(self, rtt_s: float, least_rtt_s: float, acknowledged: int, sent: int) -> None:
        """Take in a round-trip time; `acknowledged` and `sent` are sequence numbers."""
        if self.packets >= self.threshold or not self._cubic:
            return
        if acknowledged > self._round_end:
            self._round_end, self._samples, self._round_rtt_s = sent, 0, math.inf
        if self._samples < _HYSTART_SAMPLES:
            self._samples += 1
            self._round_rtt_s = min(self._round_rtt_s, rtt_s)
        allowed_s = min(max(least_rtt_s / 8.0, _HYSTART_LEAST_S), _HYSTART_MOST_S)
        late = self._round_rtt_s > least_rtt_s + allowed_s
        if self._samples >= _HYSTART_SAMPLES and late and self.packets >= 16.0:
            self.threshold = self.packets

    def lost(self) -> None:
        """A loss: `threshold` is where the window is to go."""
        converging = self.packets < self._most  # another flow has come (RFC 9438, 4.7)
        self._most = self.packets * ((1.0 + _BETA) / 2.0 if converging else 1.0)
        self._epoch_s = None
        self.threshold = max(self.packets * self.decrease, 2.0)

    def idle(self, now_s: float, since_s: float, timeout_s: float) -> None:
        """Shrink after a pause of more than a retransmission timeout (RFC 9293, 3.8.1; RFC 2861).

        CUBIC does not count the pause.
        """
        if self._epoch_s is not None:
            self._epoch_s += now_s - since_s
        pauses = int((now_s - since_s) / timeout_s)
        if pauses > 0:
            least = min(INITIAL_WINDOW, self.packets)
            self.threshold = max(self.threshold, 0.75 * self.packets)
            self.packets = max(self.packets / 2.0 ** min(pauses, 60), least)
