"""What to run to record an interface, and what the recorder said when it ended.

Nothing here starts a process: the caller runs the argument list where the interface lives (a
network namespace, a virtual machine) and hands the recorder's standard error back.

>>> recorder_arguments("ship1-eth0", "captures/ship1-eth0.pcapng", snap_length_bytes=128)[:3]
['dumpcap', '-i', 'ship1-eth0']
"""

import re
from dataclasses import dataclass
from os import PathLike, fspath

RECORDERS = ("dumpcap", "tcpdump")

# Ethernet (14) + 802.1Q (4) + IPv6 (40) + the longest TCP header (60).
SHORTEST_USEFUL_SNAP_LENGTH_BYTES = 118


@dataclass(frozen=True)
class RecorderCounters:
    """What a recorder counted when it was stopped; ``None`` where it said nothing.

    Attributes
    ----------
    received : int or None
        Packets that reached the recorder.
    dropped : int or None
        Packets that were lost between the interface and the file.
    """

    received: int | None
    dropped: int | None


def recorder_arguments(
    interface: str,
    file: str | PathLike[str],
    *,
    snap_length_bytes: int = 128,
    recorder: str = "dumpcap",
    buffer_mebibytes: int = 8,
    only: str = "",
    ring_files: int | None = None,
    ring_kibibytes: int | None = None,
) -> list[str]:
    """Argument list that records one interface into one file.

    Parameters
    ----------
    interface : str
        Name of the interface, as seen where the recorder runs.
    file : str or path
        Capture file to write: pcapng with dumpcap, pcap with tcpdump (microseconds).
    snap_length_bytes : int
        Bytes kept of each packet. 128 hold all headers with their options; payload beyond is not
        needed by the analysis.
    recorder : {"dumpcap", "tcpdump"}
        Program to run.
    buffer_mebibytes : int
        Kernel buffer, MiB. It has to hold what arrives while the recorder does not run.
    only : str
        Capture filter in pcap-filter syntax; everything is recorded by default.
    ring_files, ring_kibibytes : int, optional
        Write at most so many files of at most that size (units of 1024 bytes), the oldest of
        which is overwritten (dumpcap(1), ``-b``; dumpcap only). dumpcap puts a number and the time
        into their names: ``NAME_00001_20260101120000.pcapng``.

    Returns
    -------
    list of str
        To be run as it is; stop it with SIGINT so that it writes its counters.

    Raises
    ------
    ValueError
        For an unknown recorder, an empty interface name, a snap length too short for the headers,
        a buffer below 1 MiB, or a ring that the recorder has not or that holds nothing.
    """
    if not interface:
        raise ValueError("interface: expected a name, got an empty string")
    if snap_length_bytes < SHORTEST_USEFUL_SNAP_LENGTH_BYTES:
        raise ValueError(
            f"snap_length_bytes: expected at least {SHORTEST_USEFUL_SNAP_LENGTH_BYTES} bytes "
            f"(Ethernet, IPv6 and TCP headers with all options), got {snap_length_bytes}"
        )
    if buffer_mebibytes < 1:
        raise ValueError(f"buffer_mebibytes: expected at least 1 MiB, got {buffer_mebibytes}")
    ring = (ring_files, ring_kibibytes)
    if ring != (None, None):
        if recorder != "dumpcap":
            raise ValueError(f"ring_files: {recorder} has no such ring, only dumpcap")
        if ring_files is None or ring_kibibytes is None or min(ring_files, ring_kibibytes) < 1:
            raise ValueError(
                f"ring_files, ring_kibibytes: expected two numbers of at least 1, got {ring}"
            )
    path = fspath(file)
    if recorder == "dumpcap":
        # -q: no packet counter on standard error while recording; the final counters still come.
        arguments = ["dumpcap", "-i", interface, "-s", str(snap_length_bytes)]
        arguments += ["-B", str(buffer_mebibytes), "-q", "-w", path]
        if ring_files is not None:
            arguments += ["-b", f"filesize:{ring_kibibytes}", "-b", f"files:{ring_files}"]
        return arguments + (["-f", only] if only else [])
    if recorder == "tcpdump":
        # -Z root: keep the rights to write where the caller may; -U: a crash loses no whole block.
        arguments = ["tcpdump", "-i", interface, "-s", str(snap_length_bytes)]
        arguments += ["-B", str(1024 * buffer_mebibytes), "-n", "-U", "-Z", "root", "-w", path]
        return arguments + ([only] if only else [])
    raise ValueError(f"recorder: expected one of {', '.join(RECORDERS)}, got {recorder!r}")


_DUMPCAP = re.compile(r"Packets received/dropped on interface .*?: *(\d+)/(\d+)")
_TCPDUMP_CAPTURED = re.compile(r"(\d+) packets? captured")
_TCPDUMP_DROPPED = re.compile(r"(\d+) packets? dropped by (?:kernel|interface)")


def parse_counters(stderr: str) -> RecorderCounters:
    """Read the final counters out of what dumpcap or tcpdump wrote to standard error.

    Parameters
    ----------
    stderr : str
        Everything the recorder wrote; several interfaces are added up.

    Returns
    -------
    RecorderCounters
        With ``None`` for what was not said (a recorder that was killed says nothing).
    """
    pairs = _DUMPCAP.findall(stderr)
    if pairs:
        return RecorderCounters(
            received=sum(int(received) for received, _ in pairs),
            dropped=sum(int(dropped) for _, dropped in pairs),
        )
    captured = _TCPDUMP_CAPTURED.findall(stderr)
    dropped = _TCPDUMP_DROPPED.findall(stderr)
    return RecorderCounters(
        received=sum(map(int, captured)) if captured else None,
        dropped=sum(map(int, dropped)) if dropped else None,
    )
