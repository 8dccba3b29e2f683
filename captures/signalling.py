"""What the two sides of a multipath connection told each other about subflows and addresses."""

from dataclasses import asdict, dataclass
from typing import Any

from captures.authentication import address_is_authentic
from captures.handshakes import Draft
from captures.options import NAMES, RESET_REASONS, AddAddress, FastClose, Option, Reset
from captures.packets import Packets


@dataclass(frozen=True)
class Signal:
    """One MPTCP option other than DSS.

    Attributes
    ----------
    time_ns : int
    row : int
        Position in `Packets`.
    subflow : int
        Index into `Connection.subflows`.
    forward : bool
        Sent by the connection's client.
    option : Option
        What it says; see `captures.options`.
    verified : bool or None
        Whether the HMAC of an ADD_ADDR, or the key of an MP_FASTCLOSE, is right; ``None`` for
        others, and where the keys are not in the capture.
    """

    time_ns: int
    row: int
    subflow: int
    forward: bool
    option: Option
    verified: bool | None

    @property
    def what(self) -> str:
        """Name of the option, as in RFC 8684."""
        return NAMES[type(self.option)]

    @property
    def fields(self) -> dict[str, Any]:
        """What the option says, for JSON: keys and HMACs are hexadecimal."""
        found: dict[str, Any] = {}
        for name, value in asdict(self.option).items():
            if isinstance(value, bytes):
                found[name] = value.hex()
            elif value is not None and name.endswith("key"):
                found[name] = f"{value:016x}"
            elif value is not None:
                found[name] = value
        if isinstance(self.option, Reset) and self.option.reason < len(RESET_REASONS):
            found["meaning"] = RESET_REASONS[self.option.reason]
        if self.verified is not None:
            found["verified"] = self.verified
        return found


def signals(packets: Packets, draft: Draft) -> tuple[Signal, ...]:
    """All of a connection's options other than DSS, in order of time."""
    found = [
        Signal(
            int(packets.time_ns[sent.row]),
            sent.row,
            index,
            sent.forward != member.swapped,
            sent.option,
            _verified(draft, sent.option, forward=sent.forward != member.swapped),
        )
        for index, member in enumerate(draft.members)
        for sent in member.options
    ]
    return tuple(sorted(found, key=lambda each: (each.time_ns, each.row)))


def _verified(draft: Draft, option: Option, *, forward: bool) -> bool | None:
    own, other = draft.client_key, draft.server_key
    if not forward:
        own, other = other, own
    if isinstance(option, FastClose):
        return None if other is None else option.key == other
    if isinstance(option, AddAddress) and option.hmac is not None:
        if own is None or other is None or draft.version != 1:
            return None
        return address_is_authentic((own, other), option)
    return None
