"""MPTCP options other than DSS, from their bytes: version 0 (RFC 6824) and 1 (RFC 8684).

DSS is in nearly every packet and has columns of its own in `captures.packets.Packets`; these are
few, so each becomes an object.
"""

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address

from captures.packets import (
    ADD_ADDR,
    MP_CAPABLE,
    MP_FAIL,
    MP_FASTCLOSE,
    MP_JOIN,
    MP_PRIO,
    MP_TCPRST,
    REMOVE_ADDR,
)

RESET_REASONS = (
    "unspecified error",
    "MPTCP-specific error",
    "lack of resources",
    "administratively prohibited",
    "too much outstanding data",
    "unacceptable performance",
    "middlebox interference",
)
"""Reason codes of MP_TCPRST (RFC 8684, section 3.6)."""


@dataclass(frozen=True)
class Capable:
    """MP_CAPABLE: asks for multipath TCP, agrees to it, or repeats both keys.

    Attributes
    ----------
    version : int
    checksum_required : bool
        Flag A: this side wants checksums in DSS.
    join_elsewhere : bool
        Flag C (version 1): no subflows to this address and port.
    sender_key, receiver_key : int or None
        64 bits each; the SYN of version 1 has none, only the third packet has both.
    data_bytes : int or None
        Of the data in this packet, which begin the connection (version 1).
    checksum : int or None
        Over these data.
    """

    version: int
    checksum_required: bool
    join_elsewhere: bool
    sender_key: int | None = None
    receiver_key: int | None = None
    data_bytes: int | None = None
    checksum: int | None = None


@dataclass(frozen=True)
class Join:
    """MP_JOIN: adds a subflow to a connection.

    Attributes
    ----------
    backup : bool
    address_id : int or None
        Of the sender's address; not in the third packet.
    token : int or None
        Of the *receiver*; in the SYN only.
    nonce : int or None
        Not in the third packet.
    hmac : bytes or None
        8 bytes of it in the SYN/ACK, 20 in the third packet.
    """

    backup: bool
    address_id: int | None = None
    token: int | None = None
    nonce: int | None = None
    hmac: bytes | None = None


@dataclass(frozen=True)
class AddAddress:
    """ADD_ADDR: tells of an address, or (echo, version 1) that one was heard of.

    Attributes
    ----------
    address_id : int
    address : str
    port : int or None
    echo : bool
    hmac : bytes or None
        Its last 8 bytes (version 1).
    """

    address_id: int
    address: str
    port: int | None
    echo: bool
    hmac: bytes | None


@dataclass(frozen=True)
class RemoveAddress:
    """REMOVE_ADDR: addresses that are gone."""

    address_ids: tuple[int, ...]


@dataclass(frozen=True)
class Priority:
    """MP_PRIO: whether to use the subflow as backup from now on.

    `address_id` (version 0) names the subflows of another address of the sender.
    """

    backup: bool
    address_id: int | None


@dataclass(frozen=True)
class Fail:
    """MP_FAIL: a checksum was wrong; `data_sequence` is where the failed mapping begins."""

    data_sequence: int


@dataclass(frozen=True)
class FastClose:
    """MP_FASTCLOSE: the connection is aborted; `key` is the receiver's."""

    key: int


@dataclass(frozen=True)
class Reset:
    """MP_TCPRST: why a subflow is reset, and whether trying again may help (`transient`)."""

    reason: int
    transient: bool


Option = Capable | Join | AddAddress | RemoveAddress | Priority | Fail | FastClose | Reset

NAMES: dict[type[Option], str] = {
    Capable: "MP_CAPABLE",
    Join: "MP_JOIN",
    AddAddress: "ADD_ADDR",
    RemoveAddress: "REMOVE_ADDR",
    Priority: "MP_PRIO",
    Fail: "MP_FAIL",
    FastClose: "MP_FASTCLOSE",
    Reset: "MP_TCPRST",
}


def decode(option: bytes) -> Option | None:
    """Decode one option.

    Parameters
    ----------
    option : bytes
        From the kind (30) on, all of it.

    Returns
    -------
    Option or None
        ``None`` for other subtypes, and for lengths that no version knows.
    """
    length = len(option)
    if length < 3:
        return None
    subtype, flags = option[2] >> 4, option[2] & 15
    if subtype == MP_CAPABLE and length in (4, 12, 20, 22, 24):
        return Capable(
            version=flags,
            checksum_required=bool(option[3] & 0x80),
            join_elsewhere=bool(option[3] & 0x20) and flags > 0,
            sender_key=_number(option, 4, 8),
            receiver_key=_number(option, 12, 8),
            data_bytes=_number(option, 20, 2),
            checksum=_number(option, 22, 2),
        )
    if subtype == MP_JOIN and length in (12, 16, 24):
        backup = bool(flags & 1)
        if length == 12:
            return Join(backup, option[3], _number(option, 4, 4), _number(option, 8, 4))
        if length == 16:
            return Join(backup, option[3], None, _number(option, 12, 4), option[4:12])
        return Join(backup, hmac=option[4:])
    if subtype == ADD_ADDR and length in (8, 10, 16, 18, 20, 22, 28, 30):
        return _add_address(option, bool(flags & 1))
    if subtype == REMOVE_ADDR and length >= 4:
        return RemoveAddress(tuple(option[3:]))
    if subtype == MP_PRIO and length in (3, 4):
        return Priority(bool(flags & 1), option[3] if length == 4 else None)
    if subtype == MP_FAIL and length == 12:
        return Fail(int.from_bytes(option[4:], "big"))
    if subtype == MP_FASTCLOSE and length == 12:
        return FastClose(int.from_bytes(option[4:], "big"))
    if subtype == MP_TCPRST and length == 4:
        return Reset(option[3], bool(flags & 1))
    return None


def _number(option: bytes, start: int, width: int) -> int | None:
    """A number of so many bytes; ``None`` where the option ends before it."""
    part = option[start : start + width]
    return int.from_bytes(part, "big") if len(part) == width else None


def _add_address(option: bytes, echo: bool) -> AddAddress:
    # The eight lengths differ in address, port (2 bytes) and HMAC (8 bytes), in either version.
    width = 4 if len(option) < 20 else 16
    rest = option[4 + width :]
    port = int.from_bytes(rest[:2], "big") if len(rest) in (2, 10) else None
    packed = option[4 : 4 + width]
    return AddAddress(
        address_id=option[3],
        address=str(IPv4Address(packed) if width == 4 else IPv6Address(packed)),
        port=port,
        echo=echo,
        hmac=rest[-8:] if len(rest) >= 8 else None,
    )
