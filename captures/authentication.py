"""What the keys of a connection prove: tokens, first data sequence numbers, HMACs.

RFC 6824 (version 0, SHA-1) and RFC 8684 (version 1, SHA-256), sections 3.1, 3.2 and 3.4.1.
"""

import hashlib
import hmac
from ipaddress import ip_address

from captures.options import AddAddress


def token_and_initial_sequence(key: int, version: int) -> tuple[int, int]:
    """Token and initial data sequence number that belong to a key.

    Parameters
    ----------
    key : int
        64 bits.
    version : int
        Version 0 hashes with SHA-1 (RFC 6824), version 1 with SHA-256 (RFC 8684).

    Returns
    -------
    token : int
        The hash's first 32 bits.
    initial_data_sequence : int
        The hash's last 64 bits.
    """
    digest = hashlib.new(_algorithm(version), key.to_bytes(8, "big")).digest()
    return int.from_bytes(digest[:4], "big"), int.from_bytes(digest[-8:], "big")


def join_hmac(version: int, keys: tuple[int, int], nonces: tuple[int, int]) -> bytes:
    """The whole HMAC of an MP_JOIN.

    Parameters
    ----------
    version : int
    keys, nonces : tuple of int
        First the sender's, then the receiver's.

    Returns
    -------
    bytes
        The SYN/ACK has its first 8 bytes, the third packet its first 20.
    """
    message = b"".join(nonce.to_bytes(4, "big") for nonce in nonces)
    return _hmac(version, keys, message)


def address_is_authentic(keys: tuple[int, int], option: AddAddress) -> bool:
    """Whether the HMAC of an ADD_ADDR of version 1 is right.

    Parameters
    ----------
    keys : tuple of int
        First the sender's, then the receiver's.
    option : AddAddress
        A missing port counts as 0.

    Returns
    -------
    bool
        The option has the last 8 bytes of the HMAC; the first ones, which early Linux kernels
        sent, are accepted, too.
    """
    port = (option.port or 0).to_bytes(2, "big")
    message = bytes([option.address_id]) + ip_address(option.address).packed + port
    whole = _hmac(1, keys, message)
    return option.hmac in (whole[-8:], whole[:8])


def _algorithm(version: int) -> str:
    return "sha1" if version == 0 else "sha256"


def _hmac(version: int, keys: tuple[int, int], message: bytes) -> bytes:
    key = b"".join(each.to_bytes(8, "big") for each in keys)
    return hmac.digest(key, message, _algorithm(version))
