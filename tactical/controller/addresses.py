"""Addresses as people write them: where to listen, and where a database is. Pure."""

from __future__ import annotations

import ipaddress
from typing import NamedTuple


class Address(NamedTuple):
    """A host, by name or IP address, and a TCP port."""

    host: str
    port: int

    @property
    def loopback(self) -> bool:
        """Whether only this machine reaches it."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


def read_address(text: str) -> Address:
    """Read ``127.0.0.1:8080``, ``[::1]:8080`` or ``localhost:8080``.

    Raises
    ------
    ValueError
        If it is none, or the port is not from 1 to 65535.
    """
    host, colon, port = text.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    if not colon or not host or not port.isdecimal() or not 1 <= int(port) <= 65535:
        raise ValueError(f"{text!r}; expected ADDRESS:PORT, such as 127.0.0.1:8080")
    return Address(host, int(port))


def check_method(text: str) -> None:
    """See whether a text is a connection method of OVSDB (ovsdb(7)), or several of them.

    Raises
    ------
    ValueError
        If it is none that can be used here: ``ssl:`` would need certificates.
    """
    for method in text.split(","):
        kind, _, rest = method.partition(":")
        if kind == "unix" and rest:
            continue
        try:
            if kind != "tcp":
                raise ValueError(kind)
            read_address(rest)
        except ValueError:
            raise ValueError(
                f"{text!r}; expected tcp:ADDRESS:PORT or unix:FILE, such as tcp:127.0.0.1:6640"
            ) from None
