"""How fast captures are read and analysed, beside tshark and pyshark in the same run.

    python benchmarks/captures.py [FILE] [--without PART...] [--large] [--json]

Without a file it takes ../shared/captures/made/two_paths_server.pcap.gz, or one of the tests'
captures where that is missing. Times are CPU time on one core, of this process and (for the peers)
of what it started; each is the median of `--repeat` runs after one that does not count.

plain       from the decompressed file, as a recorder writes it
compressed  from the file as it is
tshark      the same file with 20 fields a packet
pyshark     the first `--packets` packets, with what all layers show
cold        the first use on a machine: everything compiled; the second use; and importing alone
large       a capture of 10 million packets, made by repeating the file, in a process of its own:
            as it is (each repetition has connections of its own), and without the repeated SYNs
            (the connections go on through all of it)
"""

import argparse
import gzip
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

# Python looks for modules beside the script first, where `captures` is this file.
sys.path[:] = [
    entry for entry in sys.path if Path(entry).resolve() != Path(__file__).parent.resolve()
]

from captures import compiled, each_connection, read  # noqa: E402
from captures.packets import SYN  # noqa: E402

ROOT = Path(__file__).resolve().parents[1]
PARTS = ("tshark", "pyshark", "cold")
FIELDS = (
    *("frame.number", "frame.time_epoch", "frame.len", "ip.src", "ip.dst", "ipv6.src", "ipv6.dst"),
    *("tcp.srcport", "tcp.dstport", "tcp.stream", "tcp.seq", "tcp.ack", "tcp.len", "tcp.flags"),
    *("tcp.window_size_value", "tcp.options.timestamp.tsval", "tcp.options.mptcp.subtype"),
    *("tcp.options.mptcp.rawdataseqno", "tcp.options.mptcp.rawdataack"),
    "tcp.options.mptcp.subflowseqno",
)
LARGE_PACKETS = 10_000_000

# Run in a process of its own, for its peak memory and its empty caches.
_CHILD = """
import json, resource, sys, time
started, cpu = time.perf_counter(), time.process_time()
from captures import each_connection, read
imported = time.process_time()
read_wall = time.perf_counter()
capture = read(sys.argv[1])
read_s = time.process_time()
count = sum(1 for _ in each_connection(capture.packets))
done = time.process_time()
print(json.dumps({
    "packets": capture.frames, "connections": count, "import_s": imported - cpu,
    "read_s": read_s - imported, "connections_s": done - read_s,
    "wall_s": time.perf_counter() - started,
    "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
}))
"""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", nargs="?", type=Path)
    parser.add_argument(
        "--without", nargs="+", choices=PARTS, default=[], metavar="PART", help=", ".join(PARTS)
    )
    parser.add_argument("--repeat", type=int, default=9, metavar="N", help="runs of each (9)")
    parser.add_argument("--packets", type=int, default=2000, metavar="N", help="of pyshark (2000)")
    parser.add_argument("--large", action="store_true", help="10 million packets, too")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    file = options.file or default_file()
    found: dict[str, Any] = {"file": file.name, "cpus": os.cpu_count(), "load": os.getloadavg()[0]}
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder, "capture")
        content = file.read_bytes()
        plain.write_bytes(gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content)
        compiled.load()
        found["plain"] = speed(plain, options.repeat)
        if content[:2] == b"\x1f\x8b":
            found["compressed"] = speed(file, options.repeat)
        for part in PARTS:
            if part not in options.without:
                found[part] = _MEASURES[part](plain, found, options)
        if options.large:
            found["large"] = [large(plain, Path(folder), syns) for syns in (True, False)]
    print(json.dumps(found, indent=2) if options.json else text(found))
    return 0


def default_file() -> Path:
    shared = ROOT.parent / "shared" / "captures" / "made" / "two_paths_server.pcap.gz"
    own = ROOT / "tests" / "captures" / "data" / "csum_client.pcap.gz"
    return shared if shared.exists() else own


def cpu_s() -> float:
    """CPU time of this process and of those it waited for."""
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in usage)


def median_s(work: Callable[[], object], repeat: int) -> float:
    times = []
    for _ in range(repeat + 1):
        before = cpu_s()
        work()
        times.append(cpu_s() - before)
    return statistics.median(times[1:])


def speed(file: Path, repeat: int) -> dict[str, float]:
    """Packets a second, reading alone and with connections."""
    frames = read(file).frames
    parse = median_s(lambda: read(file), repeat)
    whole = median_s(lambda: list(each_connection(read(file).packets)), repeat)
    return {
        "frames": frames,
        "parse_s": parse,
        "end_to_end_s": whole,
        "parse_per_s": frames / parse,
        "end_to_end_per_s": frames / whole,
    }


def tshark(plain: Path, found: dict[str, Any], options: argparse.Namespace) -> dict[str, Any]:
    program = shutil.which("tshark")
    if program is None:
        return {"skipped": "tshark is not installed"}
    command = [program, "-n", "-r", str(plain), "-T", "fields"]
    for name in FIELDS:
        command += ["-e", name]
    seconds = median_s(
        lambda: subprocess.run(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True
        ),
        1,
    )
    return compared(found["plain"]["frames"] / seconds, found["plain"])


def pyshark(plain: Path, found: dict[str, Any], options: argparse.Namespace) -> dict[str, Any]:
    if shutil.which("tshark") is None:
        return {"skipped": "tshark is not installed"}
    import pyshark as library

    count = min(options.packets, found["plain"]["frames"])

    def work() -> None:
        capture = library.FileCapture(str(plain), keep_packets=False)
        for number, packet in enumerate(capture, 1):
            str(packet.layers)
            if number == count:
                break
        capture.close()

    return compared(count / median_s(work, 1), found["plain"])


def compared(per_s: float, ours: dict[str, float]) -> dict[str, Any]:
    return {
        "per_s": per_s,
        "parse_ratio": ours["parse_per_s"] / per_s,
        "end_to_end_ratio": ours["end_to_end_per_s"] / per_s,
    }


def child(file: Path, **environment: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-c", _CHILD, str(file)],
        env=os.environ | {"PYTHONPATH": str(ROOT)} | environment,
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def cold(plain: Path, found: dict[str, Any], options: argparse.Namespace) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as cache:
        first = child(plain, NUMBA_CACHE_DIR=cache)
        second = child(plain, NUMBA_CACHE_DIR=cache)
    warm_s = found["plain"]["end_to_end_s"]

    def waited(one: dict[str, Any]) -> float:
        return float(one["read_s"] + one["connections_s"] - warm_s)

    return {
        "import_s": second["import_s"],
        "compiling_s": waited(first),
        "loading_s": waited(second),
    }


def large(plain: Path, folder: Path, syns: bool) -> dict[str, Any]:
    """Ten million packets, with or without the SYNs of all repetitions but the first."""
    content = plain.read_bytes()
    file = folder / "large"
    capture = read(plain)
    repetition = content[24:]
    if not syns:
        opening = set(capture.packets.frame[capture.packets.flags & SYN != 0].tolist())
        repetition = b"".join(
            record for number, record in enumerate(records(content), 1) if number not in opening
        )
    with file.open("wb") as stream:
        stream.write(content)
        for _ in range(LARGE_PACKETS // capture.frames):
            stream.write(repetition)
    started = time.perf_counter()
    answer = child(file)
    file.unlink()
    return answer | {"syns": syns, "wall_s": time.perf_counter() - started}


def records(pcap: bytes) -> list[bytes]:
    """Records of a little-endian pcap file."""
    found, at = [], 24
    while at + 16 <= len(pcap):
        size = 16 + int.from_bytes(pcap[at + 8 : at + 12], "little")
        found.append(pcap[at : at + size])
        at += size
    return found


def text(found: dict[str, Any]) -> str:
    lines = [f"{found['file']}, {found['cpus']} CPUs, load {found['load']:.1f}"]
    for name in ("plain", "compressed"):
        if name in found:
            one = found[name]
            lines.append(
                f"{name:11} {one['frames']} packets: parse {one['parse_per_s'] / 1e6:.2f} M/s, "
                f"end to end {one['end_to_end_per_s'] / 1e6:.2f} M/s"
            )
    for name in ("tshark", "pyshark"):
        if "per_s" in found.get(name, {}):
            one = found[name]
            lines.append(
                f"{name:11} {one['per_s']:.0f} packets/s: parse is {one['parse_ratio']:.0f} times, "
                f"end to end {one['end_to_end_ratio']:.0f} times as fast"
            )
        elif name in found:
            lines.append(f"{name:11} {found[name]['skipped']}")
    if "cold" in found:
        one = found["cold"]
        lines.append(
            f"{'cold':11} compiling {one['compiling_s']:.1f} s, loading {one['loading_s']:.2f} s, "
            f"importing {one['import_s']:.2f} s"
        )
    lines += [
        f"{'large':11} {one['packets']} packets, {one['connections']} connections: read "
        f"{one['read_s']:.1f} s, connections {one['connections_s']:.1f} s, "
        f"peak {one['peak_mib']:.0f} MiB"
        for one in found.get("large", [])
    ]
    return "\n".join(lines)


_MEASURES = {"tshark": tshark, "pyshark": pyshark, "cold": cold}

if __name__ == "__main__":
    sys.exit(main())
