"""Damage capture files in every way and see that reading and analysis survive.

Two parts, over the reader and `captures.connections`:

- every prefix of every capture of at most 100 kB in a folder;
- changed copies (bytes overwritten, pieces removed, doubled, swapped, lengths set to extremes)
  of captures of at most `--largest` bytes.

What is looked for: an exception, a wait of more than `--slow` seconds, and more memory than
`--memory` MiB. The first fault ends the run with the file that caused it. Each changed copy
follows from the seed and its number alone, so a run can be resumed and a fault repeated:

    python benchmarks/fuzz_captures.py ../shared/captures --changed 100000
    python benchmarks/fuzz_captures.py ../shared/captures --first 52817 --changed 1

Compiled loops do not check the bounds of arrays. Run with `NUMBA_BOUNDSCHECK=1` to have them
checked, and with `NUMBA_DISABLE_JIT=1` to run the loops as plain Python.
"""

import argparse
import gzip
import json
import random
import resource
import struct
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from pathlib import Path

# Python looks for modules beside the script first, where `captures` is the benchmark.
sys.path[:] = [
    entry for entry in sys.path if Path(entry).resolve() != Path(__file__).parent.resolve()
]

from captures import compiled, connections, read  # noqa: E402

_LARGEST_FOR_PREFIXES = 100_000
_EXTREMES = (0, 1, 2, 3, 4, 7, 8, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF)


def captures_in(folder: Path) -> list[tuple[str, bytes]]:
    """Names and contents of the captures in a folder, decompressed."""
    found = []
    for file in sorted(folder.rglob("*.pcap*")):
        content = file.read_bytes()
        found.append(
            (str(file.relative_to(folder)), gzip.decompress(content))
            if file.suffix == ".gz"
            else (str(file.relative_to(folder)), content)
        )
    return found


def changed(content: bytes, chance: random.Random) -> bytes:
    """A copy with some damage; one in twelve is compressed as well, and damaged after that."""
    data = bytearray(content)
    if chance.random() < 1 / 12:
        data = bytearray(gzip.compress(bytes(data), 1))
    for _ in range(chance.choice((1, 1, 2, 4, 8, 32))):
        if not data:
            break
        at = chance.randrange(len(data))
        if chance.random() < 0.3:  # the file's header and first records
            at = chance.randrange(min(len(data), 120))
        size = chance.choice((1, 2, 4, 4, 8, 60, 1500))
        kind = chance.randrange(8)
        if kind == 0:
            data[at] ^= 1 << chance.randrange(8)
        elif kind == 1:
            data[at : at + size] = chance.randbytes(len(data[at : at + size]))
        elif kind in (2, 3):  # a number of 1, 2 or 4 bytes, of either byte order
            width, code = chance.choice(((1, "B"), (2, "H"), (4, "I")))
            value = chance.choice(_EXTREMES) & ((1 << 8 * width) - 1)
            data[at : at + width] = struct.pack(chance.choice("<>") + code, value)
        elif kind == 4:
            del data[at : at + size]
        elif kind == 5:
            data[at:at] = data[at : at + size]
        elif kind == 6:
            to = chance.randrange(len(data))
            piece = data[at : at + size]
            data[to : to + len(piece)] = piece
        else:
            del data[at:]
    return bytes(data)


def inputs(
    files: list[tuple[str, bytes]], options: argparse.Namespace
) -> Iterator[tuple[str, bytes]]:
    """What to try, with a name that says how to have it again."""
    if options.prefixes:
        for name, content in files:
            if len(content) <= _LARGEST_FOR_PREFIXES:
                for size in range(0, len(content) + 1, options.every):
                    yield f"the first {size} bytes of {name}", content[:size]
    small = [each for each in files if len(each[1]) <= options.largest]
    for number in range(options.first, options.first + options.changed):
        chance = random.Random(f"{options.seed}/{number}")
        name, content = chance.choice(small)
        yield f"--seed {options.seed} --first {number} ({name})", changed(content, chance)


def peak_mib() -> float:
    """Most memory that this process ever had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> int:
    """Run; 1 if something was found."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="captures to begin with")
    parser.add_argument("--changed", type=int, default=100_000, help="changed copies to try")
    parser.add_argument("--first", type=int, default=0, help="number of the first one")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--prefixes", action="store_true", help="every prefix, too")
    parser.add_argument("--every", type=int, default=1, help="only each n-th prefix")
    parser.add_argument("--largest", type=int, default=100_000, help="bytes of files to change")
    parser.add_argument("--slow", type=float, default=5.0, help="seconds of CPU that are a fault")
    parser.add_argument("--memory", type=float, default=600.0, help="MiB that are a fault")
    parser.add_argument("--keep", type=Path, help="where to write the file that caused a fault")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()

    files = captures_in(options.folder)
    compiled.load()
    count, slowest, slowest_name, started = 0, 0.0, "", time.monotonic()
    damaged = packets = 0
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "capture")
        file.write_bytes(files[0][1])
        connections(read(file).packets)  # what is loaded once does not count
        fault = ""
        for name, content in inputs(files, options):
            file.write_bytes(content)
            before = time.process_time()
            try:
                capture = read(file)
                connections(capture.packets)
            except Exception:  # noqa: BLE001 - whatever it is, it is a fault
                fault = f"{name}: an exception\n{traceback.format_exc()}"
            seconds = time.process_time() - before
            if seconds > slowest:
                slowest, slowest_name = seconds, name
            if seconds > options.slow:
                fault = fault or f"{name}: {seconds:.1f} s"
            if peak_mib() > options.memory:
                fault = fault or f"{name}: {peak_mib():.0f} MiB"
            if fault:
                if options.keep:
                    options.keep.write_bytes(content)
                break
            count += 1
            damaged += capture.damaged
            packets += len(capture.packets)
            if count % 5000 == 0:
                rate = count / (time.monotonic() - started)
                print(f"{count} files, {rate:.0f} a second", file=sys.stderr)
    answer = {
        "files": count,
        "damaged": damaged,
        "packets": packets,
        "seconds": round(time.monotonic() - started, 1),
        "slowest_s": round(slowest, 3),
        "slowest": slowest_name,
        "peak_mib": round(peak_mib(), 1),
        "fault": fault,
    }
    if options.json:
        print(json.dumps(answer))
    else:
        print("\n".join(f"{key:10} {value}" for key, value in answer.items()))
    return 1 if fault else 0


if __name__ == "__main__":
    sys.exit(main())
